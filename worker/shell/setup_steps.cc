#include "worker/shell/setup_steps.h"

namespace proctor {
namespace {

std::uint64_t count_of(const Json& step, const char* name) {
  const auto it = step.find(name);
  return it != step.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
}

std::chrono::milliseconds time_of(const Json& step, const char* name) {
  return std::chrono::milliseconds(count_of(step, name));
}

}  // namespace

Json record_of_step(const ExecOutcome& outcome) {
  return {{"wall_ms", static_cast<std::uint64_t>(outcome.wall.count())},
          {"cpu_ms", static_cast<std::uint64_t>(outcome.cpu.count())},
          {"memory_peak", outcome.memory_peak},
          {"stdout_bytes", outcome.stdout_bytes},
          {"stderr_bytes", outcome.stderr_bytes}};
}

ExecOutcome step_as_recorded(const Json& step) {
  ExecOutcome outcome;
  outcome.wall = time_of(step, "wall_ms");
  outcome.cpu = time_of(step, "cpu_ms");
  outcome.memory_peak = count_of(step, "memory_peak");
  outcome.stdout_bytes = count_of(step, "stdout_bytes");
  outcome.stderr_bytes = count_of(step, "stderr_bytes");
  return outcome;
}

Status copy_output(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  if (!fs::exists(from, ec)) return ok_status();
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, ec);
  if (ec) return Error{Errc::kUnavailable, "copy " + from.string() + ": " + ec.message()};
  return ok_status();
}

std::chrono::milliseconds patience(const std::vector<SetupStep>& setup) {
  std::chrono::milliseconds out = std::chrono::minutes(1);
  for (const SetupStep& step : setup) out += step.timeout;
  return out;
}

std::string sandbox_word(const SandboxEngine& engine) {
  std::string out(to_string(engine.kind()));
  if (const auto limits = engine.enforcement(); limits.contains("kernel"))
    out += "+" + limits.at("kernel");
  return out;
}

}  // namespace proctor
