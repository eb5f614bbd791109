#pragma once
// The calls of models that a run's trace tells of, with what was kept of their texts, and the
// circuit breakers that tripped by them.  Adapter
// (reads files); any thread.  What a run directory says is its worker's word.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/trace/segments.h"

namespace proctor {

struct TracedCall {
  std::uint32_t life = 0;  // of its worker, from 1: each begins its numbers anew
  std::uint64_t number = 0;
  std::uint64_t request_seq = 0, end_seq = 0;  // of its events; 0: there is none
  // Payloads of its events; null: there is none.  An answer, or a refusal by us.
  Json request, response, refused;
};
// A circuit breaker that tripped.
struct TracedTrip {
  std::uint64_t seq = 0;  // of the intervention
  std::string code, action, why;
};
// What was refused before it was a call, counted where a gateway closed: no event tells of each,
// for an agent could fill the trace with them.
struct UnlistedRefusals {
  std::uint64_t all = 0, wrong_tokens = 0, unknown_routes = 0;
};
struct TracedModels {
  std::vector<TracedCall> calls;  // in the order in which they were made
  std::vector<TracedTrip> trips;
  UnlistedRefusals unlisted;
  std::uint64_t metered = 0;  // calls that were granted by the meter, whoever made them
};
// kCorrupt with the line; kNotFound: no trace.
Result<TracedModels> read_models(const fs::path& run_dir);
// ... of which only the calls.
Result<std::vector<TracedCall>> read_model_calls(const fs::path& run_dir);
// kNotFound: it was not kept.
Result<std::string> request_body(const TracedCall& call, const SegmentReader& reader);
Result<std::string> answer_body(const TracedCall& call, const SegmentReader& reader);

// What a payload says, of any kind: 0 and "" where it says nothing of the kind.
std::uint64_t count_in(const Json& payload, const char* member);
std::string text_in(const Json& payload, const char* member);
// The pieces of the body that a request's event names.  kNotFound: none were kept.
Result<std::vector<std::string>> pieces_in(const Json& request, const SegmentReader& reader);

}  // namespace proctor
