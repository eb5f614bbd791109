#include "worker/sandbox/cgroup_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "common/base/owned.h"
#include "common/base/parse.h"
#include "worker/sandbox/sure_kill.h"

namespace proctor {
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
