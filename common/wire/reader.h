#pragma once
// Reader: a strict cursor over one MessagePack array.  Fields are taken by name and in order; the
// first one that is missing, of another type, or out of range ends the reading: every later call
// returns an empty value, and the Failure says where.  Private to the codec.
#include <cstdint>
#include <msgpack.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/base/money.h"
#include "common/base/result.h"

namespace proctor::wire {

// Shared by a Reader and those of the arrays inside it: the first complaint stays.
struct Failure {
  std::string detail;
  std::uint32_t version = 0;  // of the frame
  bool bad() const { return !detail.empty(); }
};

class Reader {
 public:
  Reader(const msgpack::object& array, const char* what, Failure& failure)
      : Reader(array, what, kNoIndex, nullptr, failure) {}

  std::uint64_t u64(const char* field, std::uint64_t most = UINT64_MAX);
  std::uint32_t u32(const char* field, std::uint32_t most = UINT32_MAX);
  std::int64_t wall_ms(const char* field);
  MicroUsd money(const char* field);
  bool boolean(const char* field);
  // Any UTF-8; nothing in it is trusted further.
  std::string text(const char* field, std::size_t bytes_max);
  // Not empty, no control bytes: may become a label or a file's name after the usual checks.
  std::string name(const char* field, std::size_t bytes_max);
  std::string binary(const char* field, std::size_t bytes_max);
  Digest digest(const char* field);
  AttemptId attempt();  // two fields: run, no
  // [run, no, run, no, ...]: flat, because acknowledgements come by the thousand.
  std::vector<AttemptId> attempts(const char* field, std::size_t items_max);
  // An enumeration with the values 0 .. last.
  template <class E>
  E enumerator(const char* field, E last) {
    return static_cast<E>(u64(field, static_cast<std::uint64_t>(last)));
  }
  // An array in which `read_one(Reader&)` reads each element, itself an array.
  template <class F>
  auto list(const char* field, std::size_t items_max, F read_one) {
    std::vector<decltype(read_one(*this))> out;
    const msgpack::object* array = counted_array(field, items_max);
    if (array == nullptr) return out;
    out.reserve(array->via.array.size);
    for (std::uint32_t i = 0; i < array->via.array.size && !failure_.bad(); ++i) {
      Reader item(array->via.array.ptr[i], field, i, this, failure_);
      out.push_back(read_one(item));
      item.finish();
    }
    return out;
  }
  template <class F>
  auto nested(const char* field, F read) {
    const msgpack::object* array = counted_array(field, SIZE_MAX);
    if (array == nullptr) return decltype(read(*this)){};
    Reader inside(*array, field, kNoIndex, this, failure_);
    auto out = read(inside);
    inside.finish();
    return out;
  }
  std::vector<std::string> names(const char* field, std::size_t items_max, std::size_t bytes_max);
  std::vector<Digest> digests(const char* field, std::size_t items_max);
  std::vector<std::uint64_t> counts(const char* field, std::size_t items_max, std::uint64_t most);
  const msgpack::object* any(const char* field) { return next(field); }
  // A rule between fields that the caller checked: `holds` is false, so `field` is refused.
  void require(bool holds, const char* field, std::string_view why);
  std::uint32_t version() const { return failure_.version; }
  bool more() const { return !failure_.bad() && at_ != end_; }
  // No field may be left over.
  void finish();

 private:
  // An array whose elements `read_one(Reader&)` reads one after the other, no arrays themselves.
  template <class F>
  auto items(const char* field, std::size_t items_max, F read_one) {
    std::vector<decltype(read_one(*this))> out;
    const msgpack::object* array = counted_array(field, items_max);
    if (array == nullptr) return out;
    Reader inside(*array, field, kNoIndex, this, failure_);
    out.reserve(array->via.array.size);
    while (!failure_.bad() && inside.at_ != inside.end_) out.push_back(read_one(inside));
    return out;
  }
  static constexpr std::uint32_t kNoIndex = UINT32_MAX;
  Reader(const msgpack::object& array, const char* what, std::uint32_t index, const Reader* parent,
         Failure& failure);
  const msgpack::object* next(const char* field);
  const msgpack::object* counted_array(const char* field, std::size_t items_max);
  std::string_view checked_text(const msgpack::object* o, const char* field, std::size_t bytes_max);
  Digest checked_digest(const msgpack::object* o, const char* field);
  void refuse(const char* field, std::string_view why);
  std::string path() const;

  const char* what_;
  std::uint32_t index_;
  const Reader* parent_;
  Failure& failure_;
  const msgpack::object* at_ = nullptr;
  const msgpack::object* end_ = nullptr;
};

}  // namespace proctor::wire
