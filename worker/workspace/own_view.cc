#include "worker/workspace/own_view.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

namespace proctor {
namespace {

constexpr int kPlace = O_PATH | O_DIRECTORY | O_CLOEXEC;

bool same_folder(int a, int b) {
  struct stat one {
  }, other{};
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

}  // namespace

Result<std::unique_ptr<const OwnView>> OwnView::make(const fs::path& root) {
  PROCTOR_TRY(std::shared_ptr<const OwnUser> user, OwnUser::take());
  PROCTOR_TRY(UniqueFd seen, user->view(root));
  return std::unique_ptr<const OwnView>(new OwnView(std::move(user), root, std::move(seen)));
}

Result<UniqueFd> OwnView::open(const fs::path& folder) const {
  const UniqueFd plain(::open(folder.c_str(), kPlace));
  if (!plain.valid()) return errno_error("open " + folder.string(), errno);
  if (const std::string below = folder.lexically_relative(root_).string();
      is_safe_relative(below)) {
    UniqueFd seen(::openat(seen_.get(), below.c_str(), kPlace));
    if (seen.valid() && same_folder(seen.get(), plain.get())) return seen;
  }
  return user_->view(folder);  // on a file system of its own
}

Result<std::shared_ptr<const OwnView>> OwnViews::take() const {
  std::unique_ptr<const OwnView> one;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->idle.empty()) {
      one = std::move(state_->idle.back());
      state_->idle.pop_back();
    }
  }
  if (!one) {
    PROCTOR_TRY(one, OwnView::make(state_->root));
  }
  return std::shared_ptr<const OwnView>(one.release(), [state = state_](const OwnView* used) {
    const std::lock_guard lock(state->mutex);
    state->idle.emplace_back(used);
  });
}

}  // namespace proctor
