#include "worker/sandbox/oci_runtime.h"

#include "common/base/text.h"
#include "worker/sandbox/runtime_files.h"

namespace proctor {

Result<fs::path> find_oci_runtime(const std::string& wanted) {
  const std::string name = wanted.empty() ? kRunc : wanted;
  if (name != kRunc && name != kRunsc)
    return Error{Errc::kInvalid, "oci runtime " + printable(name, 60) + ": expected runc or runsc"};
  if (fs::path found = find_on_path(name.c_str()); !found.empty()) return found;
  return Error{Errc::kUnavailable,
               "oci: no " + name + " on PATH (on Debian: apt-get install " + name + ")"};
}

}  // namespace proctor
