#include "worker/sandbox/process_tree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/namespaces.h"
#include "common/base/owned.h"
#include "common/base/parse.h"

namespace proctor {
// Descriptors are the worker's, for all of its runs.
constexpr std::size_t kHeldAtOnce = 64;

void kill_listed(const std::function<std::vector<pid_t>()>& listed) {
  const std::vector<pid_t> all = listed();
  for (std::size_t at = 0; at < all.size();) {
    std::vector<std::pair<pid_t, UniqueFd>> held;
    for (; at < all.size() && held.size() < kHeldAtOnce; ++at) {
      UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, all[at], 0)));
      if (fd.valid()) held.emplace_back(all[at], std::move(fd));
    }
    if (held.empty()) continue;
    const std::vector<pid_t> again = listed();
    for (const auto& [pid, fd] : held)
      if (std::find(again.begin(), again.end(), pid) != again.end())
        ::syscall(SYS_pidfd_send_signal, fd.get(), SIGKILL, nullptr, 0);
  }
}

namespace {
// Then a sandbox makes processes faster than they are found.
constexpr std::chrono::seconds kPatience{1};

void signal_member(const TreeMember& member, int signo) {
  const UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, member.pid, 0)));
  if (!fd.valid()) return;
  // The number may have been given to somebody else since we looked.
  const auto again = tree_member(member.pid);
  if (again && again->parent == member.parent)
    ::syscall(SYS_pidfd_send_signal, fd.get(), signo, nullptr, 0);
}

bool stands(char state) {
  return state == 'T' || state == 't' || state == 'Z' || state == 'X';
}
}  // namespace

std::optional<TreeMember> tree_member(pid_t pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!stat.ok()) return std::nullopt;
  const std::size_t name_end = stat->rfind(')');  // the name may hold anything, also ')'
  if (name_end == std::string::npos || stat->size() < name_end + 5) return std::nullopt;
  TreeMember out{pid, 0, (*stat)[name_end + 2]};
  std::string_view rest = std::string_view(*stat).substr(name_end + 4);  // ") S "
  return take_number(rest, out.parent) ? std::optional(out) : std::nullopt;
}

std::vector<TreeMember> tree_below(pid_t root) {
  std::multimap<pid_t, TreeMember> by_parent;
  std::error_code ec;
  for (fs::directory_iterator it("/proc", ec), end; !ec && it != end; it.increment(ec)) {
    const auto pid = whole_number<pid_t>(it->path().filename().native());
    const auto member = pid ? tree_member(*pid) : std::nullopt;
    if (member) by_parent.emplace(member->parent, *member);
  }
  std::vector<TreeMember> out;
  std::vector<pid_t> todo{root};
  while (!todo.empty()) {
    const pid_t parent = todo.back();
    todo.pop_back();
    const auto [begin, end] = by_parent.equal_range(parent);
    for (auto it = begin; it != end; ++it) {
      out.push_back(it->second);
      todo.push_back(it->second.pid);
    }
    by_parent.erase(begin, end);
  }
  return out;
}

std::chrono::milliseconds cpu_time_of_tree(pid_t root) {
  // utime, stime, cutime and cstime are the fields 14 to 17; the second is the name.
  constexpr int kFirst = 14, kLast = 17;
  const auto ticks_per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  std::uint64_t ticks = 0;
  std::vector<TreeMember> members = tree_below(root);
  members.push_back({root, 0, '?'});
  for (const TreeMember& member : members) {
    const auto stat = read_file("/proc/" + std::to_string(member.pid) + "/stat", 4096);
    if (!stat.ok() || stat->rfind(')') == std::string::npos) continue;
    std::string_view rest = std::string_view(*stat).substr(stat->rfind(')') + 1);
    for (int field = 3; field <= kLast && !rest.empty(); ++field) {
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      std::uint64_t value = 0;
      if (kFirst <= field) take_number(rest, value);
      ticks += value;
      rest.remove_prefix(std::min(rest.find(' '), rest.size()));
    }
  }
  return std::chrono::milliseconds(ticks * 1000 / ticks_per_second);
}

void Suspension::suspend(pid_t root) {
  if (frozen_ || !stopped_.empty()) return;
  frozen_ = group_.freeze([root] {
    std::vector<pid_t> pids;
    for (const TreeMember& m : tree_below(root)) pids.push_back(m.pid);
    return pids;
  });
  if (!frozen_) stop_tree(root);
}

// A stopped process forks no more, but a signal stops nobody at once: the child of a fork that was
// under way when it came shows later.  So two looks in a row have to find all of them standing.
void Suspension::stop_tree(pid_t root) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  for (int still = 0; still < 2;) {
    ++still;
    for (const TreeMember& m : tree_below(root)) {
      // One that waits for the child of its vfork, which stands, stops before it does anything.
      if (stands(m.state) || (m.state == 'D' && stopped_.contains(m.pid))) continue;
      still = 0;
      signal_member(m, SIGSTOP);
      stopped_.insert(m.pid);
    }
    if (still == 0 && give_up < std::chrono::steady_clock::now())
      return log::warn("a sandbox makes processes faster than they can be stopped");
  }
}

void Suspension::resume(pid_t root) {
  if (std::exchange(frozen_, false)) group_.thaw();
  if (stopped_.empty()) return;
  for (const TreeMember& m : tree_below(root))
    if (stopped_.contains(m.pid)) signal_member(m, SIGCONT);
  stopped_.clear();
}

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

// Processes that bear the label and do not end with their parent.
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
