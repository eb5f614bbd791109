#include "worker/sandbox/runtime_files.h"

#include <sys/resource.h>
#include <algorithm>
#include <fstream>
#include <limits>

#include "common/base/text.h"

namespace proctor {
Result<HeldFolder> make_runtime_folder(const std::string& prefix) {
  PROCTOR_TRY(HeldFolder dir, HeldFolder::make(prefix));
  std::error_code ec;
  fs::permissions(dir.path(), fs::perms(0755), ec);
  if (ec) return errno_error("chmod " + dir.path().string(), ec.value());
  return dir;
}

namespace {
constexpr std::uint64_t kShare = 16;

// Where it cannot be read nobody has made it small.
std::uint64_t files_of_machine() {
  std::uint64_t most = 0;
  std::ifstream in("/proc/sys/fs/file-max");
  return in >> most ? most : std::numeric_limits<std::uint64_t>::max();
}
}  // namespace

std::uint64_t open_files_limit(std::uint64_t of_worker, std::uint64_t of_machine,
                               std::uint32_t processes) {
  const std::uint64_t each = of_machine / kShare / std::max<std::uint32_t>(processes, 1);
  return std::min(of_worker, std::clamp(each, kLeastOpenFiles, kMostOpenFiles));
}

std::uint64_t open_files_here(std::uint32_t processes) {
  rlimit own{};
  ::getrlimit(RLIMIT_NOFILE, &own);
  return open_files_limit(own.rlim_max, files_of_machine(), processes);
}

Result<fs::path> find_oci_runtime(const std::string& wanted) {
  const std::string name = wanted.empty() ? kRunc : wanted;
  if (name != kRunc && name != kRunsc)
    return Error{Errc::kInvalid, "oci runtime " + printable(name, 60) + ": expected runc or runsc"};
  if (fs::path found = find_on_path(name.c_str()); !found.empty()) return found;
  return Error{Errc::kUnavailable,
               "oci: no " + name + " on PATH (on Debian: apt-get install " + name + ")"};
}
}  // namespace proctor
