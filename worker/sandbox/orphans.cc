#include "worker/sandbox/orphans.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <map>
#include <string_view>
#include <thread>

#include "common/base/files.h"
#include "common/base/unique_fd.h"

namespace proctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kMost{2};
constexpr std::chrono::milliseconds kPoll{5};

// The beginning of a file of /proc; empty: there is none any more.
std::string beginning(const std::string& file, std::size_t bytes) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(bytes, '\0');
  const ssize_t n = fd.valid() ? ::read(fd.get(), text.data(), text.size()) : 0;
  text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return text;
}

// proc(5), stat: "pid (name) state ppid"; a name may hold anything.
pid_t parent_of(const std::string& dir) {
  constexpr std::size_t kStat = 512;
  const std::string stat = beginning(dir + "/stat", kStat);
  const std::size_t name = stat.rfind(')');
  pid_t out = 0;
  if (name == std::string::npos || stat.size() < name + 4) return out;
  std::from_chars(stat.data() + name + 4, stat.data() + stat.size(), out);
  return out;
}

// Who bears the label, by his parent.
std::map<pid_t, pid_t> bearers(const std::string& label) {
  std::map<pid_t, pid_t> out;
  std::error_code ec;
  for (fs::directory_iterator it("/proc", ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string(), dir = it->path().string();
    pid_t pid = 0;
    struct stat st {};
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc()) continue;
    if (::stat(dir.c_str(), &st) != 0 || st.st_uid != ::geteuid()) continue;
    const std::string words = beginning(dir + "/cmdline", label.size() + 1);
    if (words == label + '\0') out.emplace(pid, parent_of(dir));
  }
  return out;
}

}  // namespace

std::string runtime_label(const std::string& program, const std::string& owner) {
  return program + " for " + owner;
}

void kill_orphans(const std::string& label) {
  for (const auto until = Clock::now() + kMost; Clock::now() < until;) {
    bool any = false;
    const std::map<pid_t, pid_t> all = bearers(label);
    for (const auto& [pid, parent] : all) {
      if (parent == ::getpid() || all.contains(parent)) continue;  // ends with its parent
      any = true;
      ::kill(pid, SIGKILL);
    }
    if (!any) return;
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace proctor
