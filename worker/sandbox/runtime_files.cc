#include "worker/sandbox/runtime_files.h"

namespace proctor {

Result<HeldFolder> make_runtime_folder(const std::string& prefix) {
  PROCTOR_TRY(HeldFolder dir, HeldFolder::make(prefix));
  std::error_code ec;
  fs::permissions(dir.path(), fs::perms(0755), ec);
  if (ec) return errno_error("chmod " + dir.path().string(), ec.value());
  return dir;
}

}  // namespace proctor
