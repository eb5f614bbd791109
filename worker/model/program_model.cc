#include "worker/model/program_model.h"

#include "common/base/json.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "worker/model/call_rules.h"
#include "worker/model/model.h"

namespace proctor {
namespace {

constexpr int kOk = 200, kTooMany = 429;

std::string dumped(const Json& value) {
  return value.dump(-1, Json::Utf8::kReplace);
}

std::string request_of(const ModelAccess& access, const ProgramTask& task, const Json& asked) {
  return dumped({{"model", asked["model"]},
                 {"task", task.task},
                 {"sample", task.sample},
                 {"system", asked["messages"][0]["content"]},
                 {"user", asked["messages"][1]["content"]},
                 {"max_output_tokens", asked[access.output_limit]},
                 {"timeout_ms", access.total.count()}}) +
         "\n";
}

// What it wrote, as chat completions have it; what is no such thing stays as it is.
std::string answer_in(const std::string& out) {
  const Result<Json> said = parse_json(out, {.bytes_max = kModelReplyBytes, .depth_max = 64});
  if (!said.ok() || !said->is_object() || !said->contains("text")) return out;
  Json answer = {{"choices", {{{"message", {{"content", (*said)["text"]}}}}}}};
  if (const auto usage = said->find("usage"); usage != said->end() && usage->is_object())
    answer["usage"] = {{"prompt_tokens", usage->value("input_tokens", Json())},
                       {"completion_tokens", usage->value("output_tokens", Json())}};
  return dumped(answer);
}

}  // namespace

Result<CassetteCall> ask_program(const ModelAccess& access, const ProgramTask& task,
                                 std::string_view body, const std::function<bool()>& stop) {
  PROCTOR_TRY(const Json asked, parse_json(body));
  CommandSpec spec;
  spec.argv = access.program;
  spec.stdin_bytes = request_of(access, task, asked);
  spec.timeout = access.total;
  spec.output_max = kModelReplyBytes + 1;  // one more than an answer may have
  spec.cancelled = stop;
  Result<CommandOutcome> outcome = run_command(spec);
  if (!outcome.ok()) return Error{Errc::kUnavailable, outcome.error().detail};
  CassetteCall out;
  out.answer = printable(outcome->describe(), 500);
  if (outcome->cancelled || outcome->timed_out) return out;
  if (outcome->exit_code == kModelBusyExit) out.status = kTooMany;
  if (outcome->success() || outcome->output_cut) {
    out.status = kOk;
    out.answer = answer_in(outcome->out);
  }
  return out;
}

}  // namespace proctor
