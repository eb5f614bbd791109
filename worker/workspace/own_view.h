#pragma once
// OwnView: the folders of a store as a user of a workspace's own sees them, who is the owner of all
// that root owns there.  An overlay of such folders is his to write to, in a sandbox that runs as
// him; on the disk it is root's, as every other.  OwnViews keeps them from one workspace to the
// next, for each costs a process and a mount.  Both are thread-safe.  Blocking.
// Fails with kUnavailable, kExhausted (common/base/namespaces.h), errno_error.
// Source: Documentation/filesystems/overlayfs.rst of Linux (idmapped layers, since 5.19).
#include <memory>
#include <mutex>
#include <vector>

#include "common/base/files.h"
#include "common/base/namespaces.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {

class OwnView {
 public:
  // `root`: of most folders that will be asked for.
  static Result<std::unique_ptr<const OwnView>> make(const fs::path& root);
  const std::shared_ptr<const OwnUser>& user() const { return user_; }
  // For a layer of mount(2) and for openat(2).
  Result<UniqueFd> open(const fs::path& folder) const;

 private:
  OwnView(std::shared_ptr<const OwnUser> user, fs::path root, UniqueFd seen)
      : user_(std::move(user)), root_(std::move(root)), seen_(std::move(seen)) {}
  std::shared_ptr<const OwnUser> user_;
  fs::path root_;
  UniqueFd seen_;
};

class OwnViews {
 public:
  explicit OwnViews(const fs::path& root) : state_(std::make_shared<State>()) {
    state_->root = root;
  }
  // For one workspace, given back by its destruction.
  Result<std::shared_ptr<const OwnView>> take() const;

 private:
  struct State {
    fs::path root;
    std::mutex mutex;
    std::vector<std::unique_ptr<const OwnView>> idle;
  };
  std::shared_ptr<State> state_;
};

}  // namespace proctor
