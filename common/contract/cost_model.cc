#include "common/contract/cost_model.h"

#include <algorithm>

namespace proctor {
namespace {

__extension__ typedef unsigned __int128 Wide;

// quantity * price in 1e-12 USD, over a common divisor.  Saturates: a quantity beyond all measure
// is charged at the ceiling, never at what is left after an overflow.
class Sum {
 public:
  void add(Wide quantity, std::uint64_t pico_usd) {
    Wide product = 0;
    if (__builtin_mul_overflow(quantity, Wide{pico_usd}, &product) ||
        __builtin_add_overflow(total_, product, &total_))
      overflow_ = true;
  }
  // Rounds up once.
  MicroUsd in_micros(std::uint64_t divisor) const {
    constexpr std::uint64_t kPicoPerMicro = 1'000'000;
    const Wide unit = Wide{divisor} * kPicoPerMicro;
    const Wide most = static_cast<Wide>(kLedgerMax.micros());
    const Wide micros = total_ / unit + (total_ % unit == 0 ? 0 : 1);
    return MicroUsd::from_micros(
        static_cast<std::int64_t>(overflow_ ? most : std::min(micros, most)));
  }
  // Brings a sum over 1 to one over `factor`.
  void scale(std::uint64_t factor) {
    if (__builtin_mul_overflow(total_, Wide{factor}, &total_)) overflow_ = true;
  }

 private:
  Wide total_ = 0;
  bool overflow_ = false;
};

}  // namespace

Cost price(const CostModel& model, const Usage& usage) {
  constexpr std::uint64_t kMsPerMinute = 60'000;
  constexpr std::uint64_t kBytesPerGigabyte = 1'000'000'000;
  Sum lm;
  lm.add(usage.model_calls, model.model_call);
  lm.add(usage.input_tokens, model.input_token);
  lm.add(usage.output_tokens, model.output_token);
  Sum execution;
  execution.add(usage.tool_calls, model.tool_call);
  execution.scale(kMsPerMinute);
  execution.add(Wide{usage.setup_ms} + usage.agent_ms + usage.acceptance_ms, model.sandbox_minute);
  Sum overhead;
  overhead.add(1, model.run);
  overhead.scale(kBytesPerGigabyte);
  overhead.add(usage.stored_bytes, model.stored_gigabyte);
  return Cost{lm.in_micros(1), execution.in_micros(kMsPerMinute), MicroUsd::zero(),
              overhead.in_micros(kBytesPerGigabyte)};
}

}  // namespace proctor
