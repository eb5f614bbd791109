#pragma once
// overlayfs: two read-only lower layers (the .git of a tree, its checkout) under one upper layer
// that holds exactly what was changed.  Needs root.  Blocking.
// Fails with errno_error of mount(2).  Source: Documentation/filesystems/overlayfs.rst of Linux.
#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

struct OverlayDirs {
  fs::path git;   // upper lower layer: ".git" only
  fs::path tree;  // bottom layer: the checkout
  fs::path upper;
  fs::path work;
  fs::path merged;
};

Status mount_overlay(const OverlayDirs& dirs);
// Lazily (MNT_DETACH) when something still uses it.  Not mounted is fine.
Status unmount(const fs::path& merged);
// Can overlays be mounted with layers under `root`, and are their upper layers as we read them?
// Tried for real, in a folder that is removed again.
Status probe_overlay(const fs::path& root);

// Was the folder made anew over one of the lower layers, which it hides?
bool is_opaque(int dir);

}  // namespace proctor
