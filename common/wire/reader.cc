#include "common/wire/reader.h"

#include <algorithm>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/wire/bounds.h"

namespace proctor::wire {

Reader::Reader(const msgpack::object& array, const char* what, std::uint32_t index,
               const Reader* parent, Failure& failure)
    : what_(what), index_(index), parent_(parent), failure_(failure) {
  if (array.type != msgpack::type::ARRAY) {
    if (!failure_.bad()) failure_.detail = path() + ": not an array";
    return;
  }
  at_ = array.via.array.ptr;
  end_ = at_ + array.via.array.size;
}

std::string Reader::path() const {
  std::string out = parent_ == nullptr ? std::string() : parent_->path() + ".";
  out += what_;
  if (index_ != kNoIndex) out += "[" + std::to_string(index_) + "]";
  return out;
}

void Reader::refuse(const char* field, std::string_view why) {
  if (!failure_.bad()) failure_.detail = path() + "." + field + ": " + std::string(why);
}

const msgpack::object* Reader::next(const char* field) {
  if (failure_.bad()) return nullptr;
  if (at_ == end_) {
    refuse(field, "missing");
    return nullptr;
  }
  return at_++;
}

void Reader::require(bool holds, const char* field, std::string_view why) {
  if (!holds) refuse(field, why);
}

void Reader::finish() {
  if (!failure_.bad() && at_ != end_)
    failure_.detail = path() + ": " + std::to_string(end_ - at_) + " fields too many";
}

std::uint64_t Reader::u64(const char* field, std::uint64_t most) {
  const msgpack::object* o = next(field);
  if (o == nullptr) return 0;
  if (o->type == msgpack::type::NEGATIVE_INTEGER) return refuse(field, "negative"), 0;
  if (o->type != msgpack::type::POSITIVE_INTEGER) return refuse(field, "not an integer"), 0;
  if (most < o->via.u64) {
    refuse(field, std::to_string(o->via.u64) + " is more than " + std::to_string(most));
    return 0;
  }
  return o->via.u64;
}

std::uint32_t Reader::u32(const char* field, std::uint32_t most) {
  return static_cast<std::uint32_t>(u64(field, most));
}

std::int64_t Reader::wall_ms(const char* field) {
  return static_cast<std::int64_t>(u64(field, std::uint64_t{kWallMsMax}));
}

MicroUsd Reader::money(const char* field) {
  const std::uint64_t most = static_cast<std::uint64_t>(kLedgerMax.micros());
  return MicroUsd::from_micros(static_cast<std::int64_t>(u64(field, most)));
}

bool Reader::boolean(const char* field) {
  const msgpack::object* o = next(field);
  if (o == nullptr) return false;
  if (o->type != msgpack::type::BOOLEAN) return refuse(field, "not a boolean"), false;
  return o->via.boolean;
}

std::string_view Reader::checked_text(const msgpack::object* o, const char* field,
                                      std::size_t bytes_max) {
  if (o == nullptr) return {};
  if (o->type != msgpack::type::STR) return refuse(field, "not a string"), std::string_view();
  const std::string_view text(o->via.str.ptr, o->via.str.size);
  if (bytes_max < text.size()) {
    refuse(field, std::to_string(text.size()) + " bytes, at most " + std::to_string(bytes_max));
    return {};
  }
  if (!is_utf8(text)) return refuse(field, "not UTF-8"), std::string_view();
  return text;
}

std::string Reader::text(const char* field, std::size_t bytes_max) {
  return std::string(checked_text(next(field), field, bytes_max));
}

namespace {
bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}
}  // namespace

std::string Reader::name(const char* field, std::size_t bytes_max) {
  const std::string_view text = checked_text(next(field), field, bytes_max);
  require(!text.empty(), field, "empty");
  require(std::none_of(text.begin(), text.end(), is_control), field, "has a control byte");
  return std::string(text);
}

std::string Reader::binary(const char* field, std::size_t bytes_max) {
  const msgpack::object* o = next(field);
  if (o == nullptr) return {};
  if (o->type != msgpack::type::BIN) return refuse(field, "not binary"), std::string();
  if (bytes_max < o->via.bin.size) {
    refuse(field, std::to_string(o->via.bin.size) + " bytes, at most " + std::to_string(bytes_max));
    return {};
  }
  return {o->via.bin.ptr, o->via.bin.size};
}

Digest Reader::checked_digest(const msgpack::object* o, const char* field) {
  if (o == nullptr) return {};
  if (o->type != msgpack::type::BIN || o->via.bin.size != Digest::kBytes)
    return refuse(field, "not 32 bytes of digest"), Digest();
  Digest::Bytes bytes{};
  std::copy_n(o->via.bin.ptr, bytes.size(), reinterpret_cast<char*>(bytes.data()));
  return Digest(bytes);
}

Digest Reader::digest(const char* field) {
  return checked_digest(next(field), field);
}

AttemptId Reader::attempt() {
  const RunId run(u32("run", std::uint32_t{limits::kPlanRows - 1}));
  const AttemptNo no(u32("no"));
  require(no.raw() != 0, "no", "attempts count from 1");
  return {run, no};
}

const msgpack::object* Reader::counted_array(const char* field, std::size_t items_max) {
  const msgpack::object* o = next(field);
  if (o == nullptr) return nullptr;
  if (o->type != msgpack::type::ARRAY) return refuse(field, "not an array"), nullptr;
  if (items_max < o->via.array.size) {
    refuse(field,
           std::to_string(o->via.array.size) + " items, at most " + std::to_string(items_max));
    return nullptr;
  }
  return o;
}

std::vector<AttemptId> Reader::attempts(const char* field, std::size_t items_max) {
  std::vector<AttemptId> out;
  const msgpack::object* array = counted_array(field, 2 * items_max);
  if (array == nullptr) return out;
  if (array->via.array.size % 2 != 0) return refuse(field, "half an attempt at the end"), out;
  Reader pairs(*array, field, kNoIndex, this, failure_);
  out.reserve(array->via.array.size / 2);
  while (!failure_.bad() && pairs.at_ != pairs.end_) out.push_back(pairs.attempt());
  return out;
}

std::vector<std::string> Reader::names(const char* field, std::size_t items_max,
                                       std::size_t bytes_max) {
  return items(field, items_max, [&](Reader& r) { return r.name("item", bytes_max); });
}

std::vector<Digest> Reader::digests(const char* field, std::size_t items_max) {
  return items(field, items_max, [](Reader& r) { return r.digest("item"); });
}

std::vector<std::uint64_t> Reader::counts(const char* field, std::size_t items_max,
                                          std::uint64_t most) {
  return items(field, items_max, [&](Reader& r) { return r.u64("item", most); });
}

}  // namespace proctor::wire
