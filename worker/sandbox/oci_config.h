#pragma once
// config.json of one OCI bundle: where every promise of the OCI sandbox is written down, in the
// image of what the Docker Engine writes for the same spec.  Pure.
// Source: OCI runtime-spec 1.0.2 (config.md, config-linux.md).
#include <string>
#include <string_view>

#include "common/images/image_store.h"
#include "worker/sandbox/box_namespaces.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// The parts of this host that the container is made of.
struct OciHost {
  fs::path rootfs;           // the root, private to this container
  fs::path init;             // a static program, shown at kContainerInitAt
  fs::path etc;              // holds hosts and hostname
  std::string cgroups_path;  // below every hierarchy's mount
  std::uint64_t open_files = 0;
  bool limit_memory = true, limit_processes = true, limit_cpus = true;  // the kernel can, here
  bool hide_groups =
      false;  // of the host: on control groups of version 2, as the Docker Engine does
  // Which user namespace it joins; null: none.  Its users are those of the host, but for root who
  // may be one of its own; and so are its networks, where it has none of its own: `sys` then is
  // what it is shown as /sys.
  const UserCounts* counts = nullptr;
  std::string sys{};
  fs::path resolver = "/etc/resolv.conf";  // shown where there is a network
  // The first process limits itself: only whoever is root outside, or may pass every limit there,
  // limits a process of another user.
  bool limits_itself = false;
  bool watched = false;  // the first process is given two filters (CallWatch)
  // By runsc: the kernel inside is one in user space, and the host's limits are not its business.
  bool userspace = false;
};

// For a spec with a program: what it leaves to the image, filled in as the Docker Engine does.
// kInvalid: the image has no program of its own.
Result<SandboxSpec> with_image_program(SandboxSpec spec, const ImageConfig& image);

// Requires: check_image_spec passed, and with_image_program where there is a program.
std::string oci_config(const SandboxSpec& spec, const OciHost& host, const std::string& command);

// Bytes that are no part of the file: init reads them (init/main.cc).  The filter of system calls
// is loaded there because a runtime needs 5 ms to make one of a list as long as ours.
std::string for_first_process(std::string_view bytes);
// The limits that it is to set for itself, if it is.
std::string oci_limits(const SandboxSpec& spec, const OciHost& host);
// The command's environment, as the first process reads it.
std::string oci_environment(const SandboxSpec& spec);
}  // namespace proctor
