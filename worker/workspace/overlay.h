#pragma once
// overlayfs: read-only lower layers (what setup made, the .git of a tree, its checkout) under one
// upper layer that holds exactly what was changed.  Needs root, or mounts of one's own
// (common/base/namespaces.h).  Blocking.
// Fails with errno_error of mount(2).  Source: Documentation/filesystems/overlayfs.rst of Linux.
#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/workspace/own_view.h"
#include "worker/workspace/workspace_kind.h"

namespace proctor {

struct OverlayDirs {
  fs::path git;   // lower layer above the checkout: ".git" only
  fs::path tree;  // bottom layer: the checkout
  fs::path upper;
  fs::path work;
  fs::path merged;
  fs::path setup{};  // top one of the lower layers: the upper layer that a setup left; empty: none
};

// `kind`: one of the kernel's.  `view` (kOverlay, upper and work in one folder): all of it belongs
// to that user, and only as him (ActingAs) can anything be made in it.
Status mount_overlay(const OverlayDirs& dirs, WorkspaceKind kind = WorkspaceKind::kOverlay,
                     const OwnView* view = nullptr);
// Lazily (MNT_DETACH) when something still uses it.  Not mounted is fine.
Status unmount(const fs::path& merged);
// Now or not at all: kUnavailable while something uses it.
Status unmount_strictly(const fs::path& merged);

}  // namespace proctor
