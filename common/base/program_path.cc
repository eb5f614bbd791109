#include "common/base/program_path.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace proctor {

fs::path find_on_path(const char* program) {
  const char* path = ::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody calls setenv
  // Runtimes are in sbin, which a user's PATH may lack.
  std::string places = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  places += ":/usr/local/sbin:/usr/sbin:/sbin";
  std::string_view left = places;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const fs::path file = fs::path(left.substr(0, end)) / program;
    if (file.is_absolute() && ::access(file.c_str(), X_OK) == 0) return file;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return {};
}

}  // namespace proctor
