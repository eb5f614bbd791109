#include "common/wire/codec.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <msgpack.hpp>
#include <new>
#include <type_traits>

#include "common/base/text.h"
#include "common/wire/bounds.h"

namespace proctor::wire {
namespace {
template <class T>
concept IsStrong = requires(const T& value) {
  typename T::rep;
  value.raw();
};
template <class T>
concept IsOptional = requires(const T& value) {
  value.has_value();
};
// Its members are items of the array around it, no array of their own: acknowledgements come by
// the thousand.
template <class T>
concept IsFlat = std::same_as<T, AttemptId>;

// Counts the items in the array of a structure, and about the bytes that they take.
class Members {
 public:
  explicit Members(std::uint32_t version) : version_(version) {}
  template <class T>
  void operator()(const char*, const T& value, const Rule& rule = {}) {
    if (version_ < rule.since) return;
    if constexpr (IsFlat<T>) return fields(*this, value);
    ++count;
    bytes += sizeof(T);
    if constexpr (requires { value.size(); }) bytes += value.size() * sizeof(*value.data());
  }
  static void require(bool, const char*, std::string_view) {}
  std::uint32_t version() const { return version_; }

  std::uint32_t count = 0;
  std::size_t bytes = 0;

 private:
  std::uint32_t version_;
};

template <class T>
Members members_of(const T& value, std::uint32_t version) {
  Members out(version);
  fields(out, value);
  return out;
}

// How many items the array of a T has; its version decides, not its value.
template <class T>
std::uint32_t items_of(std::uint32_t version) {
  static const auto kItems = [] {
    std::array<std::uint32_t, kVersion + 1> out{};
    for (std::uint32_t v = kOldestServed; v <= kVersion; ++v) out.at(v) = members_of(T{}, v).count;
    return out;
  }();
  return kItems.at(version);
}

// How many items of an array one T is.
template <class T>
std::uint32_t width() {
  if constexpr (IsFlat<T>) return items_of<T>(kVersion);
  return 1;
}

bool has_zero(std::string_view text) {
  return text.find('\0') != text.npos;
}

// msgpack's own sbuffer would have to be copied into the string that the socket takes over.
struct StringSink {
  std::string& out;
  void write(const char* data, std::size_t size) { out.append(data, size); }
};

class Writer {
 public:
  Writer(std::string& out, std::uint32_t version) : version_(version), sink_{out}, packer_(sink_) {}

  template <class T>
  void operator()(const char*, const T& value, const Rule& rule = {}) {
    if (rule.since <= version_) put(value, rule);
  }
  void require(bool holds, const char*, std::string_view) { PROCTOR_ASSERT(holds); }
  std::uint32_t version() const { return version_; }

  void array(std::size_t items, std::size_t most = SIZE_MAX) {
    PROCTOR_ASSERT(items <= most);
    packer_.pack_array(static_cast<std::uint32_t>(items));
  }
  void number(std::uint64_t value, std::uint64_t most = UINT64_MAX) {
    PROCTOR_ASSERT(value <= most);
    packer_.pack_uint64(value);
  }

 private:
  template <class T>
  void put(const T& value, const Rule& rule) {
    if constexpr (std::same_as<T, bool>) {
      value ? packer_.pack_true() : packer_.pack_false();
    } else if constexpr (std::integral<T> || std::is_enum_v<T>) {
      number(static_cast<std::uint64_t>(value), rule.most);  // a negative one is above any bound
    } else if constexpr (std::same_as<T, MicroUsd>) {
      put(value.micros(), rule);
    } else if constexpr (IsStrong<T>) {
      put(value.raw(), rule);
    } else if constexpr (std::same_as<T, Digest>) {
      binary({reinterpret_cast<const char*>(value.bytes().data()), Digest::kBytes});
    } else if constexpr (std::same_as<T, std::string>) {
      text(value, rule);
    } else if constexpr (IsOptional<T>) {
      put(value.value_or(typename T::value_type{}), rule);
    } else if constexpr (IsFlat<T>) {
      fields(*this, value);
    } else if constexpr (Described<const T>) {
      array(items_of<T>(version_));
      fields(*this, value);
    } else {
      array(value.size() * width<typename T::value_type>(),
            rule.items * width<typename T::value_type>());
      for (const auto& one : value) put(one, rule);
    }
  }

  void binary(std::string_view bytes) {
    packer_.pack_bin(static_cast<std::uint32_t>(bytes.size()));
    packer_.pack_bin_body(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
  }
  void text(std::string_view text, const Rule& rule) {
    std::string safe;
    if (rule.text == Rule::Text::kProse &&
        (rule.bytes < text.size() || !is_utf8(text) || has_zero(text))) {
      const std::size_t most = rule.bytes - 8;  // printable() may end in "..."
      safe = printable(text, most);
      if (rule.bytes < safe.size()) safe = printable(text, most / 4);
      text = safe;
    }
    PROCTOR_ASSERT(text.size() <= rule.bytes);
    PROCTOR_ASSERT(!text.empty() || rule.text != Rule::Text::kName);
    if (rule.text == Rule::Text::kBytes) return binary(text);
    packer_.pack_str(static_cast<std::uint32_t>(text.size()));
    packer_.pack_str_body(text.data(), static_cast<std::uint32_t>(text.size()));
  }

  const std::uint32_t version_;
  StringSink sink_;
  msgpack::packer<StringSink> packer_;
};

// Shared by a Reader and those of the arrays inside it: the first complaint stays.
struct Failure {
  std::uint32_t version;  // of the frame
  std::string detail{};
  bool bad() const { return !detail.empty(); }
};

// A strict cursor over one MessagePack array.  Members are taken in order; the first one that is
// missing, of another type, or out of range ends the reading: later ones are left or emptied, and
// the Failure says where.
class Reader {
 public:
  Reader(const msgpack::object& array, const char* what, Failure& failure)
      : Reader(array, what, kNoIndex, nullptr, failure) {}

  template <class T>
  void operator()(const char* name, T& out, const Rule& rule = {}) {
    if (rule.since <= version()) take(name, out, rule);
  }
  void require(bool holds, const char* name, std::string_view why) {
    if (!holds) refuse(name, why);
  }
  std::uint32_t version() const { return failure_.version; }
  // No item may be left over.
  void finish() {
    if (more()) failure_.detail = path() + ": " + std::to_string(end_ - at_) + " fields too many";
  }

 private:
  static constexpr std::uint32_t kNoIndex = UINT32_MAX;
  Reader(const msgpack::object& array, const char* what, std::uint32_t index, const Reader* parent,
         Failure& failure);

  template <class T>
  void take(const char* name, T& out, const Rule& rule) {
    if constexpr (std::same_as<T, bool>) {
      out = boolean(name);
    } else if constexpr (std::integral<T>) {
      constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
      out = static_cast<T>(number(name, std::min(rule.most, kLargest)));
    } else if constexpr (std::is_enum_v<T>) {
      out = static_cast<T>(number(name, rule.most));
    } else if constexpr (std::same_as<T, MicroUsd>) {
      out = MicroUsd::from_micros(static_cast<std::int64_t>(number(name, rule.most)));
    } else if constexpr (IsStrong<T>) {
      typename T::rep raw{};
      take(name, raw, rule);
      out = T(std::move(raw));
    } else if constexpr (std::same_as<T, Digest>) {
      out = digest(name);
    } else if constexpr (std::same_as<T, std::string>) {
      out = text(name, rule);
    } else if constexpr (IsOptional<T>) {
      take(name, out.emplace(), rule);
    } else if constexpr (IsFlat<T>) {
      fields(*this, out);
    } else if constexpr (Described<T>) {
      if (const msgpack::object* array = items(name, SIZE_MAX, 1))
        take_array(*array, name, kNoIndex, out);
    } else {
      take_list(name, out, rule);
    }
  }
  template <class T>
  void take_array(const msgpack::object& array, const char* name, std::uint32_t index, T& out) {
    Reader inside(array, name, index, this, failure_);
    fields(inside, out);
    inside.finish();
  }
  template <class T>
  void take_list(const char* name, std::vector<T>& out, const Rule& rule) {
    const msgpack::object* list = items(name, rule.items, width<T>());
    if (list == nullptr) return;
    out.reserve(list->via.array.size / width<T>());
    if constexpr (Described<T> && !IsFlat<T>) {
      for (std::uint32_t i = 0; i < list->via.array.size && !failure_.bad(); ++i)
        take_array(list->via.array.ptr[i], name, i, out.emplace_back());
    } else {
      Reader inside(*list, name, kNoIndex, this, failure_);
      while (inside.more()) inside.take("item", out.emplace_back(), rule);
    }
  }

  bool more() const { return !failure_.bad() && at_ != end_; }
  const msgpack::object* next(const char* name);
  // The next item if it is an array of at most so many of so many items each.
  const msgpack::object* items(const char* name, std::size_t most, std::uint32_t width);
  std::uint64_t number(const char* name, std::uint64_t most);
  bool boolean(const char* name);
  std::string text(const char* name, const Rule& rule);
  Digest digest(const char* name);
  void refuse(const char* name, std::string_view why);
  std::string path() const;

  const char* what_;
  std::uint32_t index_;
  const Reader* parent_;
  Failure& failure_;
  const msgpack::object* at_ = nullptr;
  const msgpack::object* end_ = nullptr;
};

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

void Reader::refuse(const char* name, std::string_view why) {
  if (!failure_.bad()) failure_.detail = path() + "." + name + ": " + std::string(why);
}

const msgpack::object* Reader::next(const char* name) {
  if (more()) return at_++;
  refuse(name, "missing");
  return nullptr;
}

std::string beyond(std::size_t size, const char* unit, std::size_t most) {
  return std::to_string(size) + unit + std::to_string(most);
}

const msgpack::object* Reader::items(const char* name, std::size_t most, std::uint32_t width) {
  const msgpack::object* o = next(name);
  if (o == nullptr) return nullptr;
  if (o->type != msgpack::type::ARRAY)
    refuse(name, "not an array");
  else if (most * width < o->via.array.size)
    refuse(name, beyond(o->via.array.size, " items, at most ", most * width));
  else if (o->via.array.size % width != 0)
    refuse(name, "half an attempt at the end");
  return failure_.bad() ? nullptr : o;
}

std::uint64_t Reader::number(const char* name, std::uint64_t most) {
  const msgpack::object* o = next(name);
  if (o == nullptr) return 0;
  if (o->type == msgpack::type::NEGATIVE_INTEGER)
    refuse(name, "negative");
  else if (o->type != msgpack::type::POSITIVE_INTEGER)
    refuse(name, "not an integer");
  else if (most < o->via.u64)
    refuse(name, beyond(o->via.u64, " is more than ", most));
  return failure_.bad() ? 0 : o->via.u64;
}

bool Reader::boolean(const char* name) {
  const msgpack::object* o = next(name);
  if (o == nullptr) return false;
  require(o->type == msgpack::type::BOOLEAN, name, "not a boolean");
  return !failure_.bad() && o->via.boolean;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// UTF-8 is all that plain text and prose are: no byte of them is trusted further.
std::string Reader::text(const char* name, const Rule& rule) {
  const msgpack::object* o = next(name);
  if (o == nullptr) return {};
  const bool bytes = rule.text == Rule::Text::kBytes;
  if (o->type != (bytes ? msgpack::type::BIN : msgpack::type::STR))
    return refuse(name, bytes ? "not binary" : "not a string"), std::string();
  const std::string_view text = bytes ? std::string_view(o->via.bin.ptr, o->via.bin.size)
                                      : std::string_view(o->via.str.ptr, o->via.str.size);
  if (rule.bytes < text.size())
    return refuse(name, beyond(text.size(), " bytes, at most ", rule.bytes)), std::string();
  require(bytes || is_utf8(text), name, "not UTF-8");
  require(bytes || !has_zero(text), name, "has a zero byte");  // which no column of text holds
  if (rule.text == Rule::Text::kName) {
    require(!text.empty(), name, "empty");
    require(std::ranges::none_of(text, is_control), name, "has a control byte");
  }
  return std::string(text);
}

Digest Reader::digest(const char* name) {
  const msgpack::object* o = next(name);
  if (o == nullptr) return {};
  if (o->type != msgpack::type::BIN || o->via.bin.size != Digest::kBytes)
    return refuse(name, "not 32 bytes of digest"), Digest();
  Digest::Bytes bytes{};
  std::copy_n(o->via.bin.ptr, bytes.size(), reinterpret_cast<char*>(bytes.data()));
  return Digest(bytes);
}

// One unsigned integer at the front of `bytes`, in any width; false if there is none.
bool take_uint(std::string_view& bytes, std::uint64_t& value) {
  if (bytes.empty()) return false;
  const auto lead = static_cast<unsigned char>(bytes.front());
  std::size_t width = 0;
  if (lead < 0x80) {
    value = lead;
  } else if (0xcc <= lead && lead <= 0xcf) {
    width = std::size_t{1} << (lead - 0xcc);
    if (bytes.size() < 1 + width) return false;
    value = 0;
    for (std::size_t i = 1; i <= width; ++i)
      value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  } else {
    return false;
  }
  bytes.remove_prefix(1 + width);
  return true;
}

struct Envelope {
  std::uint64_t version = 0;
  std::uint64_t kind = 0;
};

// Read by hand before anything is unpacked: what may be unpacked depends on it.
bool peek(std::string_view bytes, Envelope& out) {
  if (bytes.empty() || bytes.front() != '\x93') return false;
  bytes.remove_prefix(1);
  return take_uint(bytes, out.version) && take_uint(bytes, out.kind);
}

// An unpacked object takes 24 bytes for as little as one on the wire.  Frames with a payload may be
// large but have few objects, all others are small: so a hostile frame costs at most 48 MiB.
struct Allowance {
  std::size_t frame_bytes;
  msgpack::unpack_limit limit;
};
Allowance allowance(std::uint64_t kind) {
  const bool chunk = kind == kKindOf<ArchiveChunk>;
  const std::size_t payload = chunk ? limits::kChunkBytes : kBundlePartBytes;
  if (chunk || kind == kKindOf<Bundle>)
    return {payload + kPayloadOverhead, msgpack::unpack_limit(8, 0, 0, payload, 0, 2)};
  // Body, list, item, usage: four levels in the envelope.
  return {kPlainFrameBytes, msgpack::unpack_limit(2 * limits::kBatchItems, 0, limits::kDetailBytes,
                                                  Digest::kBytes, 0, 5)};
}

bool is_kind(std::uint64_t number) {
  return std::apply([&](const auto&... kind) { return ((kind.number == number) || ...); }, kKinds);
}
constexpr bool kNumbersDiffer = std::apply(
    [](const auto&... kind) {
      std::array numbers{kind.number...};
      std::ranges::sort(numbers);
      return numbers.front() != 0 && std::ranges::adjacent_find(numbers) == numbers.end();
    },
    kKinds);
static_assert(kNumbersDiffer);

Error invalid(std::string detail) {
  return Error{Errc::kInvalid, std::move(detail)};
}

template <class M>
Result<Message> read_body(const KindOf<M>& kind, const msgpack::object& body,
                          std::uint64_t version) {
  Failure failure{static_cast<std::uint32_t>(version)};
  Reader reader(body, kind.name, failure);
  M message;
  fields(reader, message);
  // Who refuses in a later version may say more.
  if (is_spoken(version)) reader.finish();
  if (failure.bad()) return invalid(std::move(failure.detail));
  return Message(std::move(message));
}
}  // namespace

std::string encode(const Message& message, std::uint32_t version) {
  PROCTOR_ASSERT(is_served(version));
  std::string out;
  std::visit(
      [&]<class M>(const M& m) {
        const Members members = members_of(m, version);
        out.reserve(64 + members.bytes + members.bytes / 16);  // a batch grows it once
        Writer w(out, version);
        w.array(3);
        w.number(version);
        w.number(kKindOf<M>);
        w.array(members.count);
        fields(w, m);
      },
      message);
  PROCTOR_ASSERT(out.size() <= limits::kFrameBytes);
  return out;
}

std::uint32_t peek_version(std::string_view bytes) {
  Envelope e;
  if (!peek(bytes, e) || UINT32_MAX < e.version) return 0;
  return static_cast<std::uint32_t>(e.version);
}

std::uint64_t peek_kind(std::string_view bytes) {
  Envelope e;
  return peek(bytes, e) ? e.kind : 0;
}

Refuse wrong_version(std::uint32_t version, std::uint32_t oldest) {
  return {"protocol version " + std::to_string(version) + " is not spoken here (" +
          std::to_string(oldest) + " to " + std::to_string(kVersion) +
          "): update proctor-worker or proctor"};
}

std::string_view kind_name(const Message& message) {
  return std::visit([]<class M>(const M&) { return std::get<KindOf<M>>(kKinds).name; }, message);
}

Result<Message> decode(std::string_view bytes) try {
  Envelope e;
  if (!peek(bytes, e)) return invalid("not a message: no [version, kind, body] in front");
  if (!is_spoken(e.version) && (e.kind != kKindOf<Refuse> || e.version == 0))
    return invalid("protocol version " + std::to_string(e.version) + " is not spoken here");
  if (!is_kind(e.kind)) return invalid("unknown kind " + std::to_string(e.kind));
  const Allowance most = allowance(e.kind);
  if (most.frame_bytes < bytes.size()) {
    return invalid("a message of kind " + std::to_string(e.kind) + " has " +
                   beyond(bytes.size(), " bytes, at most ", most.frame_bytes));
  }
  // Strings stay in `bytes` instead of being copied twice.
  const auto by_reference = [](msgpack::type::object_type, std::size_t, void*) { return true; };
  std::size_t used = 0;
  const msgpack::object_handle frame =
      msgpack::unpack(bytes.data(), bytes.size(), used, by_reference, nullptr, most.limit);
  if (used != bytes.size())
    return invalid(std::to_string(bytes.size() - used) + " bytes behind the end of the message");
  const msgpack::object& body = frame->via.array.ptr[2];  // peek() saw the array of three
  std::optional<Result<Message>> read;
  std::apply(
      [&](const auto&... kind) {
        ((kind.number == e.kind ? void(read = read_body(kind, body, e.version)) : void()), ...);
      },
      kKinds);
  return std::move(*read);
} catch (const msgpack::unpack_error& e) {
  return Error{Errc::kInvalid, std::string("not MessagePack within the limits: ") + e.what()};
} catch (const std::bad_alloc&) {
  return Error{Errc::kExhausted, "no memory to unpack a message"};
}
}  // namespace proctor::wire
