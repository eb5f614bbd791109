#pragma once
// What an operator's command says to a running coordinator, and what it answers: one line of JSON
// each (docs/operators-guide.md, "The control socket").  Lines come from outside: bounded, checked,
// every mistake named.  Pure; any thread.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/fields.h"
#include "common/base/json.h"
#include "common/base/words.h"
#include "common/ledger/ledger.h"
#include "common/plan/plan.h"
#include "coordinator/core/records.h"
#include "coordinator/core/run_queue.h"

namespace proctor {
class Scheduler;

inline constexpr std::size_t kControlLineBytes = std::size_t{64} << 10;  // of a request
inline constexpr std::size_t kControlAnswerBytes = std::size_t{1} << 20;
inline constexpr std::size_t kOperatorNameBytes = 256;
inline constexpr const char* kActExplain = "explain";
inline constexpr const char* kActReview = "review";
inline constexpr const char* kCodeShort = "short_of_money";

struct ControlRequest {
  std::string act;       // "pause", ..., or kActExplain
  std::string runs{};    // words, see select_runs()
  std::string worker{};  // empty: the campaign
  bool now = false;
  bool invalid = false;  // of "requeue": those that ended invalid
  std::string reason{}, by{};
  std::string scope{}, to{};      // of "raise": an envelope's name, and USD as in "12.50"
  std::string stage{}, digest{};  // of "approve_stage"; the digest's first digits, or nothing
  std::string criterion{};        // "waive" takes it with `stage`, "close_stage" `stage` alone
  std::string minutes{};  // of "review", as in "7.5"; `runs` names its run, `reason` is its note
  // Of an act: who asks hears kTakenLine the moment it is taken up, and one who has hung up by then
  // has withdrawn it.
  bool taken = false;
};
void fields(auto& v, Is<ControlRequest> auto& r) {
  v("act", r.act, kOptional);
  v("runs", r.runs, kOptional);
  v("worker", r.worker, kOptional);
  v("now", r.now, kOptional);
  v("invalid", r.invalid, kOptional);
  v("reason", r.reason, kOptional);
  v("by", r.by, kOptional);
  v("scope", r.scope, kOptional);
  v("to", r.to, kOptional);
  v("stage", r.stage, kOptional);
  v("digest", r.digest, kOptional);
  v("criterion", r.criterion, kOptional);
  v("minutes", r.minutes, kOptional);
  v("taken", r.taken, kOptional);
}

inline constexpr std::string_view kTakenLine = "{\"taken\":true}\n";

struct ControlAnswer {
  enum class Verdict {
    kDone,
    kUnchanged,    // it was so already
    kRefused,      // understood, and not done: `text` says why
    kInvalid,      // not understood
    kUnavailable,  // not now: the campaign is ending, or nobody knows yet whether it was done
  };
  Verdict verdict = Verdict::kDone;
  std::string text{};
  // Of kActExplain; of a refusal for want of money an object with the code kCodeShort; else null.
  Json explanation{};
};
constexpr auto words(ControlAnswer::Verdict) {
  using enum ControlAnswer::Verdict;
  return std::to_array<Word<ControlAnswer::Verdict>>({{"done", kDone},
                                                      {"unchanged", kUnchanged},
                                                      {"refused", kRefused},
                                                      {"invalid", kInvalid},
                                                      {"unavailable", kUnavailable}});
}
void fields(auto& v, Is<ControlAnswer> auto& a) {
  v("verdict", a.verdict);
  v("text", a.text);
  v("explanation", a.explanation, kOptional);
}

// One line, with its end.
std::string encode(const ControlRequest& request);
std::string encode(const ControlAnswer& answer);
// Without the line's end.  kInvalid, of an answer kCorrupt, names the member.
Result<ControlRequest> parse_control_request(std::string_view line);
Result<ControlAnswer> parse_control_answer(std::string_view line);

ControlAnswer::Verdict verdict_of(OperatorAnswer::Verdict verdict);

// kInvalid: not UTF-8, or longer; `what` of the request it is.
Status check_text(std::string_view what, const std::string& text, std::size_t bytes_max);
// " (did you mean X?)", where one of those that are known is near; else empty.
std::string did_you_mean(std::string_view typed, std::span<const std::string_view> known);

// The runs that words name, ascending: "all", a run TASK/METHOD/rN, a task or a method by its id
// (task:ID or method:NAME when one name is both), or places in the plan as order:0-3,7.  kNotFound,
// kInvalid: what was meant is not clear.
Result<std::vector<RunId>> select_runs(const Plan& plan, std::string_view words);
// The run of that name, TASK/METHOD/rN.  kNotFound says which one was probably meant.
Result<RunId> find_run(const Plan& plan, std::string_view name);

// What the names of a request are resolved against.
struct ControlNames {
  const Plan* plan = nullptr;
  const PlanView* view = nullptr;    // envelopes
  std::vector<std::string> workers;  // everyone who was ever here
};
ControlNames names_of(const Plan& plan, const Scheduler& scheduler);  // which both outlive them
// kInvalid, kNotFound: what is missing, too much, or not there.
Result<OperatorAct> act_of(const ControlRequest& request, const ControlNames& names, WallTime at);
}  // namespace proctor
