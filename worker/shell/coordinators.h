#pragma once
// Coordinators of a worker: those its command line names and those it has served.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/files.h"

namespace proctor {
// ServedCampaigns: which campaigns a worker of this home has served, and where, so that its next
// life finds what it has of each.
//   HOME/campaigns   "CAMPAIGN ADDRESS\tWHO\n", the last one served last
// Builds before it wrote no WHO, and before that one campaign, in HOME/last-campaign; both are
// still read.  Blocking.
//
// A campaign's id is only what its coordinator says.  So that nobody gets another's results or
// place by saying it first, what a worker keeps of a campaign belongs to the coordinator's key too:
// whoever says the same id with another key is served beside it, under a name of its own here.
struct ServedCampaign {
  std::string campaign, address;
  std::string who{};  // who_of() its coordinator's key; empty: an earlier build did not say
  friend bool operator==(const ServedCampaign&, const ServedCampaign&) = default;
};

// The oldest first; empty: none that is known.
std::vector<ServedCampaign> served_campaigns(const fs::path& home);
// The newest now.  One that says many ids forgets its own, and no other's.
void take(std::vector<ServedCampaign>& all, const ServedCampaign& served);
void remember_campaign(const fs::path& home, const ServedCampaign& served);

// A coordinator, by its public key (Z85); all that have none are one.
std::string who_of(std::string_view server_key);
// The id that its coordinator says, of a campaign as it is kept here.
std::string_view id_of(std::string_view kept);
// Is it a name of ours, which a coordinator's word may not have as an id?
bool is_kept_apart(std::string_view name);
// Under which name a campaign is kept that `who` calls `id`.  Nullopt: it has no room for one.
std::optional<std::string> kept_name(const std::vector<ServedCampaign>& served,
                                     const std::string& id, const std::string& who);

// Stop: a campaign's coordinator as a worker is told of it, and Addresses: which of its addresses
// is tried, and when.  Pure.
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

// The coordinators that a worker is told of: by --connect, and by a file or folder that people and
// programs change while it runs.
//
//   # name   addresses, tried in order                      server key   weight  priority  secrets
//   night    tcp://10.0.0.5:7400,tcp://10.0.0.6:7400        night.pub    1       5 KEY,TOKEN
//
// The last four may be left out.  A key is Z85, or a file beside this one; `-`: --server-key.
// Secrets are those that its runs may be given, of the worker's variables, and models that they may
// call: by the variable of a model's key, or as model:NAME; `-`: none, `*` as where it is left out:
// any.

// "tcp://a:1,tcp://b:1".  kInvalid: none.
Result<std::vector<std::string>> addresses_of(std::string_view text);

// The lines of a file, or of all files of a folder whose names do not begin with a dot, by name.
// kInvalid with "path:line: what"; kNotFound.
Result<std::vector<Stop>> read_connect_file(const fs::path& path);
}  // namespace proctor
