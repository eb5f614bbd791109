#include "worker/sandbox/mount_rules.h"

#include <algorithm>
#include <array>

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
  if (!m.at.starts_with('/') || (m.at != "/" && !is_safe_relative(m.at.substr(1)))) {
    return Error{Errc::kInvalid, what + "expected an absolute path without . or .."};
  }
  for (std::string_view taken : kTaken) {
    if (m.at == taken) return Error{Errc::kInvalid, what + "this place belongs to the sandbox"};
  }
  for (std::string_view below : {"/proc/", "/dev/"}) {
    if (m.at.starts_with(below)) {
      return Error{Errc::kInvalid, what + "this place belongs to the sandbox"};
    }
  }
  std::error_code ec;
  if (!m.host.is_absolute() || !fs::exists(m.host, ec)) {
    return Error{Errc::kNotFound, what + "host path " + m.host.string() + " is not there"};
  }
  return ok_status();
}

}  // namespace

Status check_mounts(const std::vector<SandboxMount>& mounts) {
  for (const SandboxMount& m : mounts) PROCTOR_CHECK_OK(check_mount(m));
  return ok_status();
}

Status check_environment(const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != std::string::npos || has_nul(name) || has_nul(value)) {
      return Error{Errc::kInvalid,
                   "sandbox environment: '" + printable(name) + "' cannot be a variable"};
    }
  }
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

}  // namespace proctor
