#pragma once
// The OCI engine: every run() is one container by the low-level runtime that the Docker Engine uses
// too (runc; runtime_files.h), without an engine, over an image that was unpacked into this host's
// store (`proctor images import`).  A command sees what it sees under Docker (spec_rules.h).
//
// The image's root is the read-only lower layer of an overlay that exists only in the runtime's own
// mount namespace: nothing of it can be left on the host.  Things that can be left (control groups
// and the runtime's state, in a folder that names our process) are removed by clean_up().  The
// container itself ends with the worker: its init sees that nobody reads its status any more.
//
// Needs root.  Thread-safe.  Fails with kUnavailable (no runtime, not root, no image store),
// kNotFound (no such image or mount here), kInvalid (the spec).
#include <memory>
#include <optional>
#include <string>

#include "worker/sandbox/sandbox.h"

namespace proctor {
Result<std::unique_ptr<SandboxEngine>> open_oci_engine(const SandboxOptions& options);

// Folders of engines whose process is dead, whoever had them; their control groups are removed by
// any engine of their owner's that cleans up.
void remove_left_oci_folders();

// Can runtimes be started here, and does the store hold this image?  Looks, starts nothing.
bool oci_offers(const SandboxOptions& options, const std::string& image);
// Can they be started, and does it hold any?  The id of one.
std::optional<std::string> oci_any_image(const SandboxOptions& options);
// The images of the store, as features name them: each image by its id, its manifest and its names.
// Sorted; the first kOciImagesMost.
inline constexpr std::size_t kOciImagesMost = 240;
std::vector<std::string> oci_images(const SandboxOptions& options);
}  // namespace proctor
