#pragma once
// LeanRoom: a mount namespace that holds what bwrap needs of this host and nothing else, for one
// sandbox at a time.  What of the host is shown there has inodes of this room's own (an overlay,
// with nothing above it), so that who locks or watches it meets nobody of another room; so have the
// devices.  Blocking; a thread for a moment.  Fails with kUnavailable: no root, or a kernel without
// open_tree (5.2).
// Source: mount_namespaces(7), overlayfs.rst: inodes are each overlay's; fcntl_locking(2).
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "common/base/owned.h"
#include "worker/sandbox/bubblewrap_args.h"

namespace proctor {

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
// The places in the lines of a mountinfo, parents first.  Pure.
std::vector<std::string> mount_points(std::string_view mountinfo);
// Those of this thread's own namespace, as they are now.
Result<std::vector<std::string>> mount_points_here();

}  // namespace proctor
