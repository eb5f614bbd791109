#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "worker/selftest/attack/attack.h"

namespace attack {
// Attacks through files that sandboxes of one host share: each can be one inode for all of them,
// and who may read it may lock it and watch it, and his neighbour sees the one and causes the
// other.  One sandbox marks all that it can open, another looks for the marks.  tests/hostile runs
// them beside each other.

namespace {
constexpr off_t kByte = 4'711;  // any that others agree on
constexpr int kSignal = 42;     // likewise
constexpr const char* kInput = "/proc/self/fd/0";

// Whatever a kind of sandbox does not have is not there to be opened.
constexpr const char* kPlaces[] = {"/",
                                   "/usr",
                                   "/usr/bin",
                                   "/usr/bin/env",
                                   "/usr/lib",
                                   "/usr/share",
                                   "/bin",
                                   "/bin/sh",
                                   "/lib",
                                   "/lib64",
                                   "/etc",
                                   "/etc/passwd",
                                   "/etc/hosts",
                                   "/etc/hostname",
                                   "/etc/resolv.conf",
                                   "/etc/ld.so.cache",
                                   "/etc/ssl/openssl.cnf",
                                   "/etc/ssl/certs",
                                   "/etc/ssl/certs/ca-certificates.crt",
                                   "/etc/alternatives",
                                   "/init",
                                   "/sbin/docker-init",
                                   "/dev",
                                   "/dev/null",
                                   "/dev/zero",
                                   "/dev/full",
                                   "/dev/random",
                                   "/dev/urandom",
                                   "/dev/pts",
                                   "/dev/shm",
                                   "/dev/mqueue",
                                   "/proc",
                                   "/proc/version",
                                   "/proc/locks",
                                   "/proc/sys/kernel/ostype",
                                   "/sys",
                                   "/sys/kernel",
                                   "/tmp",
                                   "/run",
                                   "/home",
                                   kInput};

// `use(path)` for each of them, and for what the caller names as "at" and "below".
template <class Use>
void for_each_place(const Arguments& a, Use use) {
  for (const char* path : kPlaces) use(path);
  for (const char* key : {"at", "below"})
    if (const char* path = a.text(key); *path != '\0') use(path);
}

int open_to_look(const char* path) {
  return ::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

struct flock one_byte(short type) {
  struct flock out {};
  out.l_type = type;
  out.l_whence = SEEK_SET;
  out.l_start = kByte;
  out.l_len = 1;
  return out;
}

void look_for_lock(const char* path, int fd) {
  for (const auto& [call, name] : {std::pair{F_OFD_GETLK, "F_OFD_GETLK"}, {F_GETLK, "F_GETLK"}}) {
    struct flock asked = one_byte(F_WRLCK);
    if (::fcntl(fd, call, &asked) == 0 && asked.l_type != F_UNLCK)
      escaped("%s tells of another's lock on %s", name, path);
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    escaped("another's flock on %s is felt", path);
}
}  // namespace

// Locks and watches everything, writes the file "held", and says what it saw when there is a file
// "over".
void mark_shared(const Arguments& a) {
  const int watch = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  for_each_place(a, [](const char* path) {
    const int fd = open_to_look(path);  // kept until the end
    if (fd < 0) return;
    struct flock lock = one_byte(F_RDLCK);
    (void)::fcntl(fd, F_OFD_SETLK, &lock);
    (void)::flock(fd, LOCK_SH | LOCK_NB);
  });
  (void)::fcntl(STDIN_FILENO, F_SETSIG, kSignal);
  int watched = 0;
  for_each_place(a, [&](const char* path) {
    watched += 0 <= ::inotify_add_watch(watch, path, IN_OPEN | IN_ACCESS | IN_CLOSE) ? 1 : 0;
  });
  // What it does itself from here on it sees as well: nothing below the places but this.
  const int fd = ::open("/workspace/held.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  ::dprintf(fd, "%d watched\n", watched);
  ::close(fd);
  ::rename("/workspace/held.new", "/workspace/held");
  struct stat st {};
  for (constexpr useconds_t kPause = 5'000; ::stat("/workspace/over", &st) != 0; ::usleep(kPause)) {
  }
  alignas(inotify_event) char events[4096];
  const ssize_t n = ::read(watch, events, sizeof events);
  if (n <= 0) return;
  const auto* const first = reinterpret_cast<const inotify_event*>(&events[0]);
  escaped("what another opens is seen: watch %d, %s", first->wd, 0 < first->len ? first->name : "");
}

// Looks for the locks, and opens all.
void see_shared(const Arguments& a) {
  if (const int signal = ::fcntl(STDIN_FILENO, F_GETSIG); 0 < signal)
    escaped("the standard input is another's: it has his signal %d", signal);
  for_each_place(a, [](const char* path) {
    const int fd = open_to_look(path);
    if (fd < 0) return;
    look_for_lock(path, fd);
    char byte = 0;
    (void)!::read(fd, &byte, 1);
    ::close(fd);
  });
}

// Attacks that reach for what is not theirs: host files, other processes, the sandbox's own init.

namespace {
bool readable(const char* path) {
  char byte = 0;
  const int fd = ::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  const bool got = 0 < ::read(fd, &byte, 1);
  ::close(fd);
  return got;
}

bool writable(const char* path) {
  const int fd = ::open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  ::close(fd);
  return true;
}

bool connects(const char* path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  const bool done = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return done;
}

bool holds(const char* path, const char* text) {
  static char bytes[1 << 17];
  const int fd = ::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = ::read(fd, bytes, sizeof bytes);
  ::close(fd);
  return 0 < n && ::memmem(bytes, static_cast<std::size_t>(n), text, std::strlen(text)) != nullptr;
}

// Links in the workspace to what is outside it.
void try_links(const char* secret) {
  ::unlink("link");
  ::unlink("hard");
  if (::symlink(secret, "link") == 0 && readable("link")) escaped("a link out reads %s", secret);
  for (const char* from : {secret, "/etc/passwd", "/bin/sh"})
    if (::link(from, "hard") == 0) {
      escaped("a hard link to %s", from);
      ::unlink("hard");
    }
  const int root = ::open("/", O_PATH | O_CLOEXEC);
  char up[600];
  std::snprintf(up, sizeof up, "../../../../../../../..%s", secret);
  if (const int fd = ::openat(root, up, O_RDONLY | O_CLOEXEC); 0 <= fd)
    escaped("above the root: %s", secret);
  std::snprintf(up, sizeof up, "/proc/self/root%s", secret);
  if (readable(up)) escaped("%s", up);
  std::snprintf(up, sizeof up, "/proc/1/root%s", secret);
  if (readable(up)) escaped("%s", up);
}
}  // namespace

// What the kernel shows of itself, all of it: a single file that can be written is a way out.
void try_kernel_files(const char* folder, int depth) {
  DIR* all = ::opendir(folder);
  if (all == nullptr) return;
  while (const dirent* entry = ::readdir(all)) {
    const char* name = entry->d_name;
    const bool process = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
    if (name[0] == '.' || std::strcmp(name, "self") == 0 || std::strcmp(name, "thread-self") == 0)
      continue;
    char path[600];
    if (599 < std::snprintf(path, sizeof path, "%s/%s", folder, name)) continue;
    struct stat st {};
    if (::lstat(path, &st) != 0) continue;
    if (S_ISREG(st.st_mode) && writable(path)) escaped("%s can be written", path);
    constexpr int kDeepest = 4;
    if (S_ISDIR(st.st_mode) && depth < kDeepest && !(depth == 0 && process))
      try_kernel_files(path, depth + 1);
  }
  ::closedir(all);
}

// secret=PATH: a file of the host that is nowhere mounted.  engine=PATH: a socket of the host.
void host_files(const Arguments& a) {
  const char* secret = a.text("secret", "/etc/shadow");
  if (readable(secret)) escaped("%s can be read", secret);
  try_links(secret);
  for (const char* path :
       {"/etc/shadow",       "/proc/kcore",       "/proc/keys",         "/dev/mem",
        "/dev/kmem",         "/dev/sda",          "/dev/vda",           "/dev/nvme0n1",
        "/dev/kmsg",         "/root/.ssh/id_rsa", "/root/.bashrc",      "/proc/timer_list",
        "/proc/sched_debug", "/proc/kpagecount",  "/proc/kpageflags",   "/proc/kpagecgroup",
        "/proc/slabinfo",    "/proc/vmallocinfo", "/proc/pagetypeinfo", "/proc/kmsg",
        "/proc/interrupts",  "/proc/acpi/wakeup", "/proc/scsi/scsi"})
    if (readable(path)) escaped("%s can be read", path);
  for (const char* path : {"/proc/sysrq-trigger",
                           "/proc/sys/kernel/core_pattern",
                           "/proc/sys/kernel/modprobe",
                           "/proc/sys/vm/overcommit_memory",
                           "/sys/kernel/uevent_helper",
                           "/sys/kernel/mm/ksm/run",
                           "/sys/fs/cgroup/cgroup.procs",
                           "/sys/fs/cgroup/memory/cgroup.procs",
                           "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                           "/sys/fs/cgroup/pids/cgroup.procs",
                           "/sys/fs/cgroup/memory/release_agent",
                           "/dev/kvm",
                           "/dev/fuse",
                           "/dev/loop-control",
                           "/dev/net/tun",
                           "/dev/kmsg",
                           "/etc/passwd",
                           "/etc/ld.so.preload",
                           "/bin/sh",
                           "/usr/bin/env"})
    if (writable(path)) escaped("%s can be written", path);
  try_kernel_files("/proc", 0);
  try_kernel_files("/sys", 0);
  if (DIR* devices = ::opendir("/sys")) {
    while (const dirent* entry = ::readdir(devices))
      if (entry->d_name[0] != '.') escaped("/sys/%s is there", entry->d_name);
    ::closedir(devices);
  }
  for (const char* folder :
       {"/", "/usr", "/usr/bin", "/etc", "/opt", "/var", "/sys", "/proc", "/bin"}) {
    char name[64];
    std::snprintf(name, sizeof name, "%s/proctor-attack", folder);
    if (const int fd = ::open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644); 0 <= fd)
      escaped("a file in %s", folder);
  }
  for (const char* socket :
       {a.text("engine", "/run/docker.sock"), "/var/run/docker.sock", "/run/docker.sock",
        "/run/containerd/containerd.sock", "/run/dbus/system_bus_socket", "/run/systemd/private"})
    if (connects(socket)) escaped("the socket %s answers", socket);
  ::unlink("device");
  if (::mknod("device", S_IFBLK | 0600, makedev(8, 0)) == 0) {
    if (readable("device")) escaped("a block device was made and read");
    ::unlink("device");
  }
  if (::mknod("device", S_IFCHR | 0600, makedev(1, 1)) == 0) {
    if (readable("device")) escaped("the host's memory was read");
    ::unlink("device");
  }
}

// mark=TEXT: stands in the environment or the command line of a process of the host.
void other_processes(const Arguments& a) {
  const char* mark = a.text("mark", "PROCTOR_HOST_SECRET");
  DIR* all = ::opendir("/proc");
  if (all == nullptr) return;
  long seen = 0;
  while (const dirent* entry = ::readdir(all)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    ++seen;
    char path[300];
    for (const char* file : {"environ", "cmdline"}) {
      const long pid = std::strtol(entry->d_name, nullptr, 10);
      // Our own line, and that of the shell around us, name the mark.
      if (std::strcmp(file, "cmdline") == 0 && (pid == ::getpid() || pid <= 3)) continue;
      std::snprintf(path, sizeof path, "/proc/%s/%s", entry->d_name, file);
      if (holds(path, mark)) escaped("%s of a process of the host", path);
    }
  }
  ::closedir(all);
  constexpr long kOwn = 10;
  if (kOwn < seen) escaped("%ld processes are to be seen", seen);
}

// The first process of the sandbox reports how the command ended: who rules it forges verdicts.
void sandbox_init(const Arguments&) {
  if (::ptrace(PTRACE_SEIZE, 1, nullptr, nullptr) == 0) {
    escaped("the sandbox's first process can be traced");
    ::ptrace(PTRACE_DETACH, 1, nullptr, nullptr);
  }
  // Where the kernel has Landlock's scopes (its sixth version), signals end at the command.
  constexpr int kScopes = 6;
  if (kScopes <= ::syscall(444 /* landlock_create_ruleset */, nullptr, 0, 1) && ::kill(1, 0) == 0)
    escaped("the sandbox's first process can be signalled");
  const int memory = ::open("/proc/1/mem", O_RDWR | O_CLOEXEC);
  if (0 <= memory) escaped("the memory of the sandbox's first process can be written");
  if (DIR* fds = ::opendir("/proc/1/fd")) {
    while (const dirent* entry = ::readdir(fds)) {
      char path[300];
      std::snprintf(path, sizeof path, "/proc/1/fd/%s", entry->d_name);
      if (entry->d_name[0] != '.' && writable(path))
        escaped("descriptor %s of the first process", entry->d_name);
    }
    ::closedir(fds);
  }
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, 1, 0));
  for (int fd = 0; 0 <= pidfd && fd < 16; ++fd)
    if (const long stolen = ::syscall(SYS_pidfd_getfd, pidfd, fd, 0); 0 <= stolen)
      escaped("descriptor %d of the first process was taken", fd);
  char byte = 0;
  iovec here{&byte, 1};
  iovec there{reinterpret_cast<void*>(0x400000), 1};
  if (::process_vm_readv(1, &here, 1, &there, 1, 0) == 1) escaped("memory of the first process");
  // Descriptors it could have left open to us.
  for (int fd = 3; fd < 64; ++fd)
    if (::fcntl(fd, F_GETFD) != -1 && fd != memory && fd != pidfd) {
      char path[40], target[200] = {};
      std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
      if (0 < ::readlink(path, target, sizeof target - 1)) escaped("descriptor %d: %s", fd, target);
    }
}

// Names and bytes meant for whoever prints them: terminals, reports, patches.
void odd_names(const Arguments&) {
  const char* names[] = {"\x1b]0;owned\x07", "\x1b[2J\x1b[H", "a\nb", "\xff\xfe", "-rf",
                         "caf\xc3\xa9",      "cafe\xcc\x81",  "CASE", "case",     " "};
  for (const char* name : names)
    if (const int fd = ::open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644); 0 <= fd) {
      if (::write(fd, "x\n", 2) != 2) note("short");
      ::close(fd);
    }
  note("\x1b]0;owned\x07\x1b[31mred\x1b[2J");
}
}  // namespace attack
