#pragma once
// The bubblewrap engine, and the command line of each `bwrap`.  Thread-safe.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/sandbox/sandbox.h"

namespace proctor {
// The command line of one `bwrap`: what a command sees of the host (usr, read-only; an /etc of our
// own making; nothing else) and what it may write (its workspace and private tmpfs).
// Decides only; the engine gathers HostView once.  Fails with kInvalid (the spec cannot be met by
// bubblewrap), kNotFound (not on this host).
// Source: bwrap(1) 0.8.

inline constexpr const char* kBubblewrapInitAt = "/init";

// The parts of this host that every sandbox shows.
struct HostView {
  fs::path bwrap;
  std::vector<std::pair<std::string, std::string>> links;  // "/bin" -> "usr/bin" (merged usr)
  std::vector<std::string> dirs;                           // "/usr", and "/bin" where it is real
  fs::path etc;                                            // our /etc
  fs::path init;                                           // our first process, shown at /init
  fs::path empty;                                          // a folder, shown over others
  // The folder that is shown as /dev, terminals of its own in it (kernel_files.h); empty: bwrap
  // makes one of the host's files.  Then `terminals` is shown as /dev/pts, unless it is empty too.
  fs::path dev, terminals;
  bool close_devices = false;  // of the host's files, those that are devices are shut to all
  std::vector<std::string> proc_masked_files, proc_masked_dirs;  // of kMaskedProc
  // The same for what the host lets its root alone open: who is a user of his own is not that one.
  std::vector<std::string> proc_closed_files, proc_closed_dirs;
  std::vector<std::string> etc_shown;  // folders of the host's /etc that are shown in ours
  std::string resolver;                // what is shown as /etc/resolv.conf; empty: there is none
};

// Checks everything about a spec that does not depend on the command.
Status check_bubblewrap_spec(const SandboxSpec& spec);

// argv, argv[0] being the path of bwrap.  Requires: check_bubblewrap_spec passed.  `watched`: init
// loads the filters (CallWatch), else bwrap.
std::vector<std::string> bubblewrap_argv(const HostView& host, const SandboxSpec& spec,
                                         const std::string& command, bool watched = false);

// More of its arguments, as bwrap reads them: the environment, which does not stand among the
// others because every user of the host sees those.  Requires: check_bubblewrap_spec passed.
std::string bubblewrap_environment(const SandboxSpec& spec);

// The bubblewrap engine: every run() is one `bwrap` in fresh namespaces, unprivileged inside, under
// a seccomp filter, control groups where they can be had and resource limits where not.  Owns the
// folder that is every sandbox's /etc, and the owner's control groups.
// Fails with kUnavailable (no bwrap, no user namespaces), kInvalid (the spec), kNotFound (no such
// mount here).

// One in which an empty command has worked.
Result<std::unique_ptr<SandboxEngine>> open_bubblewrap_engine(const SandboxOptions& options);
// One that nobody has tried: for who runs something in it before all else anyway, and opens it the
// other way where that fails.
Result<std::unique_ptr<SandboxEngine>> open_untried_bubblewrap_engine(
    const SandboxOptions& options);
}  // namespace proctor
