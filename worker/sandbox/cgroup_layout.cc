#include "worker/sandbox/cgroup_layout.h"

#include <algorithm>
#include <array>
#include <vector>

#include "common/base/parse.h"

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

}  // namespace proctor
