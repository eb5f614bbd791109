#pragma once
// Parts of /dev, /proc and /sys that a sandbox has.
#include <array>
#include <string>
#include <vector>

#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {
// The devices that every sandbox has, and terminals of its own.  None of them is the host's file:
// a sandbox's user may be the host's root under another number, who owns those files and could
// close them to everybody.  Source: null(4), random(4), pts(4); devpts of Linux.
struct Device {
  unsigned major, minor;
  const char* name;
};
inline constexpr std::array<Device, 6> kDevices = {{{1, 3, "null"},
                                                    {1, 5, "zero"},
                                                    {1, 7, "full"},
                                                    {1, 8, "random"},
                                                    {1, 9, "urandom"},
                                                    {5, 0, "tty"}}};

// A host has, for all its sandboxes, kernel.pty.max less kernel.pty.reserve, 3,072 where nobody has
// said otherwise: enough for 48 of them.
inline constexpr const char* kTerminalsMost = "max=64";
inline constexpr const char* kTerminalOptions = "newinstance,ptmxmode=0666,mode=0620,max=64";

// Makes them in the folder `dir`, of this user and group.  Async-signal-safe.  False: errno says
// why not.
bool make_devices(const char* dir, unsigned owner = 0);

// /dev/null, opened for one command: what is set on a descriptor (a lock, a signal, whose it is)
// would reach whoever has the same.  Nobody can change its file through it, which is the host's.
Result<UniqueFd> nothing_to_read();

// The parts of /proc that no sandbox may write, or even read: the kernel's own, which belongs to
// the host's root, and a sandbox's user may be that one (by a user namespace's map, or as such in a
// container).  /proc/sys/kernel/core_pattern alone would be a command of root's on the host.
// Source: the OCI runtime-spec's and the Docker Engine's defaults; proc(5).

inline constexpr std::array<const char*, 8> kReadOnlyProc = {
    "/proc/irq", "/proc/sys",    "/proc/sysrq-trigger", "/proc/mtrr",
    "/proc/tty", "/proc/driver", "/proc/pressure",      "/proc/dynamic_debug"};
// The locks are masked too: offsets of a lock are a neighbour's words to whoever can read them.
inline constexpr std::array<const char*, 15> kMaskedProc = {
    "/proc/asound",     "/proc/acpi",          "/proc/interrupts", "/proc/kcore",
    "/proc/keys",       "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
    "/proc/scsi",       "/proc/sched_debug",   "/proc/bus",        "/proc/fs",
    "/proc/tty/driver", "/proc/cmdline",       "/proc/locks"};
// Files there that only the host's root may read: a sandbox's user may be that one.  Where he is
// not, for he is a user of his own, bubblewrap masks nothing that is closed to all others.
// /proc/kmsg is left out: it asks for a capability (CAP_SYSLOG) that no sandbox has, and a mask
// costs each run a tenth of a millisecond.
inline constexpr std::array<const char*, 6> kRootsProc = {"/proc/kpagecgroup", "/proc/kpagecount",
                                                          "/proc/kpageflags",  "/proc/pagetypeinfo",
                                                          "/proc/slabinfo",    "/proc/vmallocinfo"};
// Devices, buses and drivers of the host: nothing of it is a command's business.
inline constexpr const char* kMaskedSys = "/sys";

inline std::vector<std::string> masked_paths() {
  std::vector<std::string> out(kMaskedProc.begin(), kMaskedProc.end());
  out.insert(out.end(), kRootsProc.begin(), kRootsProc.end());
  out.emplace_back(kMaskedSys);
  return out;
}
}  // namespace proctor
