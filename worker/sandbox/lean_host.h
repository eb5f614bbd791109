#pragma once
// A mount namespace that holds what bwrap needs of this host and nothing else.  bwrap copies the
// table of mounts it is started in and reads it once for each of some thirty mounts it makes:
// beside the workspaces of other runs and the layers of an engine's containers, that was most of
// its time. What one sandbox alone is shown is attached by the process that becomes bwrap, in a
// copy of this. Thread-safe after make().  Fails with kUnavailable: no root, or a kernel without
// open_tree (5.2). Source: mount_namespaces(7), open_tree(2), move_mount(2), bwrap(1).
#include <string>
#include <vector>

#include "common/base/unique_fd.h"
#include "worker/sandbox/bubblewrap_args.h"

namespace proctor {

class LeanHost {
 public:
  // `scratch` is an empty folder that outlives it.
  static Result<LeanHost> make(const HostView& host, const fs::path& scratch);
  // The same, by the names it has inside.
  const HostView& view() const { return view_; }

  // What of the host one sandbox is shown.
  struct Shown {
    struct Place {
      std::string from, at;  // on the host, and inside
      bool written = false;  // by a user of its own, if there is one
    };
    std::vector<Place> places;
    const OwnUser* user = nullptr;  // who owns there what is root's
  };
  // Renames the spec's places to those inside; false: more of them than there is room for, or of a
  // kind that cannot be mounted, and nothing was changed.
  bool show(SandboxSpec& spec, HostView& view, Shown& shown) const;
  // Between fork and exec: this process leaves for a copy that has what is shown.
  bool enter(const Shown& shown) const;

 private:
  LeanHost(UniqueFd ns, HostView view) : ns_(std::move(ns)), view_(std::move(view)) {}
  UniqueFd ns_;
  HostView view_;
};

}  // namespace proctor
