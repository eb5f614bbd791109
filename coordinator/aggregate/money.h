#pragma once
// Where a campaign's money is: from what the journal holds about attempts to envelopes, groups and
// the course over time.  For `proctor budget`, the burn-down picture and the check of a raise.
// Pure: no I/O, no clock (the time is given); integers only, so that the same journal gives the
// same bytes.  Sources: MONEY 1-7; R161, R163, R192.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/money.h"
#include "common/base/result.h"
#include "common/base/words.h"
#include "common/contract/cost_model.h"

namespace proctor {
struct MoneyInput {
  struct Scope {
    std::string name;  // "global", "stage:NAME", "task:ID", "method:NAME", "stratum:KEY=LEVEL"
    MicroUsd cap;      // as it holds now, raises included
    // What its attempts under way have used by their workers' last word; nothing: not known.
    std::optional<MicroUsd> metered{};
  };
  struct Run {
    std::string name, task, method;
    std::vector<std::string> strata;  // one value per key
    std::vector<std::uint32_t> path;  // the envelopes it needs room in
    MicroUsd ask;                     // what is reserved for one attempt
  };
  struct Attempt {
    enum class Money {
      kNone,     // denied or voided: it holds nothing
      kOut,      // reserved, and its end is expected
      kAtRisk,   // reserved, but nobody knows what became of it
      kSettled,  // charged
    };
    std::uint32_t run = 0;
    std::uint32_t no = 0;
    Money money = Money::kNone;
    MicroUsd ask, charged, overrun;
    Cost cost;
    Cost self_reported{};  // the part of `cost` that its agent said of itself
    // When money moved; 0: it did not.  `returned`: voided, the whole ask came back.
    WallTime granted_at, settled_at, returned_at;
  };
  struct Review {  // booked after its run had ended; charged to the run's envelopes
    std::uint32_t run = 0;
    MicroUsd charged;
    WallTime at;
  };
  struct Parked {
    std::uint32_t run = 0;
    std::uint32_t scope = 0;
    MicroUsd short_by;
  };
  struct Raise {
    std::uint32_t scope = 0;
    MicroUsd from, to;
    WallTime at;
  };
  // An envelope reached a registered share of its cap.
  struct Alert {
    std::uint32_t scope = 0;
    std::uint32_t percent = 0;
    MicroUsd spent, cap;  // then
    WallTime at;
  };
  struct Told {  // a sentence about a run (R190)
    WallTime at;
    std::string text;
  };
  std::string campaign;
  std::string unit = "USD";  // what amounts are counted in (cost_model.h)
  WallTime now;
  bool running = false;  // a coordinator is at work on it
  std::vector<std::string> strata_keys;
  std::vector<Scope> scopes;      // [0] is global
  std::vector<Run> runs;          // by run number
  std::vector<Attempt> attempts;  // Requires: their run is there; paths are scopes
  std::vector<Review> reviews;    // Requires: their run is there
  std::vector<Parked> parked;
  std::vector<Raise> raises;  // in the order in which they were made
  std::vector<Alert> alerts;  // likewise
  std::vector<Told> dominant;
};

struct EnvelopeMoney {
  std::string name;
  std::uint32_t depth = 0;  // how far inside it is shown
  bool across = false;      // beside the tree: of a method or a level of a stratum
  MicroUsd cap, spent, reserved;
  MicroUsd self_reported;  // the part of `spent` that agents said of themselves
  MicroUsd at_risk;        // the part of `reserved` that is held for attempts nobody hears of
  // The part of `reserved` that is used already; nothing: nobody runs who knows.
  std::optional<MicroUsd> metered;
  // Of a shared envelope: what others held when a run that is parked there was refused; from its
  // shortage, for this journal knows no more of them.
  MicroUsd elsewhere;
  MicroUsd free() const { return cap - spent - reserved; }
  std::uint64_t parked = 0;  // runs refused for lack of money here
  MicroUsd short_least, short_most;
  // What a raise must add so that every run parked here fits at its full ask.
  MicroUsd wanted;
  std::optional<MicroUsd> per_hour;      // spent per hour, lately; nothing: too early to say
  std::optional<WallTime> used_up_at;    // if it goes on like that; while it runs only
  std::optional<MicroUsd> declared_cap;  // as registered, when it was raised since
  std::vector<MoneyInput::Alert> alerts;
};

struct MoneyView {
  std::string campaign, unit;
  WallTime at;
  bool running = false;
  std::vector<EnvelopeMoney> envelopes;  // as the scopes: global, stages, tasks, those across
  std::vector<MoneyInput::Told> dominant;
  MicroUsd overrun;  // metered above an ask: charged to no envelope
};

MoneyView build_money(const MoneyInput& input);

enum class MoneyBy { kCategory, kMethod, kStratum, kTask };
constexpr auto words(MoneyBy) {
  using enum MoneyBy;
  return std::to_array<Word<MoneyBy>>(
      {{"category", kCategory}, {"method", kMethod}, {"stratum", kStratum}, {"task", kTask}});
}

struct MoneyGroup {
  std::string name;
  MicroUsd spent, reserved, at_risk;
  MicroUsd self_reported;      // the part of `spent` that agents said of themselves
  std::uint64_t runs = 0;      // that were granted money at least once
  std::uint64_t attempts = 0;  // that are settled; of human: reviews
  std::uint64_t parked = 0;
};
// In the order of the plan; groups in which nothing happened are there too.  By stratum a run
// counts once under each key.  By category `spent` is what was metered and nothing is reserved.
std::vector<MoneyGroup> group_money(const MoneyInput& input, MoneyBy by);

// An envelope that a review does not fit in, outermost first, and what a raise must bring it to:
// room for the review and, where runs are parked, for one of them (or the raise would be refused).
struct ReviewShort {
  std::string scope;
  MicroUsd cap, spent, reserved, short_by, raise_to;
};
// Requires: the run is there.
std::vector<ReviewShort> check_review(const MoneyInput& input, std::uint32_t run, MicroUsd cost);

// May this envelope be raised to `to`?  kNotFound: no such envelope; kInvalid: why not, with the
// amount that would do.
Status check_raise(const MoneyInput& input, std::string_view scope, MicroUsd to);

// What an attempt, or one of these reviews, changes in an envelope, in the order of time; at one
// instant money comes back before it goes out again.
struct MoneyStep {
  std::int64_t at = 0;
  MicroUsd spent, reserved;
};
std::vector<MoneyStep> money_steps(const MoneyInput& input, std::uint32_t scope,
                                   std::span<const MoneyInput::Review> reviews);

std::string render_money_text(const MoneyView& view);
std::string render_groups_text(const std::vector<MoneyGroup>& groups);
// One object; `groups` under its key when a grouping was asked for.
std::string render_money_json(const MoneyView& view, std::string_view by,
                              const std::vector<MoneyGroup>& groups);
// Money spent and reserved over time under the caps, a panel for each envelope that matters.
std::string render_burndown_svg(const MoneyInput& input);
}  // namespace proctor
