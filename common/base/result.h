#pragma once
// Operating errors as values (Result), programmer errors as assertions.
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "common/base/words.h"

namespace proctor {
[[noreturn]] void assert_failed(const char* expr, const char* file, int line, const char* function);
}  // namespace proctor

// PROCTOR_ASSERT stays on in every build: a wrong coordinator must stop, not spend money.
// For programmer errors only.  Bad bytes from a peer are a Result, never an assertion.
// (No std::source_location: clang-tidy 14 cannot read it.)
#define PROCTOR_ASSERT(cond) \
  ((cond)                    \
       ? (void)0             \
       : ::proctor::assert_failed(#cond, __FILE__, __LINE__, static_cast<const char*>(__func__)))

namespace proctor {
// Overload{f, g, ...}: one callable out of several, for std::visit.
template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

// The caller's next step, not where it went wrong; `detail` says where.
enum class Errc {
  kInvalid,      // the input is wrong; retrying the same input cannot help
  kNotFound,     // what was named is not there
  kConflict,     // someone else won: lease lost, version moved, duplicate
  kExhausted,    // a limit was hit: budget, queue, retries, disk
  kUnavailable,  // transient: retry with backoff
  kCorrupt,      // stored or received bytes fail their own checks
};

constexpr auto words(Errc) {
  return std::to_array<Word<Errc>>({{"invalid", Errc::kInvalid},
                                    {"not_found", Errc::kNotFound},
                                    {"conflict", Errc::kConflict},
                                    {"exhausted", Errc::kExhausted},
                                    {"unavailable", Errc::kUnavailable},
                                    {"corrupt", Errc::kCorrupt}});
}

struct Error {
  Errc code;
  std::string detail;
};

// Prefixes what failed with what was being attempted: "open journal: disk full".
inline Error in_context(std::string_view what, Error e) {
  e.detail = std::string(what) + ": " + e.detail;
  return e;
}

// Result<T>: the one way a fallible function reports an operating error; it does not throw.
// Programmer errors are not Results: PROCTOR_ASSERT is for them.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const T& value() const& {
    PROCTOR_ASSERT(ok());
    return *std::get_if<0>(&v_);
  }
  T& value() & {
    PROCTOR_ASSERT(ok());
    return *std::get_if<0>(&v_);
  }
  T&& value() && {
    PROCTOR_ASSERT(ok());
    return std::move(*std::get_if<0>(&v_));
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }
  const Error& error() const& {
    PROCTOR_ASSERT(!ok());
    return *std::get_if<1>(&v_);
  }
  Error&& error() && {
    PROCTOR_ASSERT(!ok());
    return std::move(*std::get_if<1>(&v_));
  }

 private:
  std::variant<T, Error> v_;
};

struct Unit {
  friend bool operator==(Unit, Unit) = default;
};
using Status = Result<Unit>;
inline Status ok_status() {
  return Unit{};
}
}  // namespace proctor

#define PROCTOR_CONCAT_(a, b) a##b
#define PROCTOR_CONCAT(a, b) PROCTOR_CONCAT_(a, b)
// PROCTOR_TRY(auto x, f());  binds the value or returns the error to our caller.
#define PROCTOR_TRY(decl, expr) \
  PROCTOR_TRY_IMPL_(PROCTOR_CONCAT(proctor_try_, __COUNTER__), decl, expr)
#define PROCTOR_TRY_IMPL_(tmp, decl, expr)      \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp).error(); \
  decl = std::move(tmp).value()
#define PROCTOR_CHECK_OK(expr) \
  if (auto proctor_s = (expr); !proctor_s.ok()) return std::move(proctor_s).error()
