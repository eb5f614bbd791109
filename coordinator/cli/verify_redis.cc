#include "coordinator/cli/verify_redis.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/ledger/redis_ledger.h"
#include "coordinator/cli/redis_access.h"
#include "coordinator/cli/shared_envelope.h"
#include "coordinator/core/notes.h"
#include "coordinator/shell/plan_view.h"

namespace proctor::cli {
namespace {

using Attempts = std::map<AskId, const RestoredAttempt*>;

Attempts by_ask(const RestoredState& state) {
  Attempts out;
  for (const RestoredAttempt& a : state.attempts) out.emplace(AskId{a.attempt, a.seq}, &a);
  return out;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t n = 0;
  return read_number(text, &n) ? std::optional(n) : std::nullopt;
}

std::string field_of(const RedisLedger::Fields& fields, std::string_view name) {
  for (const auto& [key, text] : fields)
    if (key == name) return text;
  return "";
}

// One stored reservation, read from "state ask scopes[ more]".
struct Row {
  char state = '?';
  MicroUsd ask, charged;
  std::string scopes;
};
std::optional<Row> row_of(const std::string& text) {
  const std::vector<std::string_view> words = split(text, ' ');
  if (words.size() < 3 || words[0].size() != 1) return std::nullopt;
  const std::optional<std::int64_t> ask = number_of(words[1]);
  if (!ask) return std::nullopt;
  Row row{words[0][0], MicroUsd::from_micros(*ask), MicroUsd::zero(), std::string(words[2])};
  if (row.state == 's') {
    const auto actual = words.size() == 4 ? number_of(words[3]) : std::nullopt;
    if (!actual) return std::nullopt;
    row.charged = std::min(MicroUsd::from_micros(*actual), row.ask);
  }
  const bool known = row.state == 'p' || row.state == 'd' || row.state == 's' || row.state == 'v';
  return known ? std::optional<Row>(row) : std::nullopt;
}

class Comparison {
 public:
  Comparison(const PlanView& view, const RestoredState& before, const RedisLedger::Stored& redis,
             const RestoredState& after, const MoneyProblem& problem)
      : view_(view),
        redis_(redis),
        before_(by_ask(before)),
        after_(by_ask(after)),
        reviews_(after.reviews),
        problem_(problem),
        spent_(view.scopes.size()),
        reserved_(view.scopes.size()) {}

  bool run() {
    std::map<AskId, Row> rows;
    for (const auto& [id, text] : redis_.rows) read_row(id, text, rows);
    if (!count(rows)) return false;
    for (const auto& [where, what] : found_in_envelopes()) problem_(where, what);
    for (const auto& [where, what] : found_in_rows_) problem_(where, what);
    return true;
  }
  // After run(), of the envelope that is shared.
  std::optional<OwnPart> part() const {
    if (!view_.shared) return std::nullopt;
    return OwnPart{spent_[view_.shared->raw()], reserved_[view_.shared->raw()]};
  }

 private:
  void wrong_row(const std::string& id, const std::string& what) {
    found_in_rows_.emplace_back("redis: reservation " + printable(id, 60), what);
  }
  std::string path_text(RunId run) const {
    std::string out;
    for (const ScopeId s : view_.path(run))
      out += (out.empty() ? "" : ",") + std::to_string(s.raw());
    return out;
  }
  static const RestoredAttempt* find(const Attempts& attempts, const AskId& id) {
    const auto it = attempts.find(id);
    return it == attempts.end() ? nullptr : it->second;
  }

  void read_row(const std::string& id, const std::string& text, std::map<AskId, Row>& rows) {
    const std::optional<Row> row = row_of(text);
    const std::vector<std::string_view> parts = split(id, '.');
    std::vector<std::uint32_t> n;
    for (const std::string_view p : parts)
      if (const auto value = whole_number<std::uint32_t>(p)) n.push_back(*value);
    if (!row || parts.size() != 3 || n.size() != 3)
      return wrong_row(id, "holds \"" + printable(text, 100) + "\", which no ledger writes");
    const AskId ask{{RunId(n[0]), AttemptNo(n[1])}, n[2]};
    rows.emplace(ask, *row);
    if (row->state == 'd') return;  // moved no money; a later ask of the same attempt may have
    const RestoredAttempt* was = find(before_, ask);
    const RestoredAttempt* is = find(after_, ask);
    if (is == nullptr || view_.runs.size() <= n[0])
      return wrong_row(id, "holds \"" + printable(text, 100) + "\", the journal has no such ask");
    if (row->ask != is->ask || row->scopes != path_text(ask.attempt.run))
      return wrong_row(id, "holds \"" + printable(text, 100) + "\", the journal says an ask of " +
                               std::to_string(is->ask.micros()) + " from " +
                               path_text(ask.attempt.run));
    if (row->state == 's' && is->settled && row->charged != is->charged)
      wrong_row(id, "was charged " + format_usd_exact(row->charged) + ", the journal says " +
                        format_usd_exact(is->charged));
    if (row->state == 'p' && was != nullptr && was->settled)
      wrong_row(id, "is pending, the journal has settled it");
  }

  // What the envelopes must hold, from the rows and the journal.
  bool count(const std::map<AskId, Row>& rows) {
    for (const auto& [id, row] : rows)
      if (row.state == 'p') add(reserved_, id.attempt.run, row.ask);
    for (const RunReviewed& r : reviews_) add(spent_, r.run, r.charged);
    for (const auto& [id, is] : after_) {
      if (view_.runs.size() <= id.attempt.run.raw()) continue;  // told by the journal's own audit
      const RestoredAttempt* was = find(before_, id);
      const auto row = rows.find(id);
      if (was != nullptr && was->settled) {
        add(spent_, id.attempt.run, was->charged);
      } else if (row != rows.end()) {
        if (row->second.state == 's') add(spent_, id.attempt.run, row->second.charged);
      } else if (is->settled) {
        if (was == nullptr || !is_reserved(*was)) return false;  // before Redis was read, or after?
        add(spent_, id.attempt.run, is->charged);
      } else if (was != nullptr && is_reserved(*was) && is_reserved(*is)) {
        wrong_row(to_string(id),
                  "is not there, the journal says it holds " + format_usd_exact(is->ask));
      }
    }
    return true;
  }
  void add(std::vector<MicroUsd>& sums, RunId run, MicroUsd amount) const {
    if (view_.runs.size() <= run.raw()) return;
    for (const ScopeId s : view_.path(run)) sums[s.raw()] = sums[s.raw()] + amount;
  }

  std::vector<std::pair<std::string, std::string>> found_in_envelopes() const {
    std::vector<std::pair<std::string, std::string>> out;
    std::map<std::string, std::string> held(redis_.scopes.begin(), redis_.scopes.end());
    for (std::size_t i = 0; i < view_.scopes.size(); ++i) {
      const std::string want = std::to_string(view_.scopes[i].cap.micros()) + " " +
                               std::to_string(spent_[i].micros()) + " " +
                               std::to_string(reserved_[i].micros());
      const auto text = held.extract(std::to_string(i));
      if (text && text.mapped() == want) continue;
      out.emplace_back("redis: envelope " + view_.scopes[i].name,
                       "holds " + (text ? printable(text.mapped(), 100) : std::string("nothing")) +
                           ", the journal says " + want + " (cap spent reserved, micro-dollars)");
    }
    for (const auto& [index, text] : held)
      out.emplace_back("redis: envelope " + printable(index, 40),
                       "holds " + printable(text, 100) + ", the plan has no such envelope");
    return out;
  }

  const PlanView& view_;
  const RedisLedger::Stored& redis_;
  const Attempts before_, after_;
  const std::vector<RunReviewed>& reviews_;
  const MoneyProblem& problem_;
  std::vector<MicroUsd> spent_, reserved_;
  std::vector<std::pair<std::string, std::string>> found_in_rows_;
};

// Redis hears of a raise that a coordinator was asked for; of others only from the next one.
bool any_act(const RestoredState& state, const std::function<bool(const OperatorAct&)>& is) {
  return std::ranges::any_of(state.standing, [&](const Note& note) {
    if (note.kind != kNoteOperator) return false;
    const Result<OperatorFact> fact = operator_fact_of(note);
    return fact.ok() && is(fact->act);
  });
}
bool was_asked_live(const RestoredState& state, const BudgetRaised& raise) {
  return any_act(state, [&](const OperatorAct& act) {
    return act.kind == OperatorActKind::kRaise && act.at == raise.at && raise.to == act.to;
  });
}
bool was_asked_live(const RestoredState& state, const RunReviewed& review) {
  return any_act(state, [&](const OperatorAct& act) {
    return act.kind == OperatorActKind::kReview && act.at == review.at &&
           act.runs == std::vector<RunId>{review.run};
  });
}

// A raise or a review is durable first, then told.
bool may_be_on_its_way(const RestoredState& state, WallTime begun) {
  const auto live = [&](const auto& r) { return begun < r.at && was_asked_live(state, r); };
  return std::ranges::any_of(state.raises, live) || std::ranges::any_of(state.reviews, live);
}

// What was raised or reviewed after the last coordinator ended is not in its Redis.
Result<WallTime> last_begun(JournalReader& journal) {
  PROCTOR_TRY(const std::vector<EpochBegun> epochs, journal.epochs());
  return epochs.empty() ? WallTime(0) : epochs.back().at;
}
void go_back_to(WallTime begun, PlanView& view, RestoredState& state) {
  for (auto r = state.raises.rbegin(); r != state.raises.rend(); ++r)
    if (begun < r->at && !was_asked_live(state, *r) && r->scope.raw() < view.scopes.size())
      view.scopes[r->scope.raw()].cap = r->from;
  std::erase_if(state.reviews,
                [&](const RunReviewed& r) { return begun < r.at && !was_asked_live(state, r); });
}

// Compares, or says in one line why not.
Result<std::string> compare_with(const FrozenCampaign& frozen, RedisLedger& ledger,
                                 JournalReader& journal, const MoneyProblem& problem) {
  const PlanView registered = make_plan_view(frozen.campaign, frozen.plan);
  constexpr int kReadings = 20;
  constexpr std::chrono::milliseconds kUntilTold(100);
  for (int i = 0; i < kReadings; ++i) {
    PROCTOR_TRY(const RestoredState before, journal.load());
    PROCTOR_TRY(const RedisLedger::Stored redis, ledger.read_all());
    PROCTOR_TRY(RestoredState after, journal.load());
    // With `line`, what there is to say of a shared envelope.
    const auto with_part = [&](std::string line, const std::optional<OwnPart>& exact,
                               const MoneyProblem& tell) {
      const auto& shared = frozen.campaign.envelopes.shared;
      if (!shared) return line;
      return line + "; " +
             compare_part(frozen.id, shared->scope(), redis.shared, exact, after, tell);
    };
    if (redis.head.empty() && redis.scopes.empty() && redis.rows.empty())
      return with_part("holds nothing of this campaign: not compared", std::nullopt, problem);
    const std::string epoch = field_of(redis.head, "epoch");
    const std::optional<std::int64_t> held = number_of(epoch);
    const auto known = static_cast<std::int64_t>(after.last_epoch.raw());
    if (!held || known < *held) {
      problem("redis: head", "holds the epoch \"" + printable(epoch, 40) +
                                 "\", the journal's last is " + std::to_string(known));
      return std::string("not compared");
    }
    if (*held < known || before.last_epoch != after.last_epoch ||
        field_of(redis.head, "state") != "open") {
      if (field_of(redis.head, "state") == "building" || before.last_epoch != after.last_epoch)
        continue;
      return with_part("holds epoch " + epoch + " of an earlier life, the journal's is " +
                           std::to_string(known) + ": not compared",
                       std::nullopt, problem);
    }
    PlanView then = registered;
    PROCTOR_CHECK_OK(apply_raises(then, after.raises));
    PROCTOR_TRY(const WallTime begun, last_begun(journal));
    const bool moves = may_be_on_its_way(after, begun);
    go_back_to(begun, then, after);
    std::vector<std::pair<std::string, std::string>> found;
    const auto note = [&](const std::string& at, const std::string& it) {
      found.emplace_back(at, it);
    };
    std::optional<OwnPart> part;
    const bool clear = compare_redis(then, before, redis, after, note, part);
    std::string line = std::to_string(redis.scopes.size()) + " envelopes and " +
                       std::to_string(redis.rows.size()) + " reservations compared";
    if (clear) line = with_part(std::move(line), part, note);
    if (clear && !found.empty() && moves && i + 1 < kReadings) {
      std::this_thread::sleep_for(kUntilTold);
      continue;
    }
    for (const auto& [where, what] : found) problem(where, what);
    if (clear) return line;
  }
  return std::string("the campaign moves too fast to be compared now: verify again");
}

}  // namespace

bool compare_redis(const PlanView& view, const RestoredState& before,
                   const RedisLedger::Stored& redis, const RestoredState& after,
                   const MoneyProblem& problem, std::optional<OwnPart>& part) {
  Comparison comparison(view, before, redis, after, problem);
  if (!comparison.run()) return false;
  part = comparison.part();
  return true;
}

std::string verify_redis(const FrozenCampaign& frozen, JournalReader& journal,
                         const MoneyProblem& problem) {
  if (frozen.campaign.ledger == Campaign::LedgerKind::kJournal)
    return "none (budget.ledger: journal)";
  const std::optional<std::string> address = redis_address(frozen);
  if (!address) return "none runs: not compared";
  const auto compared = [&]() -> Result<std::string> {
    PROCTOR_TRY(RedisLedger ledger, configured_ledger(frozen.campaign, frozen.id, *address));
    return compare_with(frozen, ledger, journal, problem);
  }();
  if (compared.ok()) return *compared;
  if (compared.error().code == Errc::kUnavailable)
    return "does not answer: not compared (" + compared.error().detail + ")";
  problem("redis", compared.error().detail);
  return "not compared";
}

}  // namespace proctor::cli
