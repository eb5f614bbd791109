#pragma once
// Things of this host that engines with a runtime of their own give to sandboxes: a folder of
// files, the first process, descriptors, and the runtime itself.  Thread-safe (no state).
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/file_lock.h"
#include "common/base/files.h"
#include "common/base/result.h"
#include "common/base/subprocess.h"

namespace proctor {
// A temporary folder that is readable by all, and ours for as long as we live.
Result<HeldFolder> make_runtime_folder(const std::string& prefix);

// The bytes of the static program that is the first process of every sandbox (init/main.cc): images
// bring no such thing, and those of bwrap and of the Docker Engine can be traced from inside.
std::string_view oci_init_program();

// How many descriptors a process in a sandbox may have: so few that all processes of a few
// sandboxes together leave their neighbours some of what the machine has (fs.file-max, proc(5)),
// for the kernel counts open files by machine alone.

inline constexpr std::uint64_t kLeastOpenFiles = 1'024;  // what programs expect to have
inline constexpr std::uint64_t kMostOpenFiles =
    65'536;  // Go and Node raise their soft limit to the hard one

// Pure.  `of_worker`: its own hard limit; `of_machine`: fs.file-max; `processes`: the sandbox's
// limit, 0 where it has none.  A sixteenth of the machine's for each sandbox, between the two
// bounds above, and never more than the worker may give.
std::uint64_t open_files_limit(std::uint64_t of_worker, std::uint64_t of_machine,
                               std::uint32_t processes);

// The limit by this process and this machine, as both are now.
std::uint64_t open_files_here(std::uint32_t processes);

// Which program starts containers from a bundle: runc, which the Docker Engine uses too, or runsc,
// whose containers have a kernel of their own in user space (oci.cc).
// Source: "runtime command line interface" of the OCI; runc(8), runsc flags(1).

inline constexpr const char* kRunc = "runc";
inline constexpr const char* kRunsc = "runsc";

// Blocking.  `wanted`: "runc", "runsc", or empty: runc.  kInvalid: another name; kUnavailable: it
// is not there, with what would help.
Result<fs::path> find_oci_runtime(const std::string& wanted);
}  // namespace proctor
