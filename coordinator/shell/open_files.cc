#include "coordinator/shell/open_files.h"

#include <sys/resource.h>

#include <algorithm>

#include "common/base/files.h"

namespace proctor {
namespace {

constexpr std::size_t kInPassing = 80;
constexpr std::size_t kFilesMost = 1'000'000;  // for limits that are none

}  // namespace

void raise_open_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

std::size_t open_files_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return kFilesMost;
  return static_cast<std::size_t>(std::min<rlim_t>(files.rlim_cur, kFilesMost));
}

std::size_t connections_that_fit() {
  std::size_t open = kInPassing;
  std::error_code ec;
  for (fs::directory_iterator it("/proc/self/fd", ec), end; !ec && it != end; it.increment(ec))
    ++open;
  const std::size_t limit = open_files_limit();
  return open < limit ? limit - open : 0;
}

}  // namespace proctor
