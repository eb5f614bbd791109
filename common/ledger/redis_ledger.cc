#include "common/ledger/redis_ledger.h"

#include <hiredis/hiredis.h>
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <random>
#include <type_traits>

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"

namespace proctor {
namespace {
const AskId& id_of(const LedgerOp& op) {
  return std::visit([](const auto& o) -> const AskId& { return o.id; }, op);
}

// An integer as IEEE 754 binary64, exact to 2^53; above that cut, so that it stays above.
std::uint64_t float64_bits(std::int64_t value) {
  constexpr int kFraction = 52, kBias = 1023;
  if (value == 0) return 0;
  const std::uint64_t sign = value < 0 ? std::uint64_t{1} << 63 : 0;
  const auto bits = static_cast<std::uint64_t>(value);
  const std::uint64_t magnitude = value < 0 ? ~bits + 1 : bits;
  const int exponent = static_cast<int>(std::bit_width(magnitude)) - 1;
  const std::uint64_t aligned = exponent <= kFraction ? magnitude << (kFraction - exponent)
                                                      : magnitude >> (exponent - kFraction);
  const std::uint64_t fraction = aligned & ((std::uint64_t{1} << kFraction) - 1);
  return sign | static_cast<std::uint64_t>(exponent + kBias) << kFraction | fraction;
}

// The batch as ledger.lua reads it: four MessagePack values (msgpack.org: str, array, float 64).
// Doubles carry every amount exactly; the integers of a Redis built for 32 bits would not.
class PackedBatch {
 public:
  explicit PackedBatch(const std::vector<LedgerOp>& batch) {
    ids_.reserve(16 * batch.size());
    amounts_.reserve(9 * batch.size());
    paths_.reserve(16 * batch.size());
    size(0xdb, batch.size(), out_);  // the letters follow
    for (const LedgerOp& op : batch) {
      std::visit(Overload{[&](const ReserveOp& r) { add('r', r.id, r.ask, scope_list(r.scopes)); },
                          [&](const SettleOp& s) { add('s', s.id, s.actual, ""); },
                          [&](const VoidOp& v) { add('v', v.id, MicroUsd::zero(), ""); },
                          [&](const ForgetOp& f) { add('f', f.id, MicroUsd::zero(), ""); }},
                 op);
    }
    for (const std::string* values : {&ids_, &amounts_, &paths_}) {
      size(0xdd, batch.size(), out_);
      out_ += *values;
    }
  }
  std::string take() { return std::move(out_); }

 private:
  // Type byte and number of elements, 32 bits, highest byte first.
  static void size(unsigned char type, std::size_t n, std::string& to) {
    to += static_cast<char>(type);
    big_endian(n, 4, to);
  }
  static void big_endian(std::uint64_t bits, int bytes, std::string& to) {
    for (int shift = 8 * (bytes - 1); 0 <= shift; shift -= 8)
      to += static_cast<char>(bits >> shift & 0xff);
  }
  static void text(std::string_view value, std::string& to) {
    if (value.size() < 32) {
      to += static_cast<char>(0xa0 | value.size());
    } else {
      size(0xdb, value.size(), to);
    }
    to += value;
  }
  void add(char kind, const AskId& id, MicroUsd amount, std::string_view path) {
    out_ += kind;
    text(to_string(id), ids_);
    amounts_ += '\xcb';
    big_endian(float64_bits(amount.micros()), 8, amounts_);
    text(path, paths_);
  }
  std::string out_, ids_, amounts_, paths_;
};
}  // namespace

std::string micros(MicroUsd m) {
  return std::to_string(m.micros());
}

std::string scope_list(const std::vector<ScopeId>& scopes) {
  std::string out;
  for (const ScopeId scope : scopes) {
    if (!out.empty()) out += ',';
    out += std::to_string(scope.raw());
  }
  return out;
}

std::string packed(const std::vector<LedgerOp>& batch) {
  return PackedBatch(batch).take();
}

bool read_number(std::string_view text, std::int64_t* out) {
  return take_number(text, *out) && text.empty() && 0 <= *out && *out <= kLedgerMax.micros();
}

Error bad_reply(std::string_view what) {
  return Error{Errc::kCorrupt, "redis: unexpected answer \"" + printable(what) + "\""};
}

// One line of ledger.lua's answer.
Result<LedgerAnswer> read_answer(const LedgerOp& op, std::string_view line) {
  const std::string_view whole = line;
  const std::string_view kind = take_until(line, ' ');
  const bool is_reserve = std::holds_alternative<ReserveOp>(op);
  const bool is_settle = std::holds_alternative<SettleOp>(op);
  const bool replayed = kind == "G" || kind == "D" || kind == "S";
  std::int64_t first = 0;
  std::int64_t second = 0;
  if (is_reserve && (kind == "g" || kind == "G")) {
    return LedgerAnswer(ReserveAnswer{ReserveAnswer::Kind::kGranted, {}, {}, replayed});
  }
  if (is_settle && (kind == "s" || kind == "S")) {
    const MicroUsd actual = std::get<SettleOp>(op).actual;
    if ((!line.empty() && !read_number(line, &first)) || actual.micros() < first)
      return bad_reply(whole);
    const MicroUsd overrun = MicroUsd::from_micros(first);
    return LedgerAnswer(SettleAnswer{actual - overrun, overrun, replayed});
  }
  if (is_reserve && (kind == "d" || kind == "D")) {
    if (!read_number(take_until(line, ' '), &first) ||
        !read_number(take_until(line, ' '), &second) || (!line.empty() && line != "1"))
      return bad_reply(whole);
    return LedgerAnswer(ReserveAnswer{ReserveAnswer::Kind::kDenied,
                                      ScopeId(static_cast<std::uint32_t>(first)),
                                      MicroUsd::from_micros(second), replayed, line == "1"});
  }
  if (!is_reserve && !is_settle && kind == "u") return LedgerAnswer(Unit{});
  const std::string id = to_string(id_of(op));
  if (kind == "n") return LedgerAnswer(Error{Errc::kNotFound, "no reservation " + id});
  if (kind == "c") {
    return LedgerAnswer(Error{Errc::kConflict, "reservation " + id + " " + std::string(line)});
  }
  if (kind == "i") {
    return LedgerAnswer(Error{Errc::kInvalid, "reservation " + id + ": " + std::string(line)});
  }
  return bad_reply(whole);
}

Result<ScopeBalance> read_balance(std::string_view text) {
  const std::string_view whole = text;
  std::array<std::int64_t, 3> n{};
  if (!read_number(take_until(text, ' '), &n[0]) || !read_number(take_until(text, ' '), &n[1]) ||
      !read_number(text, &n[2]))
    return bad_reply(whole);
  return ScopeBalance{MicroUsd::from_micros(n[0]), MicroUsd::from_micros(n[1]),
                      MicroUsd::from_micros(n[2])};
}

Result<Elsewhere> read_elsewhere(std::string_view line) {
  const std::string_view whole = line;
  std::int64_t held = 0;
  std::int64_t returns = 0;
  if (take_until(line, ' ') != "o" || !read_number(take_until(line, ' '), &held) ||
      !read_number(line, &returns) || 1 < returns)
    return bad_reply(whole);
  return Elsewhere{MicroUsd::from_micros(held), returns == 1};
}

namespace {
// "state ceiling limit since noted" or "spent reserved", into a member.
bool read_member(char kind, std::string_view text, SharedMember& to) {
  using State = SharedMember::State;
  const auto number = [&]<class T>(T& out) {
    std::int64_t n = 0;
    if (!read_number(take_until(text, ' '), &n)) return false;
    if constexpr (std::is_same_v<T, MicroUsd>)
      out = MicroUsd::from_micros(n);
    else
      out = static_cast<T>(n);
    return true;
  };
  switch (kind) {
    case 'm': {
      const std::string_view state = take_until(text, ' ');
      if (state != "a" && state != "w" && state != "l") return false;
      to.state = state == "a" ? State::kHeard : state == "w" ? State::kUnheard : State::kLeft;
      return number(to.ceiling) && number(to.limit) && number(to.since) && number(to.noted) &&
             text.empty();
    }
    case 'u':
      return number(to.spent) && number(to.reserved) && text.empty();
    case 's':
      return number(to.seen_ms) && text.empty();
    case 'n':
      to.name = printable(text, 200);
      return true;
    default:
      return false;
  }
}
}  // namespace

Result<SharedView> read_shared(const std::vector<std::pair<std::string, std::string>>& fields) {
  SharedView out;
  std::map<std::string, SharedMember> members;
  for (const auto& [field, text] : fields) {
    std::int64_t n = 0;
    if (field == "server") continue;
    if (field == "cap" || field == "change") {
      if (!read_number(text, &n)) return bad_reply(field + " " + text);
      if (field == "cap") out.cap = MicroUsd::from_micros(n);
      if (field == "change") out.change = static_cast<std::uint64_t>(n);
      continue;
    }
    if (field.size() < 3 || field[1] != ':' ||
        !read_member(field[0], text, members[field.substr(2)]))
      return bad_reply(field + " " + text);
  }
  for (auto& [id, member] : members) {
    member.id = id;
    out.members.push_back(std::move(member));
  }
  return out;
}

// RedisLedger's part that speaks to Redis: connection, scripts and reads of what it holds.

namespace {
constexpr std::size_t kRebuildChunk = 4096;  // pairs of one call: a few milliseconds of Redis

// The text of a reply to `command`.
Result<std::string_view> text_of(const redisReply& reply, std::string_view command) {
  if (reply.type != REDIS_REPLY_STRING) return bad_reply(command);
  return std::string_view(reply.str, reply.len);
}

// A hash that answers `command`, sorted by field.
Result<std::vector<std::pair<std::string, std::string>>> read_hash(
    const redisReply& reply, std::string_view command = "HGETALL") {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements % 2 != 0) return bad_reply(command);
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t i = 0; i < reply.elements; i += 2) {
    PROCTOR_TRY(const std::string_view field, text_of(*reply.element[i], command));
    PROCTOR_TRY(const std::string_view text, text_of(*reply.element[i + 1], command));
    out.emplace_back(field, text);
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
    PROCTOR_TRY(*sha, text_of(*reply, "SCRIPT LOAD"));
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
  PROCTOR_TRY(const std::string_view answer, text_of(*reply, args[0]));
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

// RedisLedger's part that compares Redis with the journal, and what it says of itself.

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

// RedisLedger's part that takes a campaign under an epoch and applies its operations.

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
  PROCTOR_TRY(std::string_view text, text_of(*reply, "not text"));
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
  PROCTOR_TRY(const Fields scopes, read_hash(*reply, "snapshot"));
  std::vector<std::optional<ScopeBalance>> found(scopes.size());
  for (const auto& [index, text] : scopes) {
    std::int64_t n = 0;
    if (!read_number(index, &n) || found.size() <= static_cast<std::size_t>(n))
      return bad_reply(index);
    PROCTOR_TRY(found[static_cast<std::size_t>(n)], read_balance(text));
  }
  std::vector<ScopeBalance> balances;
  for (const auto& balance : found) {
    if (!balance) return bad_reply("a scope is missing");
    balances.push_back(*balance);
  }
  return balances;
}

// RedisLedger's part that deals with an envelope shared by several campaigns (shared.lua).

namespace {
std::string now_ms() {
  return std::to_string(wall_now().raw());
}

// Another member as the scripts take it: id, state, ceiling, spent, name.
void add_member(const SharedMember& m, std::vector<std::string>& to) {
  const bool left = m.state == SharedMember::State::kLeft;
  to.insert(to.end(), {m.id, left ? "l" : "w", micros(m.ceiling), micros(m.spent), m.name});
}

Result<SharedView> view_of(const redisReply& reply) {
  PROCTOR_TRY(const auto fields, read_hash(reply, "a view"));
  return read_shared(fields);
}
}  // namespace

Result<RedisReply> RedisLedger::run_shared(const std::vector<std::string>& args) {
  if (shared_key_.empty()) return not_shared();
  PROCTOR_CHECK_OK(connect());
  return run(&shared_sha_, kSharedScript, args);
}

Status RedisLedger::shared_refusal(std::string_view answer, MicroUsd cap) const {
  PROCTOR_CHECK_OK(refusal(answer));
  const std::string where = "shared envelope " + options_.shared;
  if (answer == "EMPTY") {
    return Error{Errc::kNotFound,
                 where + ": Redis at " + proctor::describe(options_.endpoint) +
                     " does not have it, and this campaign is not a member that could bring it "
                     "back. Where another member runs, it does so within a second. If no other "
                     "campaign has spent from it, say so: proctor budget share CAMPAIGN"};
  }
  if (answer.starts_with("CAP ")) {
    std::int64_t other = 0;
    if (!read_number(answer.substr(4), &other)) return bad_reply(answer);
    const MicroUsd held = MicroUsd::from_micros(other);
    const std::string type = "proctor budget raise CAMPAIGN shared:" + options_.shared + " " +
                             format_usd(std::max(held, cap)) + " --reason TEXT";
    return Error{Errc::kInvalid, where + ": this campaign has a cap of " + format_usd(cap) +
                                     ", the others one of " + format_usd(held) +
                                     ". Nothing was begun. To have the larger one " +
                                     (cap < held ? "here" : "there too, of each of them") + ": " +
                                     type +
                                     (cap < held ? "" : "; or start this one with their cap")};
  }
  if (answer != "OK") return bad_reply(answer);
  return ok_status();
}

// Its own part, and everybody whom its journal knows: in the same rebuild as its own envelopes,
// before any of them can be asked.
Status RedisLedger::report_part(Epoch epoch, const std::vector<ScopeSpec>& scopes,
                                const ScopeBalance& part) {
  const MicroUsd ceiling = std::min(scopes[0].cap, part.cap);
  std::vector<std::string> args{"report",
                                std::to_string(epoch.raw()),
                                token_,
                                options_.campaign,
                                connection_->facts().run_id,
                                micros(part.cap),
                                micros(part_->limit),
                                micros(ceiling),
                                micros(part.spent),
                                micros(part.reserved),
                                now_ms(),
                                options_.label,
                                std::string(word_of(part_->cap))};
  for (const SharedMember& m : part_->known) add_member(m, args);
  PROCTOR_TRY(const RedisReply reply, run_shared(args));
  PROCTOR_TRY(const std::string_view answer, text_of(*reply, "report"));
  PROCTOR_CHECK_OK(shared_refusal(answer, part.cap));
  part_->cap = SharedCap::kAny;
  return ok_status();
}

Result<SharedView> RedisLedger::tend(Epoch epoch, std::uint64_t noted, MicroUsd limit) {
  PROCTOR_CHECK_OK(connect());
  if (home_.empty()) return refusal("GONE").error();
  PROCTOR_TRY(const RedisReply reply,
              run_shared({"tend", std::to_string(epoch.raw()), token_, options_.campaign,
                          std::to_string(noted), micros(limit), now_ms()}));
  if (reply->type == REDIS_REPLY_STRING) {
    PROCTOR_CHECK_OK(refusal({reply->str, reply->len}));
    return bad_reply("tend");
  }
  return view_of(*reply);
}

Status RedisLedger::leave(Epoch epoch) {
  PROCTOR_TRY(const RedisReply reply, run_shared({"leave", std::to_string(epoch.raw()), token_,
                                                  options_.campaign, now_ms()}));
  PROCTOR_TRY(const std::string_view answer, text_of(*reply, "leave"));
  if (answer == "HELD")
    return Error{Errc::kConflict, "shared envelope " + options_.shared + ": money is reserved"};
  return shared_refusal(answer, MicroUsd::zero());
}

Result<SharedView> RedisLedger::shared() {
  PROCTOR_TRY(const RedisReply reply, run_shared({"view"}));
  return view_of(*reply);
}

Status RedisLedger::found(MicroUsd cap, const std::vector<SharedMember>& known) {
  PROCTOR_CHECK_OK(connect());
  std::vector<std::string> args{"found", connection_->facts().run_id, micros(cap)};
  for (const SharedMember& m : known) add_member(m, args);
  PROCTOR_TRY(const RedisReply reply, run_shared(args));
  PROCTOR_TRY(const std::string_view answer, text_of(*reply, "found"));
  if (answer == "HELD")
    return Error{Errc::kConflict, "shared envelope " + options_.shared + ": Redis at " +
                                      proctor::describe(options_.endpoint) + " has it already"};
  return shared_refusal(answer, cap);
}

Status RedisLedger::tell_left(const SharedMember& member) {
  PROCTOR_CHECK_OK(connect());
  PROCTOR_TRY(const RedisReply reply, run_shared({"left", connection_->facts().run_id, member.id,
                                                  micros(member.spent), member.name, now_ms()}));
  PROCTOR_TRY(const std::string_view answer, text_of(*reply, "left"));
  return shared_refusal(answer, MicroUsd::zero());
}
}  // namespace proctor
