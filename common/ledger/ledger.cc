#include "common/ledger/ledger.h"

#include <utility>

namespace proctor {
namespace {
bool is_amount(MicroUsd m) {
  return MicroUsd::zero() <= m && m <= kLedgerMax;
}

Error conflict(const AskId& id, std::string_view what) {
  return Error{Errc::kConflict, "reservation " + to_string(id) + " " + std::string(what)};
}

Error not_found(const AskId& id) {
  return Error{Errc::kNotFound, "no reservation " + to_string(id)};
}
}  // namespace

std::string to_string(const AskId& id) {
  return to_string(id.attempt) + "." + std::to_string(id.seq);
}

Ledger::Ledger(std::vector<ScopeSpec> scopes) : specs_(std::move(scopes)) {
  balances_.reserve(specs_.size());
  for (const ScopeSpec& spec : specs_) {
    PROCTOR_ASSERT(is_amount(spec.cap));
    balances_.push_back({spec.cap, MicroUsd::zero(), MicroUsd::zero(), {}});
  }
}

Result<Ledger> Ledger::restored(std::vector<ScopeSpec> scopes,
                                const std::vector<ReserveOp>& pending,
                                const std::vector<MicroUsd>& spent) {
  if (spent.size() != scopes.size())
    return Error{Errc::kInvalid, "one spent amount per scope is needed"};
  Ledger out(std::move(scopes));
  for (std::size_t i = 0; i < spent.size(); ++i) {
    ScopeBalance& b = out.balances_[i];
    if (spent[i] < MicroUsd::zero() || b.cap < spent[i]) {
      return Error{Errc::kCorrupt, "journal: spent of scope " + out.specs_[i].name + " is " +
                                       format_usd(spent[i]) + " of " + format_usd(b.cap)};
    }
    b.spent = spent[i];
  }
  for (const ReserveOp& op : pending) {
    PROCTOR_TRY(const ReserveAnswer answer, out.reserve(op));
    if (answer.kind == ReserveAnswer::Kind::kGranted && !answer.replayed) continue;
    return Error{Errc::kCorrupt, "journal: pending reservation " + to_string(op.id) +
                                     " is repeated or passes the cap of scope " +
                                     out.specs_[answer.short_scope.raw()].name};
  }
  return out;
}

Status Ledger::validate(const ReserveOp& op) const {
  const auto invalid = [&](std::string_view what) {
    return Error{Errc::kInvalid, "reservation " + to_string(op.id) + ": " + std::string(what)};
  };
  if (!is_amount(op.ask)) return invalid("the ask is not between 0 and 2^53 - 1 micro-dollars");
  if (op.scopes.empty()) return invalid("no scope");
  if (kScopesPerReservation < op.scopes.size()) return invalid("more than 8 scopes");
  for (std::size_t i = 0; i < op.scopes.size(); ++i) {
    if (specs_.size() <= op.scopes[i].raw()) return invalid("unknown scope");
    for (std::size_t j = 0; j < i; ++j) {
      if (op.scopes[j] == op.scopes[i]) return invalid("a scope stands twice");
    }
  }
  return ok_status();
}

Result<ReserveAnswer> Ledger::replay(const ReserveOp& op, const Row& row) const {
  if (row.ask != op.ask || row.scopes != op.scopes) {
    return conflict(op.id, "exists with another ask or other scopes");
  }
  ReserveAnswer answer;
  answer.replayed = true;
  if (row.state == State::kDenied) {
    answer.short_scope = row.short_scope;
    answer.short_by = row.short_by;
    answer.later = row.later;
  } else {
    answer.kind = ReserveAnswer::Kind::kGranted;
  }
  return answer;
}

Result<ReserveAnswer> Ledger::reserve(const ReserveOp& op) {
  PROCTOR_CHECK_OK(validate(op));
  if (const auto it = rows_.find(op.id); it != rows_.end()) return replay(op, it->second);

  ReserveAnswer answer;
  answer.kind = ReserveAnswer::Kind::kGranted;
  for (const ScopeId scope : op.scopes) {
    const ScopeBalance& b = balances_[scope.raw()];
    if (op.ask <= b.free()) continue;
    answer = {ReserveAnswer::Kind::kDenied, scope, op.ask - b.free(), false,
              b.elsewhere.may_return};
    break;
  }
  return admit(op, answer);
}

ReserveAnswer Ledger::admit(const ReserveOp& op, ReserveAnswer answer) {
  Row row;
  row.ask = op.ask;
  row.scopes = op.scopes;
  if (answer.kind == ReserveAnswer::Kind::kDenied) {
    row.state = State::kDenied;
    row.short_scope = answer.short_scope;
    row.short_by = answer.short_by;
    row.later = answer.later;
  }
  // The row first: it is the only step that can fail (memory), the counters follow for certain.
  rows_.emplace(op.id, std::move(row));
  if (answer.kind == ReserveAnswer::Kind::kGranted) {
    for (const ScopeId scope : op.scopes) {
      MicroUsd& reserved = balances_[scope.raw()].reserved;
      reserved = reserved + op.ask;
    }
    ++open_;
  }
  check_after(op.scopes);
  return answer;
}

Result<SettleAnswer> Ledger::settle(const SettleOp& op) {
  if (!is_amount(op.actual)) {
    return Error{Errc::kInvalid, "reservation " + to_string(op.id) +
                                     ": the amount is not between 0 and 2^53 - 1 micro-dollars"};
  }
  const auto it = rows_.find(op.id);
  if (it == rows_.end()) return not_found(op.id);
  Row& row = it->second;
  if (row.state == State::kDenied) return conflict(op.id, "was denied");
  if (row.state == State::kVoided) return conflict(op.id, "was voided");
  const bool replayed = row.state == State::kSettled;
  if (replayed && row.actual != op.actual) {
    return conflict(op.id, "was settled with another amount");
  }
  const MicroUsd charged = std::min(op.actual, row.ask);
  if (!replayed) {
    for (const ScopeId scope : row.scopes) {
      ScopeBalance& b = balances_[scope.raw()];
      b.reserved = b.reserved - row.ask;
      b.spent = b.spent + charged;
    }
    row.state = State::kSettled;
    row.actual = op.actual;
    --open_;
    check_after(row.scopes);
  }
  return SettleAnswer{charged, op.actual - charged, replayed};
}

Status Ledger::cancel(const VoidOp& op) {
  const auto it = rows_.find(op.id);
  if (it == rows_.end()) return not_found(op.id);
  Row& row = it->second;
  if (row.state == State::kVoided) return ok_status();
  if (row.state == State::kDenied) return conflict(op.id, "was denied");
  if (row.state == State::kSettled) return conflict(op.id, "was settled");
  for (const ScopeId scope : row.scopes) {
    ScopeBalance& b = balances_[scope.raw()];
    b.reserved = b.reserved - row.ask;
  }
  row.state = State::kVoided;
  --open_;
  check_after(row.scopes);
  return ok_status();
}

Result<ReserveAnswer> Ledger::adopt(const ReserveOp& op, const ReserveAnswer& told) {
  PROCTOR_ASSERT(told.replayed);
  PROCTOR_CHECK_OK(validate(op));
  if (const auto it = rows_.find(op.id); it != rows_.end()) return replay(op, it->second);
  for (const ScopeId scope : op.scopes) {
    const ScopeBalance& b = balances_[scope.raw()];
    if (told.kind == ReserveAnswer::Kind::kGranted && b.cap - b.spent - b.reserved < op.ask)
      return conflict(op.id, "was granted, and passes the cap of " + specs_[scope.raw()].name);
  }
  if (specs_.size() <= told.short_scope.raw())
    return conflict(op.id, "was denied by an envelope that is not there");
  return admit(op, told);
}

Status Ledger::book(ScopeId scope, MicroUsd amount) {
  ScopeBalance& b = balances_[scope.raw()];
  if (amount < MicroUsd::zero() || b.cap - b.spent - b.reserved < amount)
    return Error{Errc::kCorrupt,
                 specs_[scope.raw()].name + ": " + format_usd(amount) + " more do not fit"};
  b.spent = b.spent + amount;
  check_after({scope});
  return ok_status();
}

void Ledger::set_elsewhere(ScopeId scope, Elsewhere elsewhere) {
  PROCTOR_ASSERT(is_amount(elsewhere.held));
  balances_[scope.raw()].elsewhere = elsewhere;
}

std::vector<ReserveOp> Ledger::pending() const {
  std::vector<ReserveOp> out;
  for (const auto& [id, row] : rows_)
    if (row.state == State::kPending) out.push_back({id, row.ask, row.scopes});
  std::ranges::sort(out, {}, &ReserveOp::id);
  return out;
}

std::vector<MicroUsd> Ledger::spent() const {
  std::vector<MicroUsd> out;
  for (const ScopeBalance& b : balances_) out.push_back(b.spent);
  return out;
}

void Ledger::forget(const AskId& id) {
  PROCTOR_ASSERT(!is_pending(id));
  rows_.erase(id);
}

LedgerAnswer Ledger::apply(const LedgerOp& op) {
  const auto flatten = [](auto result) -> LedgerAnswer {
    if (!result.ok()) return std::move(result).error();
    return std::move(result).value();
  };
  return std::visit(Overload{[&](const ReserveOp& r) { return flatten(reserve(r)); },
                             [&](const SettleOp& s) { return flatten(settle(s)); },
                             [&](const VoidOp& v) { return flatten(cancel(v)); },
                             [&](const ForgetOp& f) -> LedgerAnswer {
                               if (is_pending(f.id)) return conflict(f.id, "is still pending");
                               forget(f.id);
                               return Unit{};
                             }},
                    op);
}

void Ledger::raise(ScopeId scope, MicroUsd cap) {
  PROCTOR_ASSERT(balances_[scope.raw()].cap <= cap && is_amount(cap));
  specs_[scope.raw()].cap = balances_[scope.raw()].cap = cap;
}

ScopeBalance Ledger::balance(ScopeId scope) const {
  PROCTOR_ASSERT(scope.raw() < balances_.size());
  return balances_[scope.raw()];
}

bool Ledger::is_pending(const AskId& id) const {
  const auto it = rows_.find(id);
  return it != rows_.end() && it->second.state == State::kPending;
}

void Ledger::check_after(const std::vector<ScopeId>& touched) const {
  PROCTOR_ASSERT(open_ <= rows_.size());
  for (const ScopeId scope : touched) {
    const ScopeBalance& b = balances_[scope.raw()];
    PROCTOR_ASSERT(MicroUsd::zero() <= b.spent);
    PROCTOR_ASSERT(MicroUsd::zero() <= b.reserved);
    PROCTOR_ASSERT(b.spent + b.reserved <= b.cap);
    if (open_ == 0) PROCTOR_ASSERT(b.reserved == MicroUsd::zero());
  }
}

// So many looks without a sign, some five seconds, and a member counts as killed: the
// others do not wait for it to write anything down.
constexpr int kLooksWithoutSign = 20;

const SharedMember* SharedView::find(std::string_view id) const {
  const auto it = std::ranges::find(members, id, &SharedMember::id);
  return it == members.end() ? nullptr : &*it;
}

Elsewhere SharedView::elsewhere_of(std::string_view id) const {
  Elsewhere out;
  for (const SharedMember& m : members) {
    if (m.id == id) continue;
    out.held = std::min(kLedgerMax, out.held + m.held());
    out.may_return =
        out.may_return || m.state == SharedMember::State::kUnheard || MicroUsd::zero() < m.reserved;
  }
  return out;
}

void SharedBook::apply(const SharedFact& fact) {
  if (const auto* own = std::get_if<SharedLimit>(&fact)) {
    limit_ = own->limit;
    return;
  }
  const auto& other = std::get<SharedMember>(fact);
  if (other.id != self_) known_.insert_or_assign(other.id, other);
}

std::vector<SharedMember> SharedBook::news(const SharedView& view) const {
  std::vector<SharedMember> out;
  for (const SharedMember& m : view.members) {
    if (m.id == self_) continue;
    const auto it = known_.find(m.id);
    const bool left = m.state == SharedMember::State::kLeft;
    const bool same = it != known_.end() && it->second.ceiling == m.ceiling &&
                      (it->second.state == SharedMember::State::kLeft) == left &&
                      (!left || it->second.spent == m.spent);
    if (!same) out.push_back(m);
  }
  return out;
}

bool SharedBook::may_enter(const SharedView& view) const {
  const SharedMember* me = view.find(self_);
  if (me == nullptr || me->state != SharedMember::State::kHeard || me->ceiling <= limit_)
    return false;
  if (!news(view).empty()) return false;
  return std::ranges::all_of(view.members, [&](const SharedMember& m) {
    if (m.id == self_ || m.state == SharedMember::State::kLeft) return true;
    if (m.state == SharedMember::State::kUnheard) return false;
    // Of two that come at once the later one waits for the other's journal.
    const bool counts = MicroUsd::zero() < m.limit || m.since < me->since;
    return !counts || me->since <= m.noted;
  });
}

std::vector<SharedFact> SharedBook::to_note(const SharedView& view) const {
  std::vector<SharedFact> out;
  for (SharedMember& m : news(view)) out.emplace_back(std::move(m));
  if (out.empty() && may_enter(view)) out.emplace_back(SharedLimit{view.find(self_)->ceiling});
  return out;
}

Farewell::Step Farewell::next(const SharedView& view) {
  const SharedMember* me = view.find(self_);
  if (me == nullptr || me->state != SharedMember::State::kLeft) {
    awaited_.clear();
    return Step::kSay;
  }
  bool all_know = true;
  for (const SharedMember& m : view.members) {
    // One that is not heard of reads at its next start what Redis has then.
    if (m.id == self_ || m.state != SharedMember::State::kHeard || me->since <= m.noted) continue;
    Sign& sign = awaited_[m.id];
    if (sign.seen_ms != m.seen_ms) sign = {m.seen_ms, 0};
    if (++sign.looks <= kLooksWithoutSign) all_know = false;
  }
  return all_know ? Step::kDone : Step::kWait;
}
}  // namespace proctor
