#pragma once
// One call of a model: its life, what it is charged however it ends, and what the trace says of it.
// Pure; any thread.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"
#include "common/base/words.h"
#include "common/contract/models_file.h"
#include "worker/core/run_meter.h"
#include "worker/gateway/body_peek.h"
#include "worker/gateway/ceiling.h"
#include "worker/gateway/http_gate.h"
#include "worker/gateway/json_spans.h"
#include "worker/gateway/model_answer.h"
#include "worker/gateway/refusal.h"

namespace proctor {
// Each exit of a call has one settlement, and there is one for every exit (docs/gateway.md, "What a
// call costs").
struct Settlement {
  enum class How { kReleased, kUsage, kCeiling, kPartial };
  How how = How::kReleased;
  Amount actual{};        // kUsage, kPartial
  std::string_view flag;  // why it is no usage: "unknown", "no_usage", "partial"; empty: it is
};
constexpr auto words(Settlement::How) {
  return std::to_array<Word<Settlement::How>>({{"released", Settlement::How::kReleased},
                                               {"usage", Settlement::How::kUsage},
                                               {"ceiling", Settlement::How::kCeiling},
                                               {"partial", Settlement::How::kPartial}});
}

// The life of one call.  One thread.
class CallMachine {
 public:
  // Their order matters: a call may be tried again before kSent.
  enum class State { kReserved, kSending, kSent, kRelaying, kSettled };
  CallMachine(ModelApi api, bool errors_are_free, std::uint64_t output_granted)
      : api_(api), errors_are_free_(errors_are_free), output_granted_(output_granted) {}

  State state() const { return state_; }
  // In this order; each at most once, but for again().
  void sending();             // the first byte goes out
  void sent();                // the last byte is out: it may run from now on
  void answered(int status);  // the answer's head has come
  // May the same request be sent once more, by what is known now?
  bool may_try_again() const;
  void again();

  // How it ends.  One of them, once.
  Settlement whole(const std::optional<Amount>& usage);  // all of a plain answer, or of a stream
  // A stream that broke off or said that it failed; `begun`: what it said at its begin.
  Settlement cut(const std::optional<Amount>& begun, const std::optional<Amount>& usage);
  Settlement failed();  // no answer, or not all of a plain one

 private:
  Settlement settle(Settlement s);
  Settlement by_status() const;
  ModelApi api_;
  bool errors_are_free_;
  std::uint64_t output_granted_;
  State state_ = State::kReserved;
  int status_ = 0;
};

// Answers that no provider bills.
bool is_unbilled(int status);
// The ones among those after which the same request may be granted later.
bool is_busy(int status);

// Pieces of a request that its event lists one by one.
inline constexpr std::size_t kPiecesListed = 64;
// Bytes, as they are written, of the calls or results of tools that one event lists: an agent
// chooses how many there are and how long their names, and with 64 of a usual length none is left
// out.
inline constexpr std::size_t kToldBytes = std::size_t{12} << 10;

// A tool's call or result: by digest, for its text is in the body.
struct ToolTold {
  std::string id, name, digest;
  std::uint64_t bytes = 0;
};

// All that the trace says of one call.
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

// Its settlement as a charge, under the name of its reservation; a recorded answer comes to
// nothing, unless the operator would have what its provider took (`charges`).
MeterCharge charge_of(const CallRecord& record, const std::string& id, const Settlement& settled,
                      bool charges);

Json request_json(const CallRecord& record);
// `status`: what its client was told.
Json refused_json(const CallRecord& record, int status, const Refusal& refusal);
std::string overrun_words(const CallRecord& record, const Amount& billed);
Json response_json(const CallRecord& record);
}  // namespace proctor
