#pragma once
// Stop: a campaign's coordinator as a worker is told of it, and Addresses: which of its addresses
// is tried, and when.  Pure.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace proctor {

struct Stop {
  std::string name;
  std::vector<std::string> addresses;  // at least one
  std::string server_key{};            // Z85; empty: the worker's --server-key
  std::uint32_t priority = 5;          // higher first
  std::uint32_t weight = 1;            // of its share of the slots, among equals
  // Names of variables of the worker that its runs may be given as secrets; nothing: any of them.
  std::optional<std::vector<std::string>> secrets{};
  friend bool operator==(const Stop&, const Stop&) = default;
};

// The addresses of one coordinator (a standby has several), tried in turn.  Who was sent away comes
// back after kRest where that may change (a file of coordinators), else never.
class Addresses {
 public:
  static constexpr Millis kRest{30'000};
  explicit Addresses(std::vector<std::string> all) : all_(std::move(all)) {}

  const std::string& at() const { return all_[at_]; }
  bool has_choice() const { return 1 < all_.size(); }
  // Where an earlier life of the worker was, if it still is one of them.
  void begin_at(const std::string& address);
  // Nobody answers.  True: it is at another now.
  bool next();
  // Its campaign is over, or it does not want this worker.  `again`: it is asked once more later.
  void sent_away(Instant now, bool again);
  bool rests(Instant now) const { return over_ || (rests_until_ && now < *rests_until_); }
  bool is_over() const { return over_; }
  // Named again, perhaps with others: it is asked at once.
  void replace(std::vector<std::string> all);

 private:
  std::vector<std::string> all_;
  std::size_t at_ = 0;
  std::optional<Instant> rests_until_;
  bool over_ = false;
};

}  // namespace proctor
