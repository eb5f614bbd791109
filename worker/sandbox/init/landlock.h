#pragma once
// Landlock, where the kernel has it: a second line that needs no mount, no namespace and no user.
// Whatever else should fail, the command and all it starts write, make and remove nothing but
// below the places named, send no signal to a process outside (the sandbox's first one is), and
// reach no abstract socket that somebody outside has made: with a network of the host's those are
// its services' own. Ports are left alone: what listens on the loopback inside is a test's.
// Without a library: init includes this, and is linked with C's headers alone.
// Source: landlock(7); include/uapi/linux/landlock.h of Linux 6.12.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace proctor {

inline constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
// Which version has what. The first knows no way to let a file change its folder.
inline constexpr long kLandlockRefer = 2, kLandlockTruncate = 3, kLandlockScopes = 6;

inline constexpr uint64_t kWriteFile = 1 << 1, kTruncate = 1 << 14;
// Removing, and making folders, files, sockets, pipes and links, and taking them elsewhere.
inline constexpr uint64_t kChangeFolder =
    1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13;
inline constexpr uint64_t kMakeDevice = 1 << 6 | 1 << 11;  // granted nowhere
inline constexpr uint64_t kOtherSockets = 1 << 0, kOtherProcesses = 1 << 1;

inline long landlock_version() {
  return ::syscall(kCreateRuleset, nullptr, 0, 1);
}

// Below `folder`, or of that one file; what is not there is not to be written.
inline bool let_write(int rules, const char* place, uint64_t access) {
  const int fd = ::open(place, O_PATH | O_CLOEXEC);
  if (fd < 0) return true;
  struct stat st {};
  if (::fstat(fd, &st) != 0) return false;
  if (!S_ISDIR(st.st_mode)) access &= kWriteFile | kTruncate;
  struct {
    uint64_t access;
    int32_t fd;
  } __attribute__((packed)) const rule = {access, fd};
  constexpr int kBeneath = 1;
  const bool done = ::syscall(kAddRule, rules, kBeneath, &rule, 0) == 0;
  (void)::close(fd);
  return done;
}

// No places: everything may be written that may be without this. False, and errno: the kernel has
// it and does not do it.
inline bool keep_within(char* const* places, int count) {
  const long version = landlock_version();
  if (version < kLandlockRefer) return true;
  struct {
    uint64_t files, ports, scopes;
  } rules = {};
  if (0 < count) rules.files = kWriteFile | kChangeFolder | kMakeDevice;
  if (0 < count && kLandlockTruncate <= version) rules.files |= kTruncate;
  if (kLandlockScopes <= version) rules.scopes = kOtherSockets | kOtherProcesses;
  if (rules.files == 0 && rules.scopes == 0) return true;
  const int fd = static_cast<int>(::syscall(kCreateRuleset, &rules, sizeof rules, 0));
  if (fd < 0) return false;
  for (int i = 0; i < count; ++i)
    if (!let_write(fd, places[i], rules.files & ~kMakeDevice)) return false;
  const bool done =
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::syscall(kRestrictSelf, fd, 0) == 0;
  (void)::close(fd);
  return done;
}

}  // namespace proctor
