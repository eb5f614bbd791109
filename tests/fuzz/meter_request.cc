// What an agent says to its meter, line by line, to a real meter: whatever comes, the meter's
// invariants hold and each answer is one line of JSON.
#include "common/base/json.h"
#include "common/contract/cost_model_parser.h"
#include "tests/fuzz/fuzz.h"
#include "worker/meter/meter_protocol.h"

namespace proctor::fuzz::meter_request {

RunMeter small_meter() {
  MeterPlan plan;
  plan.prices = fallback_cost_model();
  plan.ask = MicroUsd::from_micros(5'000'000);
  plan.caps.tool_calls = 5;
  plan.caps.tokens = 1000;
  plan.caps.calls_per_minute = 7;
  return RunMeter(plan);
}

std::string answer_to(RunMeter& meter, const MeterRequest& request, Instant now) {
  if (std::holds_alternative<MeterStatus>(request.operation)) return meter_status_line(meter);
  Result<MeterAnswer> answer = Error{Errc::kInvalid, "never asked"};
  if (const auto* reserve = std::get_if<MeterReserve>(&request.operation))
    answer = meter.reserve(*reserve, now);
  else if (const auto* charge = std::get_if<MeterCharge>(&request.operation))
    answer = meter.charge(*charge);
  else if (const auto* release = std::get_if<MeterRelease>(&request.operation))
    answer = meter.release(*release);
  return answer.ok() ? meter_line(request.id, *answer)
                     : meter_error_line(request.id, answer.error().detail);
}

void check_answer(std::string line) {
  PROCTOR_ASSERT(line.find('\n') == line.size() - 1);
  line.pop_back();
  for (const char c : line) PROCTOR_ASSERT(' ' <= c && c <= '~');
  PROCTOR_ASSERT(must(parse_json(line)).is_object());
}

void target(std::string_view bytes) {
  RunMeter meter = small_meter();
  Instant now{};
  while (!bytes.empty()) {
    const std::string_view line = take_part(bytes, '\n');
    now = now + Millis(1000);
    const Result<MeterRequest> request = parse_meter_request(line);
    check_answer(request.ok() ? answer_to(meter, *request, now)
                              : meter_error_line("", request.error().detail));
    meter.check();
    PROCTOR_ASSERT(meter.spent() + meter.held() <= meter.limit());
  }
  meter.agent_gone();
  meter.check();
}

}  // namespace proctor::fuzz::meter_request
