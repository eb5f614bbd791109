#pragma once
// Campaigns that share an envelope on a real Redis, without their coordinators: each has a journal
// that outlives it, a memory that does not, and the same steps as the ledger's thread, one at a
// time.  What is granted counts from the moment at which Redis said so.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/integration/ledger/support.h"

namespace proctor::test {

class SharedCampaign {
 public:
  SharedCampaign(const Home& home, std::string id, std::int64_t global, std::int64_t cap)
      : home_(home),
        id_(std::move(id)),
        specs_{{"global", micro(global)}, {"shared:x", micro(cap)}} {}

  const std::string& id() const { return id_; }
  bool alive() const { return store_.has_value(); }
  bool is_member() const { return MicroUsd::zero() < journal_.book.limit(); }
  MicroUsd spent() const { return journal_.spent; }
  std::size_t open() const {
    return rules_ ? rules_->open_reservations() : journal_.pending.size();
  }
  // What it may have cost: what its journal has, and what was granted and is not yet there.
  MicroUsd held() const {
    MicroUsd sum = journal_.spent;
    for (const auto& [id, op] : journal_.pending) {
      const auto ended = journal_.ended.find(id);
      sum = sum + (ended == journal_.ended.end() ? op.ask : ended->second);
    }
    for (const LedgerOp& op : unwritten_)
      if (const auto* r = std::get_if<ReserveOp>(&op)) sum = sum + r->ask;
    return sum;
  }
  SharedMember as_left() const {
    SharedMember m;
    m.id = id_;
    m.state = SharedMember::State::kLeft;
    m.spent = journal_.spent;
    for (const auto& [id, op] : journal_.pending) m.spent = m.spent + op.ask;
    m.ceiling = m.spent;
    return m;
  }

  Status start(SharedCap cap = SharedCap::kEqual) {
    ++epoch_;
    store_.emplace(fresh());
    std::vector<ReserveOp> pending;
    for (const auto& [id, op] : journal_.pending) pending.push_back(op);
    rules_.emplace(must(Ledger::restored(specs_, pending, {journal_.spent, journal_.spent})));
    book_ = journal_.book;
    noting_.reset();
    Status begun = begin(cap);
    if (!begun.ok()) kill();
    return begun;
  }
  void kill() {
    store_.reset();
    rules_.reset();
    book_.reset();
    noting_.reset();
    unwritten_.clear();
  }
  // What the loop wrote since becomes durable, in order.
  void commit() {
    for (const LedgerOp& op : unwritten_) write(op);
    unwritten_.clear();
    if (!noting_) return;
    for (const SharedFact& fact : *noting_) {
      journal_.book.apply(fact);
      book_->apply(fact);
    }
    noting_.reset();
  }
  // Nothing: Redis has nothing to ask just now.
  std::optional<ReserveAnswer> ask(std::int64_t amount) {
    const ReserveOp op{ask_id(next_++), micro(amount), {ScopeId(0), kShared}};
    const auto answer = apply(op);
    if (!answer) return std::nullopt;
    const auto& got = std::get<ReserveAnswer>(*answer);
    if (got.kind == ReserveAnswer::Kind::kGranted) unwritten_.push_back(op);
    return got;
  }
  // One that its journal knows, as an agent of it may have cost anything up to its ask.
  void settle(std::uint64_t which, std::uint64_t share, bool give_back) {
    if (!alive() || journal_.pending.empty() || !unwritten_.empty()) return;
    auto it = journal_.pending.begin();
    std::advance(it, which % journal_.pending.size());
    if (!rules_->is_pending(it->first)) return;
    const auto most = static_cast<std::uint64_t>(it->second.ask.micros());
    const AskId id = it->first;
    // The journal first: what is given back may be somebody else's a moment later.
    if (give_back && !journal_.ended.contains(id)) {
      journal_.pending.erase(it);
      (void)apply(VoidOp{id});
      return;
    }
    const auto used = micro(static_cast<std::int64_t>(share % (most + 1)));
    const LedgerOp op = SettleOp{id, journal_.ended.emplace(id, used).first->second};
    if (apply(op)) unwritten_.push_back(op);
  }
  void tend() {
    if (!alive()) return;
    const auto view = store_->tend(Epoch(epoch_), up_to_, book_->limit());
    if (!view.ok()) return again(view.error());
    if (noting_) return;
    if (up_to_ < view->change && book_->news(*view).empty())
      up_to_ = view->change;
    else if (auto facts = book_->to_note(*view); !facts.empty())
      noting_ = std::move(facts);
  }
  void leave() {
    if (!alive() || open() != 0) return;
    commit();
    journal_.book.apply(SharedLimit{MicroUsd::zero()});
    (void)store_->leave(Epoch(epoch_));
    kill();
  }
  // Killed, and not meant to come back: as proctor budget leave does it.
  Status give_up() {
    kill();
    journal_.book.apply(SharedLimit{MicroUsd::zero()});
    return fresh().tell_left(as_left());
  }
  RedisLedger fresh() const {
    RedisLedger::Options options;
    options.endpoint = must(parse_redis_endpoint(home_.redis.address()));
    options.campaign = id_;
    options.shared = "x";
    options.label = id_ + "@here";
    return must(RedisLedger::open(std::move(options)));
  }

 private:
  static constexpr ScopeId kShared{1};
  struct Journal {
    std::map<AskId, ReserveOp> pending;
    std::map<AskId, MicroUsd> ended;  // what they cost
    MicroUsd spent;
    SharedBook book;
  };

  Status begin(SharedCap cap) {
    std::vector<SharedMember> known;
    for (const auto& [id, m] : book_->known()) known.push_back(m);
    up_to_ = 0;
    store_->share({kShared, book_->limit(), std::move(known), cap});
    const auto begun =
        store_->begin_epoch(Epoch(epoch_), specs_, rules_->pending(), rules_->spent());
    if (begun.ok()) return ok_status();
    return begun.error();
  }
  void again(const Error& error) {
    REQUIRE(error.code == Errc::kNotFound);
    if (const Status begun = begin(SharedCap::kAny); !begun.ok())
      REQUIRE(begun.error().code == Errc::kNotFound);
  }
  std::optional<LedgerAnswer> apply(const LedgerOp& op) {
    auto answers = store_->apply(Epoch(epoch_), {op});
    if (!answers.ok()) {
      again(answers.error());
      answers = store_->apply(Epoch(epoch_), {op});
      if (!answers.ok()) return std::nullopt;
    }
    rules_->set_elsewhere(kShared, store_->elsewhere());
    const LedgerAnswer mine = rules_->apply(op);
    REQUIRE(text_of(mine) == text_of((*answers)[0]));  // one arithmetic
    return mine;
  }
  void write(const LedgerOp& op) {
    if (const auto* r = std::get_if<ReserveOp>(&op)) journal_.pending.emplace(r->id, *r);
    if (const auto* s = std::get_if<SettleOp>(&op)) {
      journal_.spent = journal_.spent + s->actual;
      journal_.pending.erase(s->id);
      journal_.ended.erase(s->id);
    }
  }

  const Home& home_;
  std::string id_;
  std::vector<ScopeSpec> specs_;
  Journal journal_{{}, {}, {}, SharedBook(id_)};
  std::uint32_t next_ = 1;
  std::uint64_t epoch_ = 0;
  // Its memory.
  std::optional<RedisLedger> store_;
  std::optional<Ledger> rules_;
  std::optional<SharedBook> book_;
  std::uint64_t up_to_ = 0;
  std::vector<LedgerOp> unwritten_;
  std::optional<std::vector<SharedFact>> noting_;
};

}  // namespace proctor::test
