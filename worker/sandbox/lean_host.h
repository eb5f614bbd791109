#pragma once
// Mount namespaces that hold what bwrap needs of this host and nothing else: one room of them
// (LeanRoom) for each sandbox, and the keeper of the rooms (LeanHost).
// Fails with kUnavailable: no root, or a kernel without open_tree (5.2).
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/owned.h"
#include "worker/sandbox/bubblewrap.h"

namespace proctor {
// LeanRoom: one such namespace, for one sandbox at a time.  Parts of the host that are shown there
// have inodes of this room's own (an overlay, with nothing above it), so that who locks or watches
// it meets nobody of another room; so have the devices.  Blocking; a thread for a moment.
// Source: mount_namespaces(7), overlayfs.rst: inodes are each overlay's; fcntl_locking(2).
struct LeanRoom {
  // `scratch` is an empty folder that outlives it, and can be that of others too.
  static Result<LeanRoom> make(const HostView& host, const fs::path& scratch);

  static constexpr std::size_t kPlaces = 96;  // of each kind; a contract with more gets the host
  static constexpr const char *kEtc = "/etc", *kInit = "/init", *kEmpty = "/empty", *kDev = "/dev",
                              *kTerminals = "/dev/pts", *kTerminalsAlone = "/pts";
  // Where the place number `i` of a kind ("folder", "file") is attached.
  static std::string place(const char* kind, std::size_t i) {
    return std::string("/").append(kind).append("/").append(std::to_string(i));
  }

  UniqueFd ns;
  bool own_devices = false;
  std::string shared;                // why some of it is the host's inodes; empty: nothing is
  std::vector<std::string> mounted;  // where on the host something was mounted then
  std::string stamp;                 // of the host (LeanHost)
  std::chrono::steady_clock::time_point made;
};

// Is something of `mounted` below `folder`?
std::vector<std::string> mounts_below(const std::vector<std::string>& mounted,
                                      const std::string& folder);
// A word of it: "\040" is a space, as the kernel writes it.  Pure.
std::string unescaped_mount_word(std::string_view word);
// The places in the lines of a mountinfo, parents first.  Pure.
std::vector<std::string> mount_points(std::string_view mountinfo);
// Those of this thread's own namespace, as they are now.
Result<std::vector<std::string>> mount_points_here();

// LeanHost: bwrap copies the table of mounts it is started in and reads it once for each of some
// thirty mounts it makes: beside the workspaces of other runs and the layers of an engine's
// containers, that was most of its time.  Mounts for one sandbox alone are attached by the process
// that becomes bwrap, in a copy of such a room.  Two sandboxes never have the same room at one
// time.
// Thread-safe after make().
// Source: mount_namespaces(7), open_tree(2), move_mount(2), bwrap(1).
class LeanHost {
 public:
  // `scratch` is an empty folder that outlives it.
  static Result<LeanHost> make(const HostView& host, const fs::path& scratch);
  // The same, by the names it has inside.
  const HostView& view() const { return pool_->view; }
  // Why some of what it shows is one inode for all sandboxes; empty: nothing is.
  const std::string& shared() const { return pool_->shared; }
  bool own_devices() const { return pool_->own_devices; }

  // Is a room another's when its sandbox is gone?  Only where somebody knows that nothing of that
  // lives any more: locks and watches end with who has them.
  enum class Then { kAnothers, kNobodys };

  // The parts of the host that one sandbox is shown.
  struct Shown {
    struct Place {
      std::string from, at;  // on the host, and inside
      bool written = false;  // by a user of its own, if there is one
      std::string overlay;   // options of an overlay over it; empty: it is shown as it is
    };
    std::shared_ptr<const LeanRoom> room;
    std::vector<Place> places;
    const OwnUser* user = nullptr;  // who owns there what is root's
  };
  // Renames the spec's places to those inside; false: more of them than there is room for, or of a
  // kind that cannot be mounted, and nothing was changed.
  Result<bool> show(SandboxSpec& spec, HostView& view, Shown& shown, Then then) const;
  // Between fork and exec: this process leaves for a copy that has what is shown.
  bool enter(const Shown& shown) const;

 private:
  struct Pool {
    HostView host, view;
    fs::path scratch;
    std::vector<std::string> watched;  // what tells that the host has changed
    std::string shared;
    bool own_devices = false;
    std::mutex mutex;
    std::vector<std::unique_ptr<const LeanRoom>> idle;
  };
  explicit LeanHost(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {}
  static Result<std::unique_ptr<const LeanRoom>> make_room(const Pool& pool);
  Result<std::shared_ptr<const LeanRoom>> take(Then then) const;
  std::shared_ptr<Pool> pool_;
};
}  // namespace proctor
