#include "common/base/result.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace proctor {
void assert_failed(const char* expr, const char* file, int line, const char* function) {
  std::fprintf(stderr, "%s:%d: %s: assertion failed: %s\n", file, line, function, expr);
  std::signal(SIGABRT, SIG_DFL);  // last_words.h explains those of libraries
  std::abort();
}

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::kInvalid:
      return "invalid";
    case Errc::kNotFound:
      return "not_found";
    case Errc::kConflict:
      return "conflict";
    case Errc::kExhausted:
      return "exhausted";
    case Errc::kUnavailable:
      return "unavailable";
    case Errc::kCorrupt:
      return "corrupt";
  }
  PROCTOR_ASSERT(false && "Errc outside its enumerators");
}
}  // namespace proctor
