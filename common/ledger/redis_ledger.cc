#include "common/ledger/redis_ledger.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/ledger/ledger_script.h"
#include "common/ledger/redis_codec.h"

namespace proctor {

namespace {

constexpr std::size_t kRebuildChunk = 4096;  // pairs of one call: a few milliseconds of Redis

// A hash, sorted by field.
Result<std::vector<std::pair<std::string, std::string>>> read_hash(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements % 2 != 0) return bad_reply("HGETALL");
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t i = 0; i < reply.elements; i += 2) {
    const redisReply* field = reply.element[i];
    const redisReply* text = reply.element[i + 1];
    if (field->type != REDIS_REPLY_STRING || text->type != REDIS_REPLY_STRING)
      return bad_reply("HGETALL");
    out.emplace_back(std::string(field->str, field->len), std::string(text->str, text->len));
  }
  std::ranges::sort(out);
  return out;
}

// The envelopes as the journal has them; refuses numbers that break the invariants.
Result<std::vector<ScopeBalance>> balances_of(const std::vector<ScopeSpec>& scopes,
                                              const std::vector<ReserveOp>& pending,
                                              const std::vector<MicroUsd>& spent) {
  PROCTOR_TRY(const Ledger rules, Ledger::restored(scopes, pending, spent));
  std::vector<ScopeBalance> balances;
  for (std::uint32_t i = 0; i < scopes.size(); ++i) balances.push_back(rules.balance(ScopeId(i)));
  return balances;
}

}  // namespace

RedisLedger::RedisLedger(Options options, std::string token)
    : options_(std::move(options)), token_(std::move(token)) {
  const std::string prefix = "proctor:{" + options_.campaign + "}:";
  head_key_ = prefix + "head";
  scopes_key_ = prefix + "scopes";
  rows_key_ = prefix + "rows";
  if (!options_.shared.empty()) shared_key_ = "proctor:{shared:" + options_.shared + "}";
}

Result<RedisLedger> RedisLedger::open(Options options) {
  const std::string& id = options.campaign;
  const bool plain = std::ranges::all_of(
      id, [](char c) { return ' ' < c && c != '{' && c != '}' && c != '\x7f'; });
  if (id.empty() || limits::kNameBytes < id.size() || !plain) {
    return Error{Errc::kInvalid, "campaign id \"" + printable(id) +
                                     "\" cannot be part of a Redis key: 1 to 100 visible ASCII "
                                     "characters without braces"};
  }
  std::random_device random;
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += std::to_string(random()) + ".";
  return RedisLedger(std::move(options), std::move(bytes));
}

Status RedisLedger::connect() {
  if (connection_ && connection_->alive()) return ok_status();
  connection_.reset();
  PROCTOR_TRY(RedisConnection fresh, RedisConnection::open(options_.endpoint, options_.timeout));
  connection_ = std::move(fresh);
  // A restarted server may have come back with an older file of the same epoch.
  if (home_ != connection_->facts().run_id) home_.clear();
  return load_scripts();
}

Status RedisLedger::load_scripts() {
  const auto load = [&](std::string_view script, std::string* sha) -> Status {
    PROCTOR_TRY(const RedisReply reply,
                connection_->call(std::array<std::string_view, 3>{"SCRIPT", "LOAD", script}));
    if (reply->type != REDIS_REPLY_STRING) return bad_reply("SCRIPT LOAD");
    sha->assign(reply->str, reply->len);
    return ok_status();
  };
  PROCTOR_CHECK_OK(load(kLedgerScript, &ledger_sha_));
  if (!shared_key_.empty()) PROCTOR_CHECK_OK(load(kSharedScript, &shared_sha_));
  return load(kRebuildScript, &rebuild_sha_);
}

Result<RedisReply> RedisLedger::run(std::string* sha, std::string_view script,
                                    const std::vector<std::string>& args) {
  const bool alone = shared_key_.empty();
  std::vector<std::string_view> words{"EVALSHA", *sha,        alone ? "3" : "4",
                                      head_key_, scopes_key_, rows_key_};
  if (!alone) words.emplace_back(shared_key_);
  words.insert(words.end(), args.begin(), args.end());
  auto reply = connection_->call(words);
  if (reply.ok() || reply.error().code != Errc::kNotFound) return reply;
  // NOSCRIPT: somebody flushed the script cache.  EVAL runs and caches it in one step.
  words[0] = "EVAL";
  words[1] = script;
  return connection_->call(words);
}

Status RedisLedger::refusal(std::string_view answer) const {
  const std::string where = "redis ledger of campaign " + options_.campaign;
  if (answer.starts_with("FENCED")) {
    return Error{Errc::kConflict, where + ": fenced, another coordinator holds it under epoch" +
                                      printable(answer.substr(6), 40)};
  }
  if (answer == "GONE") {
    return Error{Errc::kNotFound,
                 where + ": not there under this epoch; rebuild it from the journal"};
  }
  return ok_status();
}

Status RedisLedger::rebuild_step(std::vector<std::string> args) {
  PROCTOR_TRY(const RedisReply reply, run(&rebuild_sha_, kRebuildScript, args));
  if (reply->type != REDIS_REPLY_STRING) return bad_reply(args[0]);
  const std::string_view answer(reply->str, reply->len);
  PROCTOR_CHECK_OK(refusal(answer));
  if (answer != "OK") return bad_reply(answer);
  return ok_status();
}

Result<RedisLedger::Fields> RedisLedger::stored(const std::string& key) {
  PROCTOR_TRY(const RedisReply reply,
              connection_->call(std::array<std::string_view, 2>{"HGETALL", key}));
  return read_hash(*reply);
}

Result<RedisLedger::Stored> RedisLedger::read_all() {
  PROCTOR_CHECK_OK(connect());
  PROCTOR_TRY(const RedisReply reply, run(&rebuild_sha_, kRebuildScript, {"read"}));
  const std::size_t hashes = shared_key_.empty() ? 3 : 4;
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements != hashes) return bad_reply("read");
  Stored out;
  PROCTOR_TRY(out.head, read_hash(*reply->element[0]));
  PROCTOR_TRY(out.scopes, read_hash(*reply->element[1]));
  PROCTOR_TRY(out.rows, read_hash(*reply->element[2]));
  if (hashes == 4) {
    PROCTOR_TRY(out.shared, read_hash(*reply->element[3]));
  }
  return out;
}

namespace {

bool is_raise(const std::string& held, const ScopeBalance& now) {
  const std::string rest = " " + micros(now.spent) + " " + micros(now.reserved);
  if (!held.ends_with(rest)) return false;
  const std::string_view cap = std::string_view(held).substr(0, held.size() - rest.size());
  const auto was = whole_number<std::int64_t>(cap);
  return was && 0 <= *was && *was < now.cap.micros();
}

}  // namespace

Result<std::vector<std::string>> RedisLedger::differences(const std::vector<ScopeSpec>& scopes,
                                                          const std::vector<ScopeBalance>& journal,
                                                          const std::vector<ReserveOp>& pending) {
  std::vector<std::string> out;
  std::size_t found = 0;
  const auto differ = [&](const std::string& what, const std::string& redis,
                          const std::string& book) {
    if (++found <= kDifferencesMost)
      out.push_back(what + ": Redis held " + redis + ", the journal says " + book);
  };
  std::map<std::string, std::string> book;
  for (std::size_t i = 0; i < journal.size(); ++i) {
    book.emplace(std::to_string(i), micros(journal[i].cap) + " " + micros(journal[i].spent) + " " +
                                        micros(journal[i].reserved));
  }
  PROCTOR_TRY(const auto held, stored(scopes_key_));
  if (held.empty()) return out;
  for (const auto& [index, text] : held) {
    const auto known = book.extract(index);
    const std::string name =
        known ? scopes[std::stoul(index)].name : "unknown envelope " + printable(index, 40);
    const std::string want = known ? known.mapped() : "nothing";
    // A lower cap and nothing else is a raise that Redis has not heard of: this tells it.
    const bool raised = known && text != want && is_raise(text, journal[std::stoul(index)]);
    if (text != want && !raised) differ(name + " (cap spent reserved)", printable(text, 100), want);
  }
  for (const auto& [index, text] : book) differ(scopes[std::stoul(index)].name, "nothing", text);
  book.clear();
  for (const ReserveOp& op : pending)
    book.emplace(to_string(op.id), "p " + micros(op.ask) + " " + scope_list(op.scopes));
  PROCTOR_TRY(const auto rows, stored(rows_key_));
  for (const auto& [id, text] : rows) {
    const auto known = book.extract(id);
    // An answer whose end the journal holds is only waiting to be forgotten.
    if (!known && !text.starts_with("p ")) continue;
    const std::string want = known ? known.mapped() : "that it is not pending";
    if (text != want) differ("reservation " + printable(id, 60), printable(text, 100), want);
  }
  for (const auto& [id, text] : book) differ("reservation " + id, "nothing", text);
  if (kDifferencesMost < found)
    out.push_back("and " + std::to_string(found - kDifferencesMost) + " more");
  return out;
}

void RedisLedger::join(LedgerLease lease) {
  epoch_ = lease.epoch;
  token_ = std::move(lease.token);
  home_ = std::move(lease.server);
  // Still the same server as the one that was filled?
  if (connection_ && home_ != connection_->facts().run_id) connection_.reset();
}

std::string RedisLedger::describe() const {
  if (!connection_) return "redis: not connected";
  const RedisFacts& f = connection_->facts();
  return "redis " + printable(f.version, 40) + " at " + proctor::describe(options_.endpoint) +
         ", user " + (f.user.empty() ? "unknown" : f.user) + ", keys proctor:{" +
         options_.campaign + "}:*, persistence " + f.persistence +
         " (not needed: the journal is the record)";
}

namespace {

// "17.2.0", as to_string(AskId) writes it.
std::optional<AskId> ask_of(std::string_view text) {
  std::array<std::int64_t, 3> n{};
  for (std::size_t i = 0; i < n.size(); ++i)
    if (!read_number(take_until(text, '.'), &n[i]) || UINT32_MAX < n[i]) return std::nullopt;
  if (!text.empty()) return std::nullopt;
  const auto part = [&](std::size_t i) { return static_cast<std::uint32_t>(n[i]); };
  return AskId{{RunId(part(0)), AttemptNo(part(1))}, part(2)};
}

}  // namespace

Result<std::optional<LedgerHeld>> RedisLedger::held() {
  PROCTOR_TRY(const Stored stored, read_all());
  LedgerHeld out;
  for (const auto& [field, text] : stored.head) {
    std::int64_t epoch = 0;
    if (field == "epoch" && read_number(text, &epoch))
      out.epoch = Epoch(static_cast<std::uint64_t>(epoch));
  }
  if (out.epoch.raw() == 0) return std::optional<LedgerHeld>();
  for (const auto& [id, text] : stored.rows)
    if (const std::optional<AskId> ask = ask_of(id)) out.asks.push_back(*ask);
  for (const auto& [index, text] : stored.scopes)
    if (const auto balance = read_balance(text); index == "0" && balance.ok())
      out.spent = balance->spent;
  return std::optional<LedgerHeld>(std::move(out));
}

Result<std::vector<std::string>> RedisLedger::begin_epoch(Epoch epoch,
                                                          const std::vector<ScopeSpec>& scopes,
                                                          const std::vector<ReserveOp>& pending,
                                                          const std::vector<MicroUsd>& spent) {
  PROCTOR_ASSERT(epoch.raw() <= static_cast<std::uint64_t>(kLedgerMax.micros()));
  PROCTOR_TRY(const auto balances, balances_of(scopes, pending, spent));
  PROCTOR_CHECK_OK(connect());
  std::vector<std::string> told;
  if (auto found = differences(scopes, balances, pending); found.ok()) {
    told = std::move(found).value();
  } else if (found.error().code == Errc::kCorrupt) {
    told.push_back("what Redis held is not ours: " + found.error().detail);
  } else {
    return std::move(found).error();
  }
  home_.clear();
  const auto step = [&](const char* command) {
    return std::vector<std::string>{command, std::to_string(epoch.raw()), token_};
  };
  PROCTOR_CHECK_OK(rebuild_step(step("begin")));
  for (std::size_t from = 0; from < balances.size(); from += kRebuildChunk) {
    auto args = step("scopes");
    for (std::size_t i = from; i < std::min(from + kRebuildChunk, balances.size()); ++i) {
      const ScopeBalance& b = balances[i];
      args.push_back(std::to_string(i));
      args.push_back(micros(b.cap) + " " + micros(b.spent) + " " + micros(b.reserved));
    }
    PROCTOR_CHECK_OK(rebuild_step(std::move(args)));
  }
  for (std::size_t from = 0; from < pending.size(); from += kRebuildChunk) {
    auto args = step("rows");
    for (std::size_t i = from; i < std::min(from + kRebuildChunk, pending.size()); ++i) {
      args.push_back(to_string(pending[i].id));
      args.push_back("p " + micros(pending[i].ask) + " " + scope_list(pending[i].scopes));
    }
    PROCTOR_CHECK_OK(rebuild_step(std::move(args)));
  }
  if (part_) PROCTOR_CHECK_OK(report_part(epoch, scopes, balances[part_->scope.raw()]));
  PROCTOR_CHECK_OK(rebuild_step(step("open")));
  home_ = connection_->facts().run_id;
  epoch_ = epoch;
  return told;
}

Result<std::vector<LedgerAnswer>> RedisLedger::apply(Epoch epoch,
                                                     const std::vector<LedgerOp>& batch) {
  PROCTOR_ASSERT(batch.size() <= kLedgerBatch);
  if (batch.empty()) return std::vector<LedgerAnswer>{};
  PROCTOR_CHECK_OK(connect());
  if (home_.empty()) return refusal("GONE").error();
  std::vector<std::string> args{std::to_string(epoch.raw()), token_, packed(batch)};
  if (part_) {
    args.push_back(options_.campaign);
    args.push_back(std::to_string(part_->scope.raw()));
  }
  PROCTOR_TRY(const RedisReply reply, run(&ledger_sha_, kLedgerScript, args));
  if (reply->type != REDIS_REPLY_STRING) return bad_reply("not text");
  std::string_view text(reply->str, reply->len);
  PROCTOR_CHECK_OK(refusal(text));
  if (part_ && text.starts_with("o ")) {
    PROCTOR_TRY(elsewhere_, read_elsewhere(take_until(text, '\n')));
  }
  std::vector<LedgerAnswer> answers;
  answers.reserve(batch.size());
  for (const LedgerOp& op : batch) {
    PROCTOR_TRY(auto answer, read_answer(op, take_until(text, '\n')));
    answers.push_back(std::move(answer));
  }
  if (!text.empty()) return bad_reply(text);
  return answers;
}

Result<std::vector<ScopeBalance>> RedisLedger::snapshot() {
  PROCTOR_CHECK_OK(connect());
  PROCTOR_TRY(const RedisReply reply, run(&rebuild_sha_, kRebuildScript, {"snapshot"}));
  if (reply->type == REDIS_REPLY_STRING) {
    PROCTOR_CHECK_OK(refusal({reply->str, reply->len}));
  }
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements % 2 != 0) return bad_reply("snapshot");
  std::vector<std::optional<ScopeBalance>> found(reply->elements / 2);
  for (std::size_t i = 0; i < reply->elements; i += 2) {
    const redisReply* index = reply->element[i];
    const redisReply* text = reply->element[i + 1];
    if (index->type != REDIS_REPLY_STRING || text->type != REDIS_REPLY_STRING) {
      return bad_reply("snapshot");
    }
    std::int64_t n = 0;
    if (!read_number({index->str, index->len}, &n) || found.size() <= static_cast<std::size_t>(n)) {
      return bad_reply({index->str, index->len});
    }
    PROCTOR_TRY(found[static_cast<std::size_t>(n)], read_balance({text->str, text->len}));
  }
  std::vector<ScopeBalance> balances;
  for (const auto& balance : found) {
    if (!balance) return bad_reply("a scope is missing");
    balances.push_back(*balance);
  }
  return balances;
}

}  // namespace proctor
