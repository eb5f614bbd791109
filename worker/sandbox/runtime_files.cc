#include "worker/sandbox/runtime_files.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

Result<TempDir> make_runtime_folder(const std::string& prefix) {
  PROCTOR_TRY(TempDir dir, TempDir::create(prefix + std::to_string(::getpid()) + "-"));
  std::error_code ec;
  fs::permissions(dir.path(), fs::perms(0755), ec);
  if (ec) return errno_error("chmod " + dir.path().string(), ec.value());
  return dir;
}

void remove_stale_runtime_folders(const std::string& prefix) {
  std::error_code ec;
  for (fs::directory_iterator it(fs::temp_directory_path(ec), ec), end; !ec && it != end;
       it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const pid_t pid = std::atoi(name.c_str() + prefix.size());  // NOLINT: 0 is "not ours"
    if (0 < pid && ::kill(pid, 0) != 0 && errno == ESRCH) (void)remove_tree(it->path()).ok();
  }
}

}  // namespace proctor
