#pragma once
// Attempts at what a sandbox refuses, as its first process sees them: the kernel asks it about the
// calls that the filter of the watched programs names (CallWatch), it answers each, and tells
// some by lines on the status descriptor.  Without a library: init includes this, and is linked
// with C's headers alone.
// Source: seccomp_unotify(2), seccomp(2), process_vm_readv(2).
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

namespace proctor {
// The lines that init writes, numbers in decimal:
//   attempt NUMBER THREAD BYTES   a system call by its number, and what it was to reach, in
//                                 hexadecimal: an address as the call has it, an absolute path, a
//                                 program's path and words with a NUL behind each.  "-": the
//                                 number says all; "?": the thread's memory could not be read.
//   untold NUMBER                 how many have no line, or one that does not say all: when the
//                                 number has doubled, and at the end.
// Each call has so many lines.  Every program has one, for harmless ones must not hide another;
// beyond so many each makes its sandbox wait, by its size, so that a flood costs the worker little.
inline constexpr uint64_t kAttemptLines = 200, kQuickPrograms = 2000;
inline constexpr uint64_t kProgramNapNs = 200'000, kProgramNapNsOfByte = 100;
inline constexpr uint64_t kPathBytes = 4096, kAttemptBytes = 8 * kPathBytes;
inline constexpr uint64_t kStatusLineMost = 2 * kAttemptBytes + 64;

// One line, written at once.
struct StatusLine {
  char text[kStatusLineMost];
  uint64_t size = 0;

  void put(char c) {
    if (size < sizeof text) text[size++] = c;
  }
  void put(const char* words) {
    while (*words != '\0') put(*words++);
  }
  void put(uint64_t value) {
    char digits[20];
    int d = 0;
    do digits[d++] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    while (0 < d) put(digits[--d]);
  }
  void put_bytes(const char* bytes, uint64_t count) {
    constexpr const char* kDigits = "0123456789abcdef";
    for (uint64_t i = 0; i < count; ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      put(kDigits[byte >> 4]);
      put(kDigits[byte & 15]);
    }
  }
  template <class... Part>
  void say(Part... parts) {
    (put(parts), ...);
  }
  void write_to(int fd) { (void)!::write(fd, text, size); }
};

// The kernel's seccomp_notif and seccomp_notif_resp, which C's headers alone lack.
struct CallQuestion {
  uint64_t id;
  uint32_t thread, flags;
  int32_t number;
  uint32_t machine;
  uint64_t instruction, args[6];
};
struct CallAnswer {
  uint64_t id;
  int64_t value;
  int32_t error;
  uint32_t flags;
};
// By the system call: musl's ioctl takes an int.
inline bool talk(int listener, unsigned long word, const void* about) {
  return ::syscall(SYS_ioctl, listener, word, about) == 0;
}
inline constexpr unsigned long kAskedWhat = _IOWR('!', 0, CallQuestion),
                               kAnswerIt = _IOWR('!', 1, CallAnswer),
                               kStillAsked = _IOW('!', 2, uint64_t),
                               kListenerFlags = _IOW('!', 4, uint64_t);

// A call that is looked at, and which argument.  A call of two paths has two rows.  One with a row
// goes on: the kernel answers it as it would unasked.  One without a row is refused.
struct CallLook {
  // kMake: a path that has nothing yet, for `mkdir -p` makes each folder on the way again.
  // kDevice: a mode that is a device's, at any path.
  enum What { kAddress, kMessages, kPath, kHow, kMake, kDevice, kProgram, kAlways } what;
  long number;
  int argument;
  int folder = -1;  // the argument that a relative path begins at; none: the working folder
};
inline constexpr long kChmodByFlags = 452;  // fchmodat2, which headers before Linux 6.6 lack
inline constexpr CallLook kCallLooks[] = {
    {CallLook::kAddress, SYS_connect, 1},   {CallLook::kAddress, SYS_bind, 1},
    {CallLook::kAddress, SYS_sendto, 4},    {CallLook::kMessages, SYS_sendmsg, 1},
    {CallLook::kMessages, SYS_sendmmsg, 1}, {CallLook::kPath, SYS_openat, 1, 0},
    {CallLook::kHow, SYS_openat2, 1, 0},    {CallLook::kPath, SYS_unlinkat, 1, 0},
    {CallLook::kMake, SYS_mkdirat, 1, 0},   {CallLook::kPath, SYS_fchmodat, 1, 0},
    {CallLook::kPath, kChmodByFlags, 1, 0}, {CallLook::kPath, SYS_fchownat, 1, 0},
    {CallLook::kPath, SYS_utimensat, 1, 0}, {CallLook::kPath, SYS_truncate, 0},
    {CallLook::kPath, SYS_setxattr, 0},     {CallLook::kPath, SYS_lsetxattr, 0},
    {CallLook::kPath, SYS_removexattr, 0},  {CallLook::kPath, SYS_lremovexattr, 0},
    {CallLook::kPath, SYS_linkat, 3, 2},    {CallLook::kPath, SYS_symlinkat, 2, 1},
    {CallLook::kPath, SYS_renameat2, 1, 0}, {CallLook::kPath, SYS_renameat2, 3, 2},
#ifdef SYS_renameat
    {CallLook::kPath, SYS_renameat, 1, 0},  {CallLook::kPath, SYS_renameat, 3, 2},
#endif
#ifdef SYS_open
    {CallLook::kPath, SYS_open, 0},         {CallLook::kPath, SYS_creat, 0},
    {CallLook::kPath, SYS_unlink, 0},       {CallLook::kPath, SYS_chmod, 0},
    {CallLook::kPath, SYS_chown, 0},        {CallLook::kPath, SYS_lchown, 0},
    {CallLook::kPath, SYS_link, 1},         {CallLook::kPath, SYS_symlink, 1},
    {CallLook::kPath, SYS_rename, 0},       {CallLook::kPath, SYS_rename, 1},
    {CallLook::kMake, SYS_mkdir, 0},        {CallLook::kPath, SYS_rmdir, 0},
    {CallLook::kPath, SYS_utime, 0},        {CallLook::kPath, SYS_utimes, 0},
    {CallLook::kPath, SYS_futimesat, 1, 0}, {CallLook::kPath, SYS_mknod, 0},
    {CallLook::kDevice, SYS_mknod, 1},
#endif
    {CallLook::kProgram, SYS_execve, 1},    {CallLook::kProgram, SYS_execveat, 2},
    {CallLook::kPath, SYS_mknodat, 1, 0},   {CallLook::kDevice, SYS_mknodat, 2},
    {CallLook::kAlways, SYS_ptrace, 0}};

inline bool is_below(const char* path, const char* place) {
  const size_t size = ::strlen(place);
  return ::strncmp(path, place, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

// Is it a place of the host, or of the system that it stands for, which no command has business
// with?  `places`: where the command may write; none: its whole root is its own.
inline bool is_hosts(const char* path, char* const* places, int count) {
  constexpr const char* kKernels[] = {"/sys", "/proc/sys", "/proc/sysrq-trigger", "/proc/1"};
  constexpr const char* kSystems[] = {"/etc",   "/boot",  "/root",   "/bin",     "/sbin",    "/lib",
                                      "/lib32", "/lib64", "/libx32", "/usr/bin", "/usr/sbin"};
  constexpr const char* kDevices[] = {"null", "zero",  "full",   "random", "urandom",
                                      "tty",  "ptmx",  "pts",    "shm",    "mqueue",
                                      "fd",   "stdin", "stdout", "stderr"};
  for (const char* place : kKernels)
    if (is_below(path, place)) return true;
  if (is_below(path, "/dev")) {
    for (const char* device : kDevices)
      if (path[4] == '/' && is_below(path + 5, device)) return false;
    return true;
  }
  bool found = false;
  for (const char* place : kSystems) found = found || is_below(path, place);
  if (!found || count == 0) return false;
  constexpr char kCache[] = "/__pycache__";
  for (const char* at = path; (at = ::strstr(at, kCache)) != nullptr; ++at)
    if (const char end = at[sizeof kCache - 1]; end == '/' || end == '\0') return false;
  for (int i = 0; i < count; ++i)
    if (is_below(path, places[i])) return false;
  return true;
}

// True for this host's own addresses, and for the unspecified one, which the kernel takes for them.
inline bool is_loopback(const char* address, uint64_t size) {
  constexpr uint64_t kIn4 = 4, kIn6 = 8, kIn6Size = 16;  // where a sockaddr has it
  const auto own4 = [](const char* a) { return a[0] == 127 || ::memcmp(a, "\0\0\0", 4) == 0; };
  uint16_t family = 0;
  if (size < sizeof family) return true;
  ::memcpy(&family, address, sizeof family);
  if (family == AF_INET) return size < kIn4 + 4 || own4(address + kIn4);
  if (family != AF_INET6 || size < kIn6 + kIn6Size) return true;
  const char* const a = address + kIn6;
  constexpr char kZeros[kIn6Size] = {};
  if (::memcmp(a, kZeros, 10) != 0) return false;
  if (a[10] == '\xff' && a[11] == '\xff') return own4(a + 12);
  return ::memcmp(a + 10, kZeros, 5) == 0 && (a[15] == 0 || a[15] == 1);
}

class AttemptWatch {
 public:
  AttemptWatch(int status, char* const* places, int count)
      : status_(status), places_(places), count_(count) {}

  // Answers one question of the listener, if there is one.
  void serve(int listener) {
    CallQuestion asked = {};
    if (!talk(listener, kAskedWhat, &asked)) return;
    CallAnswer answer = {asked.id, 0, -EPERM, 0};
    bool tells = true, program = false;
    size_ = 0;
    whole_ = true;
    for (const CallLook& look : kCallLooks) {
      if (look.number != asked.number) continue;
      constexpr uint32_t kContinue = 1;
      answer.error = 0;
      answer.flags = kContinue;
      program = look.what == CallLook::kProgram;
      tells = sees(look, asked);
      if (tells) break;
    }
    // Another thread may have had that number by the time it was read.
    tells = tells && talk(listener, kStillAsked, &asked.id);
    (void)talk(listener, kAnswerIt, &answer);
    // Many attempts of one call hide none of another, nor those that nobody could read.
    const int kind = !whole_ ? 0 : size_ == 0 ? 1 : 2;
    uint64_t& lines = lines_[kind][static_cast<uint32_t>(asked.number) % kCallNumbers];
    const bool told = tells && (program || lines < kAttemptLines);
    if (told) tell(asked);
    if (told && kQuickPrograms < ++lines) {
      const timespec nap = {0, static_cast<long>(kProgramNapNs + kProgramNapNsOfByte * size_)};
      (void)::nanosleep(&nap, nullptr);
    }
    // An attempt counts too that could not be read, or not all of it.
    if (whole_ && told == tells) return;
    ++untold_;
    if ((untold_ & (untold_ - 1)) == 0) tell_untold();
  }

  void tell_untold() {
    if (untold_ == 0) return;
    StatusLine line;
    line.say("untold ", untold_, '\n');
    line.write_to(status_);
  }

 private:
  void tell(const CallQuestion& asked) {
    StatusLine line;
    line.say("attempt ", static_cast<uint64_t>(asked.number), ' ', uint64_t{asked.thread}, ' ');
    if (size_ == 0) line.put(whole_ ? '-' : '?');
    line.put_bytes(text_, size_);
    line.put('\n');
    line.write_to(status_);
  }

  // Is it told?  Then its text is in `text_`.
  bool sees(const CallLook& look, const CallQuestion& asked) {
    const uint64_t at = asked.args[look.argument];
    if (look.what == CallLook::kProgram) read_program(asked, look.argument);
    if (look.what == CallLook::kDevice) return S_ISCHR(at) || S_ISBLK(at);
    if (CallLook::kProgram <= look.what) return true;
    if (look.what == CallLook::kMessages) return sees_messages(asked, at);
    if (look.what == CallLook::kAddress)
      return sees_address(asked.thread, at, asked.args[look.argument + 1]);
    uint64_t how[3] = {O_WRONLY, 0, 0};  // flags, mode, and how a path is taken
    if (look.what == CallLook::kHow && !read(asked.thread, asked.args[2], how, sizeof how))
      return false;
    constexpr uint64_t kInRoot = 0x10;
    return (how[0] & (O_WRONLY | O_RDWR | O_TRUNC)) != 0 &&
           sees_path(asked, look, at, (how[2] & kInRoot) != 0) &&
           (look.what != CallLook::kMake || ::access(text_, F_OK) != 0);
  }

  bool sees_address(uint32_t thread, uint64_t at, uint64_t size) {
    if (sizeof(sockaddr_storage) < size) size = sizeof(sockaddr_storage);
    if (!read(thread, at, text_, size)) return !whole_;
    size_ = size;
    return !is_loopback(text_, size);
  }

  // Each message, of as many as the kernel takes, begins with an address and its size.
  bool sees_messages(const CallQuestion& asked, uint64_t at) {
    constexpr uint64_t kMost = 1024, kEach = 64;
    const uint64_t asks = asked.number == SYS_sendmsg ? 1 : static_cast<uint32_t>(asked.args[2]);
    for (uint64_t i = 0; i < asks && i < kMost; ++i) {
      uint64_t name[2];
      if (!read(asked.thread, at + i * kEach, name, sizeof name)) return !whole_;
      if (name[0] != 0 && sees_address(asked.thread, name[0], static_cast<uint32_t>(name[1])))
        return true;
    }
    return false;
  }

  // `in_root`: an absolute path begins at the folder, too.
  bool sees_path(const CallQuestion& asked, const CallLook& look, uint64_t at, bool in_root) {
    char path[kPathBytes];
    if (read_text(asked.thread, at, path, sizeof path) == 0) return false;
    uint64_t size = 0;
    if (path[0] != '/' || in_root) {
      StatusLine link;
      const auto folder = look.folder < 0 ? AT_FDCWD : static_cast<int>(asked.args[look.folder]);
      link.say("/proc/", uint64_t{asked.thread}, folder == AT_FDCWD ? "/cwd" : "/fd/");
      if (0 <= folder) link.put(static_cast<uint64_t>(folder));
      link.put('\0');
      const ssize_t n = ::readlink(link.text, text_, sizeof text_ - 2);
      if (n <= 0 || text_[0] != '/') {
        whole_ = whole_ && (0 <= n || errno != ENAMETOOLONG);  // deeper than a path is long
        return false;
      }
      size = static_cast<uint64_t>(n);
    }
    size_ = append_path(size, path, in_root);
    text_[size_] = '\0';
    if (is_hosts(text_, places_, count_)) return true;
    size_ = 0;
    return false;
  }

  // Adds the components of `path`, without "." and ".."; how long all is now, less one at least
  // than there is room for.  `in_root`: no ".." leads out of where it begins.
  uint64_t append_path(uint64_t size, const char* path, bool in_root) {
    if (size == 1) size = 0;  // the root
    const uint64_t least = in_root ? size : 0;
    while (*path != '\0') {
      const uint64_t length = ::strcspn(path, "/");
      if (length == 2 && path[0] == '.' && path[1] == '.') {
        while (least < size && text_[--size] != '/') {
        }
      } else if (0 < length && !(length == 1 && path[0] == '.') &&
                 size + length + 2 < sizeof text_) {
        text_[size++] = '/';
        ::memcpy(text_ + size, path, length);
        size += length;
      }
      path += length;
      while (*path == '/') ++path;
    }
    return size;
  }

  // The path, then the words that it is given, as far as there is room.
  void read_program(const CallQuestion& asked, int words) {
    size_ = read_text(asked.thread, asked.args[words - 1], text_, kPathBytes);
    if (!whole_) return;
    if (size_ == 0) text_[size_++] = '\0';
    for (uint64_t i = 0; i < kAttemptBytes; ++i) {  // words that cannot be read take no room
      uint64_t word = 0;                            // the end of what can be read is the end of all
      const uint64_t at = asked.args[words] + i * sizeof word;
      if (!read(asked.thread, at, &word, sizeof word) || word == 0) return;
      size_ += read_text(asked.thread, word, text_ + size_, sizeof text_ - size_);
      if (size_ == sizeof text_) break;
    }
    whole_ = false;
  }

  // Its bytes with the NUL behind them, or as many as there is room for, of which the last one then
  // becomes the NUL.  0: it cannot be read.
  uint64_t read_text(uint32_t thread, uint64_t at, char* to, uint64_t most) {
    constexpr uint64_t kPage = 4096;
    for (uint64_t done = 0; done < most;) {
      uint64_t part = kPage - (at + done) % kPage;
      if (most - done < part) part = most - done;
      if (!read(thread, at + done, to + done, part)) return 0;
      if (const void* end = ::memchr(to + done, '\0', part); end != nullptr)
        return static_cast<uint64_t>(static_cast<const char*>(end) - to) + 1;
      done += part;
    }
    to[most - 1] = '\0';
    return most;
  }

  bool read(uint32_t thread, uint64_t at, void* to, uint64_t size) {
    const iovec here = {to, size};
    const iovec there = {reinterpret_cast<void*>(at), size};  // NOLINT: of another process
    const ssize_t n = ::process_vm_readv(static_cast<pid_t>(thread), &here, 1, &there, 1, 0);
    if (n < 0 && errno == EPERM) whole_ = false;
    return n == static_cast<ssize_t>(size);
  }

  const int status_;
  char* const* const places_;
  const int count_;
  static constexpr uint32_t kCallNumbers = 512;
  uint64_t lines_[3][kCallNumbers] = {};
  uint64_t untold_ = 0;
  char text_[kAttemptBytes];
  uint64_t size_ = 0;
  bool whole_ = true;  // what the call names could be read, all of it
};
}  // namespace proctor
