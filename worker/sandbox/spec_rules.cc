#include "worker/sandbox/spec_rules.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>

#include "common/base/owned.h"
#include "common/base/text.h"

namespace proctor {
namespace {
// Sandboxes make or mount these themselves; something laid over them would undo the sandbox.
constexpr std::array<std::string_view, 5> kTaken = {"/", "/proc", "/dev", "/etc", "/workspace"};

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

Status check_mount(const SandboxMount& m) {
  const std::string what = "sandbox mount at '" + m.at + "': ";
  if (!m.at.starts_with('/') || (m.at != "/" && !is_safe_relative(m.at.substr(1))))
    return Error{Errc::kInvalid, what + "expected an absolute path without . or .."};
  if (std::ranges::count(kTaken, m.at) != 0 || m.at.starts_with("/proc/") ||
      m.at.starts_with("/dev/"))
    return Error{Errc::kInvalid, what + "this place belongs to the sandbox"};
  std::error_code ec;
  if (!m.host.is_absolute() || !fs::exists(m.host, ec))
    return Error{Errc::kNotFound, what + "host path " + m.host.string() + " is not there"};
  return ok_status();
}
}  // namespace

Status check_mounts(const std::vector<SandboxMount>& mounts) {
  for (const SandboxMount& m : mounts) PROCTOR_CHECK_OK(check_mount(m));
  return ok_status();
}

Status check_environment(const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env)
    if (name.empty() || name.find('=') != std::string::npos || has_nul(name) || has_nul(value))
      return Error{Errc::kInvalid,
                   "sandbox environment: '" + printable(name) + "' cannot be a variable"};
  return ok_status();
}

std::vector<SandboxMount> outer_first(std::vector<SandboxMount> mounts) {
  const auto depth = [](const SandboxMount& m) { return std::ranges::count(m.at, '/'); };
  std::ranges::stable_sort(mounts, {}, depth);
  return mounts;
}

std::vector<std::string> write_words(const SandboxSpec& spec, std::vector<std::string> kinds_own) {
  std::vector<std::string> out;
  if (!spec.workspace_read_only) kinds_own.emplace_back(kWorkspaceAt);
  for (const SandboxMount& m : spec.mounts)
    if (m.writable) kinds_own.push_back(m.at);
  for (std::string& place : kinds_own) {
    out.emplace_back("--write");
    out.push_back(std::move(place));
  }
  return out;
}

Status check_image_spec(const std::string& kind, const SandboxSpec& spec) {
  if (spec.image.empty()) return Error{Errc::kInvalid, kind + " sandbox: no image"};
  PROCTOR_CHECK_OK(check_mounts(spec.mounts));
  return check_environment(spec.env);
}

std::vector<std::string> init_words(const SandboxSpec& spec) {
  std::vector<std::string> own = {"/dev"};
  for (const PrivateFolder& folder : kPrivateFolders) own.emplace_back(folder.at);
  return write_words(spec, std::move(own));
}

std::vector<std::string> shell_arguments(const SandboxSpec& spec, const std::string& command) {
  if (spec.env.contains("HOME")) return {"-c", command};
  // The runtime sets HOME from the image's passwd where nobody does.
  return {"-c", "unset HOME; exec /bin/sh -c \"$1\"", "sh", command};
}

Status open_to_owner(const fs::path& folder) {
  constexpr mode_t kAll = 07777;
  // Without a right to the folder itself: it is named, and not looked into.
  const UniqueFd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid() && (errno == ENOTDIR || errno == ELOOP)) return ok_status();
  struct stat st {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0)
    return errno_error("open " + folder.string(), errno);
  if ((st.st_mode & S_IRWXU) == S_IRWXU) return ok_status();
  const std::string same = "/proc/self/fd/" + std::to_string(fd.get());
  if (::chmod(same.c_str(), (st.st_mode & kAll) | S_IRWXU) != 0 && errno != EPERM)
    return errno_error("open " + folder.string() + " to its owner", errno);
  return ok_status();
}

Status open_writable_places(const SandboxSpec& spec) {
  if (!spec.workspace.empty()) PROCTOR_CHECK_OK(open_to_owner(spec.workspace));
  for (const SandboxMount& mount : spec.mounts)
    if (mount.writable) PROCTOR_CHECK_OK(open_to_owner(mount.host));
  return ok_status();
}
}  // namespace proctor
