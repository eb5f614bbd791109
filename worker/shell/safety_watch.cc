#include "worker/shell/safety_watch.h"

#include <fmt/format.h>
#include <optional>
#include <tuple>
#include <utility>

#include "common/trace/judgement.h"
#include "common/trace/payloads.h"
#include "worker/gateway/model_answer.h"

namespace proctor {
void CommandWatch::answer(std::uint64_t call, std::string_view body) {
  std::set<std::tuple<std::string, CommandForm, std::string>> told;
  for (const SaidText& said : said_in(body)) {
    const CommandForm form = said.for_tool ? CommandForm::kCode : CommandForm::kText;
    // A secret in two events of a stream is whole only now.
    for (const CommandHit& hit : patterns_.find(secrets_.apply(said.text), form))
      if (told.emplace(hit.pattern, hit.form, hit.segment).second)
        tell(hit, fmt::format("model call {}, byte {}", call, said.in_body(hit.offset)));
  }
}

void CommandWatch::tool(const std::string& id, std::string_view command) {
  for (const CommandHit& hit : patterns_.find(secrets_.apply(command), CommandForm::kTool))
    tell(hit, "tool call " + id);
}

void CommandWatch::program(std::string_view words) {
  const std::string lines = program_lines(secrets_.apply(words));
  for (const CommandHit& hit : patterns_.find(lines, CommandForm::kExecuted)) tell(hit, "process");
}

void CommandWatch::tell(const CommandHit& hit, std::string source) {
  {
    const std::lock_guard lock(mutex_);
    if (!bound_.takes(hit)) return;
  }
  const events::CommandSeen seen{hit.pattern, std::string(word_of(hit.form)), hit.segment,
                                 std::move(source)};
  note_(events::kAlert.json(std::string(events::kOsRisk), to_json(seen), "agent", std::nullopt));
}

void CommandWatch::close() {
  const std::lock_guard lock(mutex_);
  if (bound_.left_out() == 0) return;
  note_(events::kAlert.json(std::string(events::kOsRisk), {{"left_out", bound_.left_out()}},
                            "agent", std::nullopt));
}

namespace {
std::string_view code_of(const CallAttempt& seen) {
  using enum CallAttempt::What;
  // A process that could not be read may have asked for what it may have, such as a path.
  if (seen.target == "?" || seen.what == kHarmless) return events::kRefusedCall;
  if (seen.what == kAddress) return events::kNetworkDenied;
  return seen.what == kFile ? events::kHostWrite : events::kEscape;
}
}  // namespace

void SafetyWatch::watch(DeniedCommands patterns, Redactor secrets) {
  commands_ = std::make_unique<CommandWatch>(std::move(patterns), std::move(secrets),
                                             [this](const Json& payload) { alert(payload); });
}

void SafetyWatch::close() {
  if (commands_) commands_->close();
  commands_.reset();
}

// Attempts are as many as the candidate likes; a command tells a bounded number of them.
void SafetyWatch::call(const std::string& stage, const CallAttempt& seen) {
  if (seen.what == CallAttempt::What::kProgram) {
    if (commands_) commands_->program(seen.target);
    return;
  }
  alert(events::kAlert.json(std::string(code_of(seen)),
                            to_json(events::CallSeen{seen.call, seen.target}), stage,
                            std::nullopt));
}

void SafetyWatch::alert(const Json& payload) {
  const std::uint64_t seq = hooks_.note(payload);
  if (const std::optional<std::string> why = consider(payload)) hooks_.stop(seq, *why);
}

std::optional<std::string> SafetyWatch::consider(const Json& payload) {
  const auto told = events::kAlert.read(payload);
  if (!told) return std::nullopt;
  const auto& [code, signals, stage, why] = *told;
  const std::optional<AlertMeaning> meaning = meaning_of(code, signals, stage);
  if (!meaning) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (known_.insert(meaning->violation).second) new_.push_back(meaning->violation);
  const bool stops = meaning->critical && stage == "agent" && stop_run_;
  if (!stops || std::exchange(stopped_, true)) return std::nullopt;
  return meaning->violation;
}

void SafetyWatch::untold(const std::string& stage, const ExecOutcome& outcome) {
  if (outcome.attempts_untold == 0) return;
  alert(events::kAlert.json(std::string(kUntold), {{"attempts", outcome.attempts_untold}}, stage,
                            std::nullopt));
}

std::vector<std::string> SafetyWatch::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(new_, {});
}

void SafetyWatch::back_to(const std::vector<std::string>& agents) {
  const std::lock_guard lock(mutex_);
  known_ = {agents.begin(), agents.end()};
  new_.clear();
}
}  // namespace proctor
