#include "tests/fault/ledger/torture_journal.h"

#include <doctest/doctest.h>
#include <hiredis/hiredis.h>

#include <array>
#include <chrono>

#include "common/base/json.h"
#include "common/base/result.h"

namespace proctor::torture {

Journal::Journal(std::vector<ScopeSpec> scopes)
    : scopes_(std::move(scopes)), spent_(scopes_.size()) {}

void Journal::book(const LedgerOp& op, const LedgerAnswer& answer, const ReserveOp* about) {
  const std::lock_guard lock(mutex_);
  if (const auto* r = std::get_if<ReserveOp>(&op)) {
    const auto* a = std::get_if<ReserveAnswer>(&answer);
    if (a != nullptr && a->kind == ReserveAnswer::Kind::kGranted && !ended_.contains(r->id))
      pending_.emplace(r->id, *r);
  }
  if (const auto* s = std::get_if<SettleOp>(&op)) {
    const auto* a = std::get_if<SettleAnswer>(&answer);
    // Another client may have read its settlement first; then this one is the repeated answer.
    if (a == nullptr || ended_.contains(s->id)) return;
    const auto it = pending_.find(s->id);
    if (it != pending_.end()) about = &it->second;
    REQUIRE(about != nullptr);
    for (const ScopeId scope : about->scopes)
      spent_[scope.raw()] = spent_[scope.raw()] + a->charged;
    pending_.erase(s->id);
    ended_.emplace(s->id, generation);
  }
  if (const auto* v = std::get_if<VoidOp>(&op)) {
    if (!std::holds_alternative<Unit>(answer) || ended_.contains(v->id)) return;
    pending_.erase(v->id);
    ended_.emplace(v->id, generation);
  }
}

bool Journal::ended_before(const AskId& id, std::uint64_t at) {
  const std::lock_guard lock(mutex_);
  const auto it = ended_.find(id);
  return it != ended_.end() && it->second < at;
}

void Journal::intend(const LedgerOp& op) {
  const std::lock_guard lock(mutex_);
  if (const auto* s = std::get_if<SettleOp>(&op)) intents_.emplace(s->id, op);
  if (const auto* v = std::get_if<VoidOp>(&op)) intents_.emplace(v->id, op);
}

Status Journal::rebuild(RedisLedger& ledger, Epoch epoch) {
  for (const auto& [id, op] : intents_) {
    const auto it = pending_.find(id);
    if (it == pending_.end()) continue;
    const std::int64_t now = now_ns();
    LedgerAnswer answer = Unit{};
    if (const auto* s = std::get_if<SettleOp>(&op)) {
      const MicroUsd charged = std::min(s->actual, it->second.ask);
      answer = SettleAnswer{charged, s->actual - charged, false};
    }
    booked_.push_back({now, now, lease.epoch.raw(), generation, op, text_of(answer)});
    book(op, answer, nullptr);
  }
  intents_.clear();
  std::vector<ReserveOp> pending;
  for (const auto& [id, op] : pending_) pending.push_back(op);
  PROCTOR_TRY(const auto differences, ledger.begin_epoch(epoch, scopes_, pending, spent_));
  lease = ledger.lease();
  ++generation;
  return ok_status();
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string text_of(const LedgerAnswer& answer) {
  if (const auto* r = std::get_if<ReserveAnswer>(&answer)) {
    const std::string tail = r->replayed ? " replayed" : "";
    if (r->kind == ReserveAnswer::Kind::kGranted) return "granted" + tail;
    return "denied " + std::to_string(r->short_scope.raw()) + " " +
           std::to_string(r->short_by.micros()) + tail;
  }
  if (const auto* s = std::get_if<SettleAnswer>(&answer)) {
    return "settled " + std::to_string(s->charged.micros()) + " " +
           std::to_string(s->overrun.micros()) + (s->replayed ? " replayed" : "");
  }
  if (const auto* e = std::get_if<Error>(&answer))
    return "error " + std::string(to_string(e->code)) + " " + e->detail;
  return "done";
}

void write_line(std::ofstream& out, int client, const Said& said) {
  std::string op;
  std::visit(
      Overload{[&](const ReserveOp& r) {
                 op = "reserve\t" + to_string(r.id) + "\t" + std::to_string(r.ask.micros()) + "\t";
                 for (std::size_t i = 0; i < r.scopes.size(); ++i)
                   op += (i == 0 ? "" : ",") + std::to_string(r.scopes[i].raw());
               },
               [&](const SettleOp& s) {
                 op =
                     "settle\t" + to_string(s.id) + "\t" + std::to_string(s.actual.micros()) + "\t";
               },
               [&](const VoidOp& v) { op = "void\t" + to_string(v.id) + "\t\t"; },
               [&](const ForgetOp& f) { op = "forget\t" + to_string(f.id) + "\t\t"; }},
      said.op);
  out << client << '\t' << said.begun_ns << '\t' << said.ended_ns << '\t' << said.epoch << '\t'
      << said.generation << '\t' << op << '\t' << said.answer << '\n';
}

std::string dump(RedisConnection& connection, const std::string& campaign) {
  Json out = Json::object();
  for (const char* part : {"head", "scopes", "rows"}) {
    const std::string key = "proctor:{" + campaign + "}:" + part;
    const auto reply = connection.call(std::array<std::string_view, 2>{"HGETALL", key});
    REQUIRE(reply.ok());
    out[key] = Json::object();
    for (std::size_t i = 0; i + 1 < (*reply)->elements; i += 2)
      out[key][(*reply)->element[i]->str] = (*reply)->element[i + 1]->str;
  }
  return out.dump(1);
}

}  // namespace proctor::torture
