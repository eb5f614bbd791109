#pragma once
// What the trace says of one call.  Pure; any thread.  Internal to this room.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "worker/gateway/body_peek.h"
#include "worker/gateway/call_machine.h"
#include "worker/gateway/ceiling.h"
#include "worker/gateway/http_gate.h"
#include "worker/gateway/refusal.h"
#include "worker/gateway/splice.h"
#include "worker/gateway/usage.h"

namespace proctor {

inline constexpr std::size_t kPiecesListed = 64;
// Of the calls or results of tools that one event lists, as they are written: an agent chooses how
// many there are and how long their names, and with 64 of a usual length none is left out.
inline constexpr std::size_t kToldBytes = std::size_t{12} << 10;

// A tool's call or result: by digest, for its text is in the body.
struct ToolTold {
  std::string id, name, digest;
  std::uint64_t bytes = 0;
};

struct CallRecord {
  std::uint64_t number = 0;
  ModelApi api = ModelApi::kChat;
  std::string model;  // the run's name of it
  bool stream = false;
  std::uint64_t bytes = 0;
  std::string digest, sent_digest;  // of the request as it came, and as it went on
  std::string key;                  // where breakers watch: of what it asks, in any spelling
  bool kept = false;                // all pieces of it are among the evidence:
  std::vector<std::string> pieces;  // by digest, in order; more than kPiecesListed of them:
  std::string pieces_list;          // the piece that lists them, one a line
  std::string stored_digest;        // of the pieces together, where something was struck out
  std::vector<ToolTold> results;    // of tools, those that no call before had
  std::vector<Splice> edits;
  std::string user_agent, retry_count;
  TokenCeiling ceiling;
  std::uint64_t widest_input = 0;      // by its bytes
  std::optional<std::uint64_t> delta;  // by the run's earlier calls, whether it held or not
  std::uint64_t output = 0, ceiling_micros = 0;  // granted
  std::uint64_t limit = 0;                       // of each sample
  std::uint64_t waited_ms = 0;
  std::string waited_for;

  int status = 0;  // of the provider's last answer; 0: none
  Settlement settled{};
  AnswerFacts facts{};
  std::uint64_t charged_micros = 0;
  bool overrun = false;
  int key_status = 0;        // of our own question after a 401 or 403; 0: none
  bool key_refused = false;  // ... of which it is the key's, not this call's
  bool unasked = false;      // the operator's key or address of it cannot be had; `why` says it
  std::string why;           // it failed
  std::uint64_t answer_bytes = 0;
  std::string answer_digest;
  bool answer_kept = false;
  std::string answer_stored_digest;  // likewise
  bool streamed = false;             // it came as a stream
  std::vector<ToolTold> tool_calls;
  bool begun = false;          // a stream that said something
  std::uint64_t replayed = 0;  // the recorded call that answered; 0: a provider did
  std::uint64_t first_byte_us = 0, wall_us = 0;
  std::uint32_t tries = 0;
  std::optional<std::chrono::milliseconds> asked_wait;  // by a provider without room
  bool client_gone = false;
};

// Did its provider not answer it: not at all, not to the end, or by an error of its own?
bool is_unanswered(const CallRecord& record);

// What its settlement comes to, under the name of its reservation; of a recorded answer nothing,
// unless the operator would have what its provider took (`charges`).
MeterCharge charge_of(const CallRecord& record, const std::string& id, const Settlement& settled,
                      bool charges);

Json request_json(const CallRecord& record);
// `status`: what its client was told.
Json refused_json(const CallRecord& record, int status, const Refusal& refusal);
std::string overrun_words(const CallRecord& record, const Amount& billed);
Json response_json(const CallRecord& record);

}  // namespace proctor
