#include "worker/sandbox/cgroup_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "common/base/owned.h"
#include "common/base/parse.h"
#include "worker/sandbox/process_tree.h"

namespace proctor {
namespace {
constexpr std::size_t kComponentMax = 100;
constexpr std::array<std::string_view, 5> kControllers = {"memory", "pids", "cpu", "cpuacct",
                                                          "freezer"};

bool known(std::string_view controller) {
  return std::find(kControllers.begin(), kControllers.end(), controller) != kControllers.end();
}

// The kernel shows a group as seen from the root of its mount; a mount of a sub-group (a container
// without a cgroup namespace) has that sub-group as its root field.
std::string below_mount(std::string_view group, std::string_view mount_root) {
  if (mount_root != "/" && group.starts_with(mount_root)) group.remove_prefix(mount_root.size());
  return group == "/" ? std::string() : std::string(group);
}

struct Mount {
  std::string_view root, at, type, options;
};

// "36 35 98:0 /root /at opts shared:1 - type source super-options"
bool parse_mount(std::string_view line, Mount& out) {
  const std::vector<std::string_view> words = split(line, ' ');
  const auto dash = std::find(words.begin(), words.end(), "-");
  if (words.size() < 6 || words.end() - dash < 4) return false;
  out = Mount{words[3], words[4], dash[1], dash[3]};
  return out.at.starts_with('/') && out.root.starts_with('/');
}
}  // namespace

CgroupLayout parse_cgroup_layout(std::string_view mountinfo, std::string_view self_cgroup) {
  std::map<std::string, std::string, std::less<>> own;  // controller ("" is v2) -> group
  for (std::string_view line : split(self_cgroup, '\n')) {
    const std::size_t a = line.find(':');
    const std::size_t b = a == std::string_view::npos ? a : line.find(':', a + 1);
    if (b == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(a + 1, b - a - 1);
    const std::string group(line.substr(b + 1));
    if (!group.starts_with('/')) continue;
    for (std::string_view c : split(controllers, ',')) own.emplace(std::string(c), group);
  }
  CgroupLayout out;
  for (std::string_view line : split(mountinfo, '\n')) {
    Mount m;
    if (!parse_mount(line, m)) continue;
    if (m.type == "cgroup" || m.type == "cgroup2") out.mounts.emplace_back(m.at);
    if (m.type == "cgroup2" && own.contains("")) {
      out.v2 = CgroupPlace{std::string(m.at), below_mount(own.find("")->second, m.root)};
    }
    if (m.type != "cgroup") continue;
    for (std::string_view c : split(m.options, ',')) {
      const auto found = own.find(c);
      if (!known(c) || found == own.end()) continue;
      out.v1[std::string(c)] = CgroupPlace{std::string(m.at), below_mount(found->second, m.root)};
    }
  }
  return out;
}

std::string cgroup_component(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, kComponentMax)) {
    const bool plain = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                       c == '-' || c == '_' || (c == '.' && !out.empty());
    out.push_back(plain ? c : '_');
  }
  return out.empty() ? "_" : out;
}

namespace {
constexpr auto kEmptyWithin = std::chrono::seconds(5);
constexpr std::size_t kControlFileMax = std::size_t{1} << 20;

// The group has gone, or this kernel has no such file, or shows it to others only.
bool not_there(int error) {
  return error == ENOENT || error == ENOTDIR || error == ENODEV || error == EACCES ||
         error == EPERM || error == EOPNOTSUPP;
}

Error unread(const fs::path& file) {
  return {Errc::kUnavailable, errno_error("control group: " + file.string(), errno).detail};
}
}  // namespace

bool write_control(const fs::path& file, std::string_view text) {
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() &&
         ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Result<std::string> read_control(const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return not_there(errno) ? Result<std::string>(std::string()) : unread(file);
  std::string out;
  char buffer[4096];
  while (out.size() < kControlFileMax) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && !not_there(errno)) return unread(file);
    if (n <= 0) break;
    out.append(buffer, static_cast<std::size_t>(n));
  }
  return out;
}

std::string control_text(const fs::path& file) {
  Result<std::string> text = read_control(file);
  return text.ok() ? std::move(text).value() : std::string();
}

Result<std::uint64_t> read_control_number(const fs::path& file) {
  PROCTOR_TRY(const std::string text, read_control(file));
  return control_number(text);
}

std::uint64_t control_number(std::string_view text) {
  std::uint64_t v = 0;
  take_number(text, v);
  return v;
}

std::uint64_t keyed_control_number(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (take_word(line, key) && take_word(line, " ")) return control_number(line);
  }
  return 0;
}

bool make_group_dir(const fs::path& dir) {
  return ::mkdir(dir.c_str(), 0755) == 0 || errno == EEXIST;
}

Result<std::vector<pid_t>> members_of_group(const fs::path& dir) {
  std::vector<pid_t> out;
  PROCTOR_TRY(const std::string text, read_control(dir / "cgroup.procs"));
  for (std::string_view rest = text; !rest.empty();) {
    const auto pid = static_cast<pid_t>(control_number(take_until(rest, '\n')));
    if (0 < pid) out.push_back(pid);
  }
  return out;
}

void kill_group(const fs::path& dir) {
  if (!write_control(dir / "cgroup.kill", "1"))
    kill_listed([&dir] {
      Result<std::vector<pid_t>> in = members_of_group(dir);
      return in.ok() ? std::move(in).value() : std::vector<pid_t>();
    });
}

bool kill_members(const fs::path& dir) {
  const auto until = std::chrono::steady_clock::now() + kEmptyWithin;
  for (;;) {
    if (const auto in = members_of_group(dir); in.ok() && in->empty()) return true;
    if (until < std::chrono::steady_clock::now()) return false;
    kill_group(dir);
    write_control(dir / "freezer.state", "THAWED");  // where it is one: the frozen do not die
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool remove_group(const fs::path& dir) {
  const auto until = std::chrono::steady_clock::now() + kEmptyWithin;
  while (::rmdir(dir.c_str()) != 0) {
    if (errno != EBUSY || until < std::chrono::steady_clock::now()) return errno == ENOENT;
    kill_members(dir);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}
}  // namespace proctor
