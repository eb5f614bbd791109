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

}  // namespace proctor
