#pragma once
// The independent auditor of the budget rules: written from MONEY 1-7, not from the
// code.  It keeps every operation's effect as a list of facts and recomputes each envelope from
// nothing after each step; slow and obvious on purpose.  Shared by the property test of the rules
// and the differential test of the Redis script.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "common/ledger/ledger.h"

namespace proctor::audit {

class Auditor {
 public:
  explicit Auditor(std::vector<ScopeSpec> scopes) : scopes_(std::move(scopes)) {}

  // Books one answered operation; returns what is wrong with the answer, empty if nothing.
  std::string saw(const LedgerOp& op, const LedgerAnswer& answer) {
    if (const auto* r = std::get_if<ReserveOp>(&op)) return saw_reserve(*r, answer);
    if (const auto* s = std::get_if<SettleOp>(&op)) return saw_settle(*s, answer);
    if (const auto* v = std::get_if<VoidOp>(&op)) return saw_void(*v, answer);
    return saw_forget(std::get<ForgetOp>(op), answer);
  }

  std::int64_t spent(std::size_t scope) const {
    return booked_[scope] + sum(scope, [](const Fact& f) { return f.end == 's' ? f.charged : 0; });
  }
  std::int64_t reserved(std::size_t scope) const {
    return sum(scope, [](const Fact& f) { return f.end == 'p' ? f.ask : 0; });
  }
  std::string compare(std::size_t scope, const ScopeBalance& b) const {
    if (b.cap != scopes_[scope].cap) return "cap changed";
    if (b.spent.micros() != spent(scope)) return "spent differs from the sum of settlements";
    if (b.reserved.micros() != reserved(scope)) return "reserved differs from the pending asks";
    if (b.cap.micros() - b.spent.micros() - b.reserved.micros() < 0) return "cap passed";
    return {};
  }
  std::map<std::string, int> seen;  // how often each kind of answer was met: the test must bite

 private:
  struct Fact {
    std::int64_t ask = 0;
    std::vector<ScopeId> scopes;
    char end = 'p';  // pending, denied, settled, voided
    std::int64_t actual = 0, charged = 0;
    ReserveAnswer denial;
  };

  template <class F>
  std::int64_t sum(std::size_t scope, F&& amount) const {
    std::int64_t total = 0;
    for (const auto& [id, fact] : facts_) {
      for (const ScopeId s : fact.scopes) {
        if (s.raw() == scope) total += amount(fact);
      }
    }
    return total;
  }

  std::string expect_error(const LedgerAnswer& answer, Errc code, const char* what) {
    ++seen[what];
    const auto* error = std::get_if<Error>(&answer);
    if (error == nullptr) return std::string("accepted: ") + what;
    if (error->code != code) return std::string("other code: ") + what + ": " + error->detail;
    return {};
  }

  std::string saw_reserve(const ReserveOp& op, const LedgerAnswer& answer) {
    bool bad = op.ask < MicroUsd::zero() || kLedgerMax < op.ask || op.scopes.empty() ||
               8 < op.scopes.size();
    for (std::size_t i = 0; i < op.scopes.size(); ++i) {
      bad = bad || scopes_.size() <= op.scopes[i].raw();
      for (std::size_t j = i + 1; j < op.scopes.size(); ++j)
        bad = bad || op.scopes[i] == op.scopes[j];
    }
    if (bad) return expect_error(answer, Errc::kInvalid, "invalid reserve");
    const auto known = facts_.find(op.id);
    if (known != facts_.end() &&
        (known->second.ask != op.ask.micros() || known->second.scopes != op.scopes)) {
      return expect_error(answer, Errc::kConflict, "other contents");
    }
    const auto* got = std::get_if<ReserveAnswer>(&answer);
    if (got == nullptr) return "a valid reserve was not answered";
    if (known != facts_.end()) {
      ++seen["reserve replayed"];
      if (!got->replayed) return "a replay is not marked";
      const bool denied = got->kind == ReserveAnswer::Kind::kDenied;
      if (denied != (known->second.end == 'd')) return "a replay changed the answer";
      if (denied && (got->short_scope != known->second.denial.short_scope ||
                     got->short_by != known->second.denial.short_by)) {
        return "a replay changed the denial";
      }
      return {};
    }
    Fact fact;
    fact.ask = op.ask.micros();
    fact.scopes = op.scopes;
    for (const ScopeId s : op.scopes) {
      const std::int64_t left = scopes_[s.raw()].cap.micros() - spent(s.raw()) - reserved(s.raw());
      if (fact.ask <= left) continue;
      ++seen["denied"];
      if (got->kind != ReserveAnswer::Kind::kDenied) return "granted although a scope is short";
      if (got->short_scope != s) return "not the outermost short scope";
      if (got->short_by.micros() != fact.ask - left) return "short by another amount";
      fact.end = 'd';
      fact.denial = *got;
      break;
    }
    if (fact.end == 'p') {
      ++seen["granted"];
      if (got->kind != ReserveAnswer::Kind::kGranted) return "denied although it fits";
    }
    if (got->replayed) return "marked as a replay";
    facts_.emplace(op.id, std::move(fact));
    return {};
  }

  std::string saw_settle(const SettleOp& op, const LedgerAnswer& answer) {
    if (op.actual < MicroUsd::zero() || kLedgerMax < op.actual) {
      return expect_error(answer, Errc::kInvalid, "invalid settle");
    }
    const auto known = facts_.find(op.id);
    if (known == facts_.end()) return expect_error(answer, Errc::kNotFound, "settle of nothing");
    Fact& fact = known->second;
    if (fact.end == 'd') return expect_error(answer, Errc::kConflict, "settle of a denial");
    if (fact.end == 'v') return expect_error(answer, Errc::kConflict, "settle after void");
    if (fact.end == 's' && fact.actual != op.actual.micros()) {
      return expect_error(answer, Errc::kConflict, "settle with another amount");
    }
    const auto* got = std::get_if<SettleAnswer>(&answer);
    if (got == nullptr) return "a valid settle was not answered";
    if (got->replayed != (fact.end == 's')) return "settle wrongly marked as replay";
    if (got->charged.micros() + got->overrun.micros() != op.actual.micros()) return "money lost";
    if (fact.ask < got->charged.micros()) return "charged more than the ask";
    if (got->overrun != MicroUsd::zero() && got->charged.micros() != fact.ask)
      return "early overrun";
    if (got->overrun != MicroUsd::zero()) ++seen["overrun"];
    ++seen[got->replayed ? "settle replayed" : "settled"];
    fact.end = 's';
    fact.actual = op.actual.micros();
    fact.charged = got->charged.micros();
    return {};
  }

  std::string saw_void(const VoidOp& op, const LedgerAnswer& answer) {
    const auto known = facts_.find(op.id);
    if (known == facts_.end()) return expect_error(answer, Errc::kNotFound, "void of nothing");
    if (known->second.end == 'd') return expect_error(answer, Errc::kConflict, "void of a denial");
    if (known->second.end == 's') return expect_error(answer, Errc::kConflict, "void after settle");
    if (!std::holds_alternative<Unit>(answer)) return "a valid void was not answered";
    ++seen[known->second.end == 'v' ? "void replayed" : "voided"];
    known->second.end = 'v';
    return {};
  }

  std::string saw_forget(const ForgetOp& op, const LedgerAnswer& answer) {
    const auto known = facts_.find(op.id);
    if (known != facts_.end() && known->second.end == 'p') {
      return expect_error(answer, Errc::kConflict, "forget of a pending one");
    }
    if (!std::holds_alternative<Unit>(answer)) return "a valid forget was not answered";
    if (known == facts_.end()) return {};
    ++seen["forgotten"];
    if (known->second.end == 's') {
      for (const ScopeId s : known->second.scopes) booked_[s.raw()] += known->second.charged;
    }
    facts_.erase(known);
    return {};
  }

  std::vector<ScopeSpec> scopes_;
  std::map<AskId, Fact> facts_;
  std::map<std::size_t, std::int64_t> mutable booked_;  // charged by forgotten reservations
};

// A deterministic stream of operations, most of them sensible, some of them not.
class OpSource {
 public:
  OpSource(std::uint64_t seed, std::uint32_t scopes, std::int64_t ask_max)
      : random_(seed), scopes_(scopes), ask_max_(ask_max) {}

  LedgerOp next() {
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        return reserve(fresh());
      case 6:
        return reserve(old());
      case 7:
        return last_;  // exact replay
      case 8:
      case 9:
      case 10:
      case 11:
        return remember(SettleOp{old(), amount()});
      case 12:
      case 13:
        return remember(VoidOp{old()});
      default:
        return remember(ForgetOp{old()});
    }
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

 private:
  AskId id(std::uint64_t n) const {
    const auto third = static_cast<std::uint32_t>(n % 3);
    return AskId{{RunId(static_cast<std::uint32_t>(n / 3)), AttemptNo(1 + third / 2)}, third % 2};
  }
  AskId fresh() { return id(next_++); }
  AskId old() { return id(next_ < 40 ? below(next_ + 2) : next_ - below(40)); }
  MicroUsd amount() {
    switch (below(24)) {
      case 0:
        return MicroUsd::zero();
      case 1:
        return MicroUsd::from_micros(-1);
      case 2:
        return kLedgerMax + MicroUsd::from_micros(1);
      case 3:
        return kLedgerMax;
      default:
        return MicroUsd::from_micros(
            static_cast<std::int64_t>(below(static_cast<std::uint64_t>(ask_max_))));
    }
  }
  LedgerOp remember(LedgerOp op) { return last_ = std::move(op); }
  LedgerOp reserve(AskId id) {
    ReserveOp op{id, amount(), {ScopeId(0)}};
    const std::uint64_t more = below(20);
    if (more != 0) op.scopes.emplace_back(static_cast<std::uint32_t>(1 + below(scopes_ - 1)));
    if (more == 1) op.scopes.emplace_back(static_cast<std::uint32_t>(below(scopes_ + 1)));
    if (more == 2) op.scopes.clear();
    return remember(std::move(op));
  }

  std::mt19937_64 random_;
  std::uint32_t scopes_;
  std::int64_t ask_max_;
  std::uint64_t next_ = 0;
  LedgerOp last_ = ForgetOp{};
};

}  // namespace proctor::audit
