#pragma once
// The devices that every sandbox has, and terminals of its own.  None of them is the host's file:
// a sandbox's user may be the host's root under another number, who owns those files and could
// close them to everybody.  Source: null(4), random(4), pts(4); devpts of Linux.
#include <array>

#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {

struct Device {
  const char* name;
  unsigned major, minor;
};
inline constexpr std::array<Device, 6> kDevices = {{{"null", 1, 3},
                                                    {"zero", 1, 5},
                                                    {"full", 1, 7},
                                                    {"random", 1, 8},
                                                    {"urandom", 1, 9},
                                                    {"tty", 5, 0}}};

// Of all its sandboxes a host has kernel.pty.max less kernel.pty.reserve, 3,072 where nobody has
// said otherwise: enough for 48 of them.
inline constexpr const char* kTerminalsMost = "max=64";
inline constexpr const char* kTerminalOptions = "newinstance,ptmxmode=0666,mode=0620,max=64";

// Makes them in the folder `dir`, of this user and group.  Async-signal-safe.  False: errno says
// why not.
bool make_devices(const char* dir, unsigned owner = 0);

// /dev/null, opened for one command: what is set on a descriptor (a lock, a signal, whose it is)
// would reach whoever has the same.  Nobody can change its file through it, which is the host's.
Result<UniqueFd> nothing_to_read();

}  // namespace proctor
