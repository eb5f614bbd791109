#include "coordinator/journal/host_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "common/base/file_lock.h"
#include "common/base/owned.h"

namespace proctor {
namespace {
constexpr std::size_t kListBytes = std::size_t{64} << 20;

bool is_word(std::string_view campaign) {
  return !campaign.empty() && campaign.find_first_of("\n\r") == std::string_view::npos;
}

// Lists of campaigns have a line for each.
bool is_listed(const fs::path& list, std::string_view campaign) {
  const Result<std::string> listed = read_file(list, kListBytes);
  return listed.ok() && is_word(campaign) &&
         ("\n" + *listed).find(fmt::format("\n{}\n", campaign)) != std::string::npos;
}

Status add_to_list(const fs::path& list, std::string_view campaign) {
  if (!is_word(campaign)) return Error{Errc::kInvalid, "a campaign's id is one line"};
  if (is_listed(list, campaign)) return ok_status();
  PROCTOR_CHECK_OK(make_private_dirs(list.parent_path()));
  PROCTOR_TRY(const UniqueFd fd, open_own_file(list, O_WRONLY | O_CREAT | O_APPEND));
  const std::string line = fmt::format("{}\n", campaign);  // one write: lines never mix
  if (::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return errno_error(list.string(), errno);
  return ::fsync(fd.get()) == 0 ? ok_status() : Status(errno_error(list.string(), errno));
}

Result<std::string> new_secret() {
  std::array<char, Digest::kBytes> bytes{};
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::getrandom(bytes.data() + at, bytes.size() - at, 0);
    if (n < 0 && errno != EINTR) return errno_error("getrandom", errno);
    if (0 < n) at += static_cast<std::size_t>(n);
  }
  return to_hex({bytes.data(), bytes.size()});
}

// Whole or not at all, and never over one that another coordinator has just made.
Status make_key(const fs::path& file) {
  std::error_code ec;
  const fs::path folder = file.parent_path();
  const bool ours = !fs::exists(folder, ec);
  PROCTOR_CHECK_OK(make_private_dirs(folder));
  if (ours && ::chmod(folder.c_str(), 0700) != 0) return errno_error(folder.string(), errno);
  PROCTOR_TRY(const std::string secret, new_secret());
  const fs::path fresh = file.string() + fmt::format(".{}", ::getpid());
  PROCTOR_CHECK_OK(write_file(fresh, secret + "\n", Durability::kSync, 0600));
  const int made = ::link(fresh.c_str(), file.c_str()) == 0 ? 0 : errno;
  ::unlink(fresh.c_str());
  if (made != 0 && made != EEXIST) return errno_error(file.string(), made);
  return sync_path(folder);
}
}  // namespace

Result<fs::path> host_key_file() {
  constexpr const char* kName = "proctor/seal.key";
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return fs::path(state) / kName;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return fs::path(home) / ".local/state" / kName;
  return Error{Errc::kNotFound, "neither XDG_STATE_HOME nor HOME names a folder"};
}

Result<HostKey> HostKey::read(const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat st {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0) return errno_error(file.string(), errno);
  const auto refuse = [&](std::string_view why) {
    return Error{Errc::kInvalid, fmt::format("{}: {}", file.string(), why)};
  };
  if (!S_ISREG(st.st_mode)) return refuse("not a regular file");
  if (st.st_uid != ::geteuid() && ::geteuid() != 0) return refuse("of another user");
  if ((st.st_mode & 077U) != 0) return refuse("other users may read it: chmod 600");
  std::array<char, 128> text{};
  const ssize_t n = ::read(fd.get(), text.data(), text.size());
  if (n < 0) return errno_error(file.string(), errno);
  std::string_view secret(text.data(), static_cast<std::size_t>(n));
  if (secret.ends_with('\n')) secret.remove_suffix(1);
  if (const Result<Digest> hex = Digest::from_hex(secret); !hex.ok())
    return refuse("not a seal key: " + hex.error().detail);
  return HostKey(file, secret);
}

Result<HostKey> HostKey::read_or_make(const fs::path& file) {
  Result<HostKey> key = read(file);
  if (key.ok() || key.error().code != Errc::kNotFound) return key;
  PROCTOR_CHECK_OK(make_key(file));
  return read(file);
}

Result<HostKey> host_key_of(const std::string& file) {
  if (!file.empty()) return HostKey::read(file);
  PROCTOR_TRY(const fs::path own, host_key_file());
  return HostKey::read(own);
}

fs::path HostKey::list() const {
  return file_.parent_path() / "sealed.campaigns";
}

bool HostKey::has_sealed(std::string_view campaign) const {
  return is_listed(list(), campaign);
}

Status HostKey::remember(std::string_view campaign) const {
  return add_to_list(list(), campaign);
}

static Result<fs::path> begun_list() {
  PROCTOR_TRY(const fs::path key, host_key_file());
  return key.parent_path() / "begun.campaigns";
}

bool has_begun_here(std::string_view campaign) {
  const Result<fs::path> list = begun_list();
  return list.ok() && is_listed(*list, campaign);
}

Status remember_begun(std::string_view campaign) {
  PROCTOR_TRY(const fs::path list, begun_list());
  return add_to_list(list, campaign);
}
}  // namespace proctor
