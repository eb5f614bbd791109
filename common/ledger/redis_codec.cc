#include "common/ledger/redis_codec.h"

#include <array>
#include <bit>
#include <map>
#include <type_traits>

#include "common/base/parse.h"
#include "common/base/result.h"
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
      !read_number(text, &n[2])) {
    return bad_reply(whole);
  }
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
  const auto amount = [&](MicroUsd& out) {
    std::int64_t n = 0;
    if (!read_number(take_until(text, ' '), &n)) return false;
    out = MicroUsd::from_micros(n);
    return true;
  };
  const auto count = [&](auto& out) {
    std::int64_t n = 0;
    if (!read_number(take_until(text, ' '), &n)) return false;
    out = static_cast<std::remove_reference_t<decltype(out)>>(n);
    return true;
  };
  switch (kind) {
    case 'm': {
      const std::string_view state = take_until(text, ' ');
      if (state != "a" && state != "w" && state != "l") return false;
      to.state = state == "a" ? State::kHeard : state == "w" ? State::kUnheard : State::kLeft;
      return amount(to.ceiling) && amount(to.limit) && count(to.since) && count(to.noted) &&
             text.empty();
    }
    case 'u':
      return amount(to.spent) && amount(to.reserved) && text.empty();
    case 's':
      return count(to.seen_ms) && text.empty();
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

}  // namespace proctor
