#pragma once
// What an agent and the meter say to each other: one JSON object a line (docs/metering.md).
// Everything an agent writes is hostile: bounded, UTF-8, whole numbers only, known keys only.
// Pure; any thread.  Errors: kInvalid with the exact reason, which goes back to the agent.
#include <string>
#include <string_view>
#include <variant>

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

// One line without its end.
Result<MeterRequest> parse_meter_request(std::string_view line);

// Lines with their '\n', ASCII only.
std::string meter_line(const std::string& id, const MeterAnswer& answer);
std::string meter_error_line(const std::string& id, std::string_view reason);
std::string meter_status_line(const RunMeter& meter);
// Sent to every client without being asked.
std::string meter_stop_line(const MeterStop& stop, Millis grace);
}  // namespace proctor
