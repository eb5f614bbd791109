#include "worker/sandbox/orphans.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <thread>
#include <vector>

#include "common/base/namespaces.h"
#include "common/base/owned.h"
#include "worker/sandbox/sure_kill.h"
#include "worker/sandbox/suspension.h"

namespace proctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kMost{2};
constexpr std::chrono::milliseconds kPoll{5};
constexpr pid_t kNobody = 0;  // the parent of init, so that all are below it

bool bears(pid_t pid, const std::string& label) {
  const std::string dir = "/proc/" + std::to_string(pid);
  const UniqueFd fd(::open((dir + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC));
  std::string words(label.size() + 1, '?');
  struct stat st {};
  return fd.valid() && ::read(fd.get(), words.data(), words.size()) == ssize_t(words.size()) &&
         words == label + '\0' && ::stat(dir.c_str(), &st) == 0 &&
         (st.st_uid == ::geteuid() || (::geteuid() == 0 && is_own_user(st.st_uid)));
}

// Who bears the label and does not end with his parent.
std::vector<pid_t> orphans_of(const std::string& label) {
  std::map<pid_t, pid_t> parents;
  for (const TreeMember& member : tree_below(kNobody))
    if (bears(member.pid, label)) parents.emplace(member.pid, member.parent);
  std::vector<pid_t> out;
  for (const auto& [pid, parent] : parents)
    if (parent != ::getpid() && !parents.contains(parent)) out.push_back(pid);
  return out;
}

}  // namespace

std::string runtime_label(const std::string& program, const std::string& owner) {
  return program + " for " + owner;
}

void kill_orphans(const std::string& label) {
  for (const auto until = Clock::now() + kMost; Clock::now() < until;) {
    bool any = false;
    kill_listed([&] {
      std::vector<pid_t> all = orphans_of(label);
      any = any || !all.empty();
      return all;
    });
    if (!any) return;
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace proctor
