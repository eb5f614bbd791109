#pragma once
// User and mount namespaces that this process makes for itself, and users of its own (OwnUser).
#include <sys/types.h>
#include <cstdint>
#include <functional>
#include <memory>

#include "common/base/files.h"
#include "common/base/limits.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "common/base/subprocess.h"

namespace proctor {
// NamespaceMaker: a process in which namespaces are made, and which lives until they have been
// opened.  A thread of ours could make some of them in itself, but not all (a user namespace), and
// would be left in them.
// Owns the process; one object, one thread.  Fails with errno_error.
// Source: namespaces(7), user_namespaces(7).
class NamespaceMaker {
 public:
  NamespaceMaker() = default;
  NamespaceMaker(const NamespaceMaker&) = delete;
  NamespaceMaker& operator=(const NamespaceMaker&) = delete;
  ~NamespaceMaker();

  // `make` runs between fork and _exit: async-signal-safe calls only; 0, or an errno.
  Status begin(const char* what, const std::function<int()>& make);
  // The process that is in them.
  pid_t pid() const { return pid_; }
  // "user", "net": as in /proc/PID/ns.
  Result<UniqueFd> open(const char* kind) const;

 private:
  pid_t pid_ = -1;
};

// A user namespace and a mount namespace of this process's own, in which one without root may mount
// what such a namespace allows, overlays.  Users and groups keep their numbers; whoever is
// started by exec(2) has no more rights in it than outside.  All mounts in it go with its last
// process, whatever that dies of.  They are invisible outside.
// Source: user_namespaces(7), mount_namespaces(7).

// Moves this process into such namespaces, once it is known from a child that one may mount there.
// After an error it is where it was.  kUnavailable: not on this host, or it has threads already.
// Not thread-safe.
Status enter_own_mounts();
// Has it been moved?  Any thread, once enter_own_mounts() has returned.
bool has_own_mounts();

// Each process has as many users of its own: for the workspace of each of a worker's slots, for the
// setup of its method, and for workspaces that rest.
inline constexpr std::uint32_t kOwnUsersMost = 1024;
static_assert(2 * limits::kWorkerSlotsMax < kOwnUsersMost);

// OwnUser: a user (and group) of this host whom nobody else is, so that what the kernel counts by
// real user it counts for whoever runs as that one alone.  Such a user owns nothing on any disk:
// what root owns there is his where it is seen through an id-mapped mount, and root's again
// everywhere else.  Only for a worker that is root, on kernels that map mounts (5.12), below file
// systems that allow it.
// Thread-safe.  Fails with kUnavailable (not here), kExhausted (all are taken).
// Source: mount_setattr(2) on MOUNT_ATTR_IDMAP, user_namespaces(7), setfsuid(2), capabilities(7).
class OwnUser {
 public:
  // One that nobody of this process has now; free again with the last pointer to it.
  static Result<std::shared_ptr<const OwnUser>> take();
  std::uint32_t id() const { return id_; }
  // A folder or file as this user is to see it: a mount at no place, for openat(2), mount(2),
  // move_mount(2).  Without what is mounted below.
  Result<UniqueFd> view(const fs::path& place) const;
  // Makes such a view of a mount at no place, and of those below it where all of them allow that.
  // Async-signal-safe.  False: errno says why not.
  bool lend(int tree) const;
  // run_command() by this user with root's rights over files: what it makes is his, and whatever
  // is closed to him open.
  Result<CommandOutcome> run(const CommandSpec& spec) const;

 private:
  OwnUser(std::uint32_t id, UniqueFd map) : id_(id), map_(std::move(map)) {}
  static Result<OwnUser> make(std::uint32_t id);
  std::uint32_t id_;
  UniqueFd map_;  // a user namespace in which he is root
};

// Owners of what is seen through a mount at no place, and through those below it where all of them
// allow that, go by the map of this user namespace from now on.  Async-signal-safe.  False: errno
// says why not.
bool map_owners(int tree, int user_namespace);

// Is this the number of such a user of any process?
bool is_own_user(std::uint32_t id);

// While it lives, what this thread makes belongs to `user` (null: to whom it would), and it may
// still do whatever it might.  The signal that this thread was to get when its parent dies is
// forgotten.
class ActingAs {
 public:
  explicit ActingAs(const OwnUser* user);
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;
  ~ActingAs();

 private:
  bool acting_;
};
}  // namespace proctor
