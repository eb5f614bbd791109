#pragma once
// User and network namespaces that one sandbox enters.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/owned.h"
#include "common/base/result.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// Without root: of what this user may have, one sandbox's part.
inline constexpr std::uint64_t kUserShare = 8;

// UserCounts: a user namespace in which one sandbox at a time runs, so that what the kernel counts
// by user (instances and watches of inotify, groups of fanotify, pending signals and timers, bytes
// in message queues, locked shared memory) it counts for that sandbox.  Every user and group has
// the number in it that it has outside, so files keep their owners; but for root, who can be a user
// of its own outside (namespaces.h): what he is to own is then seen through mounts that are lent.
//
// The kernel keeps such a count in a process's user namespace and, for all of those below another,
// with the user who made the one below.  Root makes each of these as a user whom nobody else is;
// who is not root has one number only, and gives each an eighth of what that number may have.
// Source: user_namespaces(7), namespaces(7) on /proc/sys/user; kernel/ucount.c of Linux 5.14.
class UserCounts {
 public:
  // Users, or groups, that it has.
  struct Range {
    std::uint64_t first = 0, outside = 0, count = 0;
  };
  // The share of one count, for a namespace that writes it to this file.
  struct Share {
    const char* file;
    std::string most;
  };
  // `root`: who is its root outside; none: who is root there.  kUnavailable: this host makes none.
  static Result<UserCounts> make(std::optional<std::uint32_t> root = std::nullopt);
  // The calling process is in it from now on, and must ask for its parent's death again.  For a
  // child between fork and exec; async-signal-safe.
  bool enter() const;
  // The same for a process that has entered another user namespace, in whose maps these are lines:
  // it makes one below that, where it may have of each count what one sandbox may without root.
  bool enter_below(std::string_view users, std::string_view groups) const;
  // OwnUser::lend() for its root, and for everybody else that he is outside.
  bool lend(int tree) const;
  std::uint32_t root() const { return static_cast<std::uint32_t>(users_.front().outside); }
  // Where others find it for as long as it lives.
  std::string path() const;
  const std::vector<Range>& users() const { return users_; }
  const std::vector<Range>& groups() const { return groups_; }
  // May a runtime that joins it mount what containers have?  Not where something lies over parts of
  // this host's /proc or /sys: the kernel then shows them to no other namespace whole.
  Status mounts() const;

 private:
  UserCounts(UniqueFd user, std::vector<Range> users, std::vector<Range> groups)
      : user_(std::move(user)), users_(std::move(users)), groups_(std::move(groups)) {}
  UniqueFd user_;
  std::vector<Range> users_, groups_;
  std::vector<Share> shares_;
};

// Those of one engine: as many as sandboxes ran at once, each used again when its sandbox is gone
// and nothing is counted there any more.  Thread-safe.
class UserCountsPool {
 public:
  enum class For { kProcess, kContainer };
  // Finds out whether any can be made.
  explicit UserCountsPool(For whom);
  static UserCountsPool none() { return UserCountsPool(nullptr); }
  bool works() const { return state_ != nullptr; }
  // For one sandbox, given back by its destruction.  Null: none works here.
  Result<std::shared_ptr<const UserCounts>> take(
      std::optional<std::uint32_t> root = std::nullopt) const;

 private:
  struct State {
    std::mutex mutex;
    // By who is root there.
    std::map<std::optional<std::uint32_t>, std::vector<std::unique_ptr<const UserCounts>>> idle;
  };
  explicit UserCountsPool(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// BoxNetwork: the shared network of sandboxes whose runtime is a process of ours.  A network
// namespace that nobody but these descriptors and the sandboxes holds: nothing of it can be left
// over.  Without root it lies in a user namespace of its own, which is entered first.
// Fails with kUnavailable: namespaces cannot be had, no process.
// Source: network_namespaces(7), user_namespaces(7), setns(2).
class BoxNetwork final : public SharedNetwork {
 public:
  static Result<std::shared_ptr<SharedNetwork>> make();
  Result<bool> accepts(std::uint16_t port) override;
  // The calling process is in it from now on.  Async-signal-safe; for a child between fork and
  // exec.
  bool enter() const;
  // The same for UserCounts, after enter(): who is in this network's own user namespace enters none
  // beside it, only one below.  Async-signal-safe.
  bool enter_counts(const UserCounts& counts) const;

 private:
  BoxNetwork(UniqueFd user, UniqueFd network)
      : user_(std::move(user)), network_(std::move(network)) {}
  UniqueFd user_, network_;  // user_: invalid where the namespace belongs to ours
};
}  // namespace proctor
