#include "worker/sandbox/container_use.h"

#include <cstdint>
#include <string>

#include "common/base/files.h"
#include "common/base/parse.h"
#include "worker/sandbox/cgroup_layout.h"
#include "worker/sandbox/suspension.h"

namespace proctor {
namespace {

constexpr std::size_t kProcFileMax = std::size_t{1} << 20;

std::optional<std::uint64_t> number_in(const fs::path& file, std::string_view key) {
  const auto text = read_file(file, kProcFileMax);
  if (!text.ok()) return std::nullopt;
  const std::size_t at = text->find(key);
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(*text).substr(at + key.size());
  std::uint64_t value = 0;
  return take_number(rest, value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::chrono::milliseconds> container_cpu_time(pid_t init) {
  const auto mounts = read_file("/proc/self/mountinfo", kProcFileMax);
  const auto groups = read_file("/proc/" + std::to_string(init) + "/cgroup", kProcFileMax);
  if (!mounts.ok() || !groups.ok()) return std::nullopt;
  const CgroupLayout layout = parse_cgroup_layout(*mounts, *groups);
  // A dead process is shown in the root's group, which is everybody's.
  if (const auto a = layout.v1.find("cpuacct"); a != layout.v1.end()) {
    if (a->second.own.empty()) return std::nullopt;
    if (const auto ns = number_in(a->second.mount + a->second.own + "/cpuacct.usage", ""))
      return std::chrono::milliseconds(*ns / 1'000'000);
  } else if (!layout.v2.mount.empty()) {
    if (layout.v2.own.empty()) return std::nullopt;
    if (const auto us = number_in(layout.v2.mount + layout.v2.own + "/cpu.stat", "usage_usec "))
      return std::chrono::milliseconds(*us / 1'000);
  }
  return cpu_time_of_tree(init);
}

std::vector<pid_t> container_processes(pid_t init) {
  std::vector<pid_t> out{init};
  for (const TreeMember& member : tree_below(init)) out.push_back(member.pid);
  return out;
}

}  // namespace proctor
