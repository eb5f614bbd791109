#pragma once
// What an agent and the meter say to each other: one JSON object a line (docs/metering.md).
// Everything an agent writes is hostile: bounded, UTF-8, whole numbers only, known keys only.
// Pure; any thread.  Errors: kInvalid with the exact reason, which goes back to the agent.
#include <array>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "common/base/fields.h"
#include "common/base/result.h"
#include "worker/core/run_meter.h"

namespace proctor {
inline constexpr std::size_t kMeterLineBytes = std::size_t{64} << 10;
// Of an agent's own name for a call: each run keeps up to 20,000 of them.
inline constexpr std::size_t kMeterIdBytes = 100;

struct MeterStatus {};
using MeterOperation = std::variant<MeterReserve, MeterCharge, MeterRelease, MeterStatus>;
struct MeterRequest {
  std::string run;  // empty: not said
  std::string id;   // empty: none
  MeterOperation operation;
};

// By the place of an operation in the variant.
inline constexpr std::array<std::string_view, 4> kMeterOps{"reserve", "charge", "release",
                                                           "status"};
static_assert(std::is_same_v<MeterOperation,
                             std::variant<MeterReserve, MeterCharge, MeterRelease, MeterStatus>>,
              "kMeterOps is by place");

// An action and an amount as an agent says them; a run's trace has the same members.
void action_fields(auto& v, Is<ActionName> auto& a) {
  v("action", a.type, kOptional);
  v("provider", a.provider, kOptional);
  v("model", a.model, kOptional);
  v("unit", a.unit, kOptional);
}
void amount_fields(auto& v, Is<Amount> auto& a) {
  v("input_tokens", a.input_tokens);
  v("output_tokens", a.output_tokens);
  v("quantity", a.units);
  v("ms", a.ms);
}

// One line without its end.
Result<MeterRequest> parse_meter_request(std::string_view line);

// Lines with their '\n', ASCII only.
std::string meter_line(const std::string& id, const MeterAnswer& answer);
std::string meter_error_line(const std::string& id, std::string_view reason);
std::string meter_status_line(const RunMeter& meter);
// Sent to every client without being asked.
std::string meter_stop_line(const MeterStop& stop, Millis grace);
}  // namespace proctor
