#include "tests/support/leftovers.h"

#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "common/base/digest.h"
#include "tests/support/programs.h"

namespace proctor::testing {
namespace {

// Files of /proc have no size: read them as streams.  Gone or not ours to read: empty.
std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  try {
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  } catch (const std::ios_base::failure&) {
    return {};  // ESRCH: a process of /proc that ended between open and read
  }
}

std::string namespace_of(const std::string& process) {
  std::error_code ec;
  return fs::read_symlink("/proc/" + process + "/ns/mnt", ec).string();
}

std::vector<std::string> process_names() {
  std::vector<std::string> out;
  std::error_code ec;
  for (fs::directory_iterator it("/proc", ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (std::ranges::all_of(name, [](char c) { return '0' <= c && c <= '9'; })) out.push_back(name);
  }
  return out;
}

std::vector<std::string> mounts_of(const fs::path& folder) {
  std::vector<std::string> out;
  std::istringstream lines(slurp("/proc/self/mounts"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string device, at;
    words >> device >> at;
    if (at.starts_with(folder.string())) out.push_back(at);
  }
  return out;
}

std::function<std::string(const std::string&)>& elsewhere() {
  static std::function<std::string(const std::string&)> look;
  return look;
}

bool names(pid_t pid, const fs::path& folder) {
  return contains(slurp("/proc/" + std::to_string(pid) + "/cmdline"), folder.string());
}

// 0: it has ended.
pid_t parent_of(pid_t pid) {
  const std::string stat = slurp("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat.rfind(") ");  // a name may hold brackets
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(stat.substr(name_end + 2));
  std::string state;
  pid_t parent = 0;
  rest >> state >> parent;
  return parent;
}

struct MountLine {
  std::string root, at;
};
MountLine read_mount(const std::string& line) {
  std::istringstream words(line);
  std::string id, parent, device;
  MountLine out;
  words >> id >> parent >> device >> out.root >> out.at;
  return out;
}

// Where the folder lies in its file system, as the mounts of what is below it say.
std::string in_file_system(const fs::path& folder) {
  MountLine nearest{"/", "/"};
  std::istringstream lines(slurp("/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    const MountLine m = read_mount(line);
    if (nearest.at.size() <= m.at.size() && (folder.string() + "/").starts_with(m.at + "/"))
      nearest = m;
  }
  const std::string below =
      nearest.at == "/" ? folder.string() : folder.string().substr(nearest.at.size());
  return nearest.root == "/" ? below : nearest.root + below;
}

// Is something of the folder shown at a place of its own?  What is shown under the folder's own
// name says nothing: it is there in every mount namespace that was made, or had mounts propagated
// to it, meanwhile.
bool shows_elsewhere(const std::string& mountinfo, const fs::path& folder) {
  const std::string inside = in_file_system(folder);
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const MountLine m = read_mount(line);
    if (contains(m.at, folder.string())) continue;
    if (contains(line, folder.string())) return true;
    // Of a folder that is a file system's top, every mount's root would be a part.
    if (!inside.empty() && (m.root + "/").starts_with(inside + "/")) return true;
  }
  return false;
}

// Did this process start it, or one that names the folder?
bool descends_from_ours(pid_t pid, const fs::path& folder) {
  constexpr int kDeepest = 64;  // pids are given again while we climb
  for (int depth = 0; depth < kDeepest; ++depth) {
    pid = parent_of(pid);
    if (pid <= 1) return false;
    if (pid == ::getpid() || names(pid, folder)) return true;
  }
  return false;
}

std::string parent_of(const std::string& process) {
  const std::string stat = slurp("/proc/" + process + "/stat");
  const std::size_t name_end = stat.rfind(") ");  // then its state, and its parent
  if (name_end == std::string::npos || stat.size() < name_end + 4) return "";
  return stat.substr(name_end + 4, stat.find(' ', name_end + 4) - (name_end + 4));
}

bool is_zombie(const std::string& process) {
  const std::string stat = slurp("/proc/" + process + "/stat");
  const std::size_t name_end = stat.rfind(") ");
  return stat.empty() || (name_end != std::string::npos && stat.substr(name_end + 2, 1) == "Z");
}

}  // namespace

std::vector<pid_t> sandboxed_of(const fs::path& folder) {
  const std::string ours = namespace_of("self");
  std::vector<pid_t> out;
  for (const std::string& process : process_names()) {
    const std::string theirs = namespace_of(process);
    if (theirs.empty() || theirs == ours || is_zombie(process)) continue;
    const std::string mounts = slurp("/proc/" + process + "/mountinfo");
    // A sandbox that somebody else makes beside us has our mounts too.
    if (shows_elsewhere(mounts, folder) ||
        (contains(mounts, folder.string()) && descends_from_ours(std::stoi(process), folder)))
      out.push_back(std::stoi(process));
  }
  return out;
}

std::vector<pid_t> processes_of(const fs::path& folder) {
  std::vector<pid_t> out = sandboxed_of(folder);
  const pid_t self = ::getpid();
  for (const std::string& process : process_names()) {
    const pid_t pid = std::stoi(process);
    if (pid == self || is_zombie(process)) continue;
    if (names(pid, folder)) out.push_back(pid);
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<pid_t> workers_of(const fs::path& folder) {
  std::vector<pid_t> out;
  for (const std::string& process : process_names()) {
    const std::string words = slurp("/proc/" + process + "/cmdline");
    if (contains(words, folder.string()) && contains(words, "proctor-worker") &&
        contains(words, "--connect") && !is_zombie(process))
      out.push_back(std::stoi(process));
  }
  return out;
}

std::size_t programs_with(const std::vector<std::string>& words) {
  const std::string end(1, '\0');
  std::set<std::string> all;
  for (const std::string& process : process_names()) {
    const std::string environment = end + slurp("/proc/" + process + "/environ");
    const bool has = std::ranges::all_of(words, [&](const std::string& word) {
      return contains(environment, end + word + (word.ends_with('=') ? "" : end));
    });
    if (has) all.insert(process);
  }
  return static_cast<std::size_t>(std::ranges::count_if(
      all, [&](const std::string& process) { return !all.contains(parent_of(process)); }));
}

void look_also(std::function<std::string(const std::string& mark)> look) {
  elsewhere() = std::move(look);
}

std::string leftovers_of(const fs::path& folder, const fs::path& worker_root) {
  std::string out;
  for (const pid_t pid : processes_of(folder)) {
    std::string command = slurp("/proc/" + std::to_string(pid) + "/cmdline");
    std::ranges::replace(command, '\0', ' ');
    out += "process " + std::to_string(pid) + ": " + command + "\n";
  }
  for (const std::string& at : mounts_of(folder)) out += "mount " + at + "\n";
  std::istringstream sockets(slurp("/proc/net/unix"));
  for (std::string line; std::getline(sockets, line);)
    if (contains(line, folder.string())) out += "socket " + line + "\n";
  // proctor/NAME-HASH, where the hash is that of the worker's root
  const std::string mark = "-" + sha256(worker_root.string()).short_hex();
  std::error_code ec;
  for (const char* base : {"/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids",
                           "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct"})
    for (fs::directory_iterator it(fs::path(base) / "proctor", ec), end; !ec && it != end;
         it.increment(ec))
      if (it->path().filename().string().ends_with(mark))
        out += "control group " + it->path().string() + "\n";
  if (elsewhere()) out += elsewhere()(mark);
  return out;
}

void clear_away(const fs::path& folder) {
  const auto kill_all = [&] {
    const std::vector<pid_t> left = processes_of(folder);
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    return left.empty();
  };
  (void)eventually(kill_all);
  std::vector<std::string> mounts = mounts_of(folder);
  std::ranges::reverse(mounts);
  for (const std::string& at : mounts) ::umount2(at.c_str(), MNT_DETACH);
}

}  // namespace proctor::testing
