#pragma once
// Calls of models in a run directory: the texts, the events about them, and recordings.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {
// The texts that models were sent and answered, in a run directory: pieces of texts, each once,
// named by their SHA-256.  A conversation is sent again with every call of an agent; its pieces are
// not kept again.
//   agent/model/segments   the pieces, one behind the other
//   agent/model/index      a line for each, in the same order: DIGEST OFFSET LENGTH
// A piece is written before its line, so that a writer that is killed leaves at most bytes that no
// line names, and at most one line that has no end; both are cut off when writing goes on.
// Adapter; the writer by one thread at a time.

inline constexpr const char* kSaidDir = "agent/model";
inline constexpr const char* kSegmentsFile = "agent/model/segments";
inline constexpr const char* kSegmentIndexFile = "agent/model/index";
inline constexpr std::size_t kSegmentsMax = 500'000;

struct SegmentPlace {
  std::uint64_t offset = 0, bytes = 0;
};
using SegmentIndex = std::map<std::string, SegmentPlace, std::less<>>;  // by digest, as hex
// Lines without an end are left out.  kCorrupt: a line of another shape, a digest twice, a piece
// that does not follow the one before.
Result<SegmentIndex> parse_segment_index(std::string_view text);

class SegmentWriter {
 public:
  // Goes on where an earlier life stopped.  The files are made with the first piece.
  static Result<SegmentWriter> open(fs::path run_dir, std::uint64_t bytes_max);
  // False: there is no room for it, or it cannot be written.
  bool put(const std::string& digest, std::string_view bytes);

 private:
  SegmentWriter(fs::path dir, std::uint64_t bytes_max)
      : dir_(std::move(dir)), bytes_max_(bytes_max) {}
  bool begin();
  fs::path dir_;
  std::uint64_t bytes_max_;
  UniqueFd segments_, index_;
  SegmentIndex known_;
  std::uint64_t end_ = 0, index_end_ = 0;
};

class SegmentReader {
 public:
  // A run directory without any has an empty one.
  static Result<SegmentReader> open(const fs::path& run_dir);
  bool has(std::string_view digest) const { return index_.contains(digest); }
  const SegmentIndex& index() const { return index_; }
  // kNotFound; kCorrupt: its bytes have another digest.
  Result<std::string> read(std::string_view digest) const;

 private:
  SegmentReader(UniqueFd fd, SegmentIndex index) : fd_(std::move(fd)), index_(std::move(index)) {}
  UniqueFd fd_;
  SegmentIndex index_;
};

// The calls of models that a run's trace tells of, with what was kept of their texts, and the
// circuit breakers that tripped by them.  Adapter (reads files); any thread.  A run directory is
// its worker's word.

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
// Requests that were refused before they were calls, counted where a gateway closed: no event tells
// of each, for an agent could fill the trace with them.
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
// The calls of read_models() alone.
Result<std::vector<TracedCall>> read_model_calls(const fs::path& run_dir);
// kNotFound: it was not kept.
Result<std::string> request_body(const TracedCall& call, const SegmentReader& reader);
Result<std::string> answer_body(const TracedCall& call, const SegmentReader& reader);

// A member of any payload: 0 and "" where it has none of that kind.
std::uint64_t count_in(const Json& payload, const char* member);
std::string text_in(const Json& payload, const char* member);
// The pieces of the body that a request's event names.  kNotFound: none were kept.
Result<std::vector<std::string>> pieces_in(const Json& request, const SegmentReader& reader);

// A recording of calls of models: what was asked and what came back, so that a campaign can run
// again without a provider.  One file of JSON lines, each piece of a text once:
//
//   {"proctor_cassette":1,"calls":2}
//   {"piece":"..."}                                            pieces are numbered from 0
//   {"call":1,"run":"t/m/r1","route":"chat","model":"big","status":200,"streamed":false,
//    "request":[0,2],"answer":[1],"digest":"SHA-256 of request and answer"}
//
// Pure but for load; any thread.  Errors: kInvalid with the line; kExhausted: too large.

struct CassetteCall {
  std::string run;                  // whose it was
  std::string route;                // to_string(ModelApi)
  std::string model;                // as the run called it
  int status = 0;                   // of the provider
  bool streamed = false;            // the answer is a stream of events
  std::vector<std::string> pieces;  // of the request, in order
  std::string answer;
  std::string request() const;
  friend bool operator==(const CassetteCall&, const CassetteCall&) = default;
};

inline constexpr std::size_t kCassetteBytes = std::size_t{256} << 20;
inline constexpr std::size_t kCassetteCalls = 100'000;

// kInvalid: a text that is no UTF-8.
Result<std::string> cassette_text(const std::vector<CassetteCall>& calls);
Result<std::vector<CassetteCall>> parse_cassette(std::string_view text);
Result<std::vector<CassetteCall>> load_cassette(const fs::path& file);

// The calls of a run directory that a provider answered, and how many cannot be played again, for
// their texts were not kept or something was struck out of them.
struct RecordedCalls {
  std::vector<CassetteCall> calls;
  std::size_t left_out = 0;
};
Result<RecordedCalls> record_calls(const fs::path& run_dir, const std::string& run);
}  // namespace proctor
