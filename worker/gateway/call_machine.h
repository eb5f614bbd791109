#pragma once
// The life of one call, and what it is charged however it ends: each exit has one settlement, and
// there is one for every exit (docs/gateway.md, "What a call costs").  Pure; one thread.
#include <optional>
#include <string_view>

#include "common/contract/models_file.h"
#include "worker/core/run_meter.h"

namespace proctor {

struct Settlement {
  enum class How { kReleased, kUsage, kCeiling, kPartial };
  How how = How::kReleased;
  Amount actual{};        // kUsage, kPartial
  std::string_view flag;  // why it is no usage: "unknown", "no_usage", "partial"; empty: it is
};
std::string_view to_string(Settlement::How how);

class CallMachine {
 public:
  enum class State { kReserved, kSending, kSent, kRelaying, kDraining, kSettled };
  CallMachine(ModelApi api, bool errors_are_free, std::uint64_t output_granted)
      : api_(api), errors_are_free_(errors_are_free), output_granted_(output_granted) {}

  State state() const { return state_; }
  // In this order; each at most once, but for again().
  void sending();             // the first byte goes out
  void sent();                // the last byte is out: it may run from now on
  void answered(int status);  // the answer's head has come
  void client_gone();
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
// Of those, the ones after which the same request may be granted later.
bool is_busy(int status);

}  // namespace proctor
