#include "coordinator/journal/owner_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <climits>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/file_lock.h"
#include "common/base/json_fields.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/journal_reader.h"

namespace proctor {
namespace {
constexpr std::size_t kOwnerBytes = 800, kFactsBytes = 3 * PATH_MAX;

// What the one that took the lock wrote into it.
LockOwner owner_in(int fd) {
  std::string bytes(kOwnerBytes + kFactsBytes, '\0');
  const ssize_t n = ::pread(fd, bytes.data(), bytes.size(), 0);
  std::string_view rest =
      std::string_view(bytes).substr(0, n < 0 ? 0 : static_cast<std::size_t>(n));
  const std::string_view line = take_until(rest, '\n');
  LockOwner out;
  if (const auto json = parse_json(take_until(rest, '\n')); json.ok()) {
    if (auto facts = from_json<LockOwner>(*json, "", Errc::kCorrupt, Versions::kAny); facts.ok())
      out = std::move(facts).value();
  } else {  // an older proctor wrote the line alone, with both in it
    std::string_view words = line;
    if (take_word(words, "process ")) (void)take_number(words, out.pid);
    constexpr std::string_view kIn = ", in ";
    if (const std::size_t at = words.find(kIn); at != words.npos)
      out.folder = words.substr(at + kIn.size());
  }
  out.text = line.empty() ? "another coordinator" : printable(line, kOwnerBytes);
  return out;
}

// Like flock(2) with LOCK_NB, but patient with one who is about to let go.
bool lock_within(int fd, int operation, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (::flock(fd, operation | LOCK_NB) == 0) return true;
    if (errno != EINTR && errno != EWOULDBLOCK) return false;
    if (errno == EWOULDBLOCK && until <= std::chrono::steady_clock::now()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}
}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

Result<UniqueFd> take_owner_lock(const fs::path& file, const std::string& folder,
                                 std::chrono::milliseconds patience) {
  PROCTOR_TRY(UniqueFd fd, open_own_file(file, O_RDWR | O_CREAT));
  if (!lock_within(fd.get(), LOCK_EX, patience)) {
    if (errno != EWOULDBLOCK) return errno_error("lock " + file.string(), errno);
    return Error{Errc::kConflict, owner_in(fd.get()).text};
  }
  const LockOwner self{
      fmt::format("process {} on {} since {}{}", ::getpid(), host_name(), to_rfc3339(wall_now()),
                  folder.empty() ? "" : ", in " + printable(folder, kOwnerBytes)),
      ::getpid(), folder};
  const std::string line =
      self.text.substr(0, kOwnerBytes - 1) + "\n" + to_json(self).dump() + "\n";
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    return errno_error("write " + file.string(), errno);
  }
  return fd;
}

std::optional<LockOwner> lock_owner(const fs::path& file, std::chrono::milliseconds patience) {
  const Result<UniqueFd> fd = open_own_file(file, O_RDONLY);
  if (!fd.ok() || lock_within(fd->get(), LOCK_SH, patience) || errno != EWOULDBLOCK)
    return std::nullopt;
  return owner_in(fd->get());
}

namespace {
// Whoever had the lock may have removed the file between our open and our lock.
bool is_still_at(const UniqueFd& fd, const fs::path& file) {
  struct stat held {
  }, there{};
  return ::fstat(fd.get(), &held) == 0 && ::lstat(file.c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

Result<UniqueFd> take_lock(const fs::path& file, const fs::path& folder) {
  constexpr int kTries = 100;
  PROCTOR_CHECK_OK(make_private_dirs(file.parent_path()));
  for (int i = 0; i < kTries; ++i) {
    PROCTOR_TRY(UniqueFd fd, take_owner_lock(file, folder.string(), kJournalPatience));
    if (is_still_at(fd, file)) return fd;
  }
  return Error{Errc::kUnavailable, file.string() + " is removed as often as it is made"};
}

Result<fs::path> file_of(std::string_view campaign, const EpochBegun& first) {
  PROCTOR_TRY(const fs::path key, host_key_file());
  return key.parent_path() / "living" /
         sha256(fmt::format("{}\n{}\n{}\n{}\n", campaign, first.host, first.pid, first.at.raw()))
             .short_hex();
}
}  // namespace

Result<std::unique_ptr<LivingMark>> LivingMark::take(std::string_view campaign,
                                                     const fs::path& folder,
                                                     const fs::path& journal) {
  PROCTOR_TRY(JournalReader reader, JournalReader::open(journal));
  PROCTOR_TRY(const std::vector<EpochBegun> lives, reader.epochs());
  if (lives.empty()) return std::unique_ptr<LivingMark>();
  std::optional<LockOwner> other;
  const auto take_it = [&]() -> Result<std::unique_ptr<LivingMark>> {
    PROCTOR_TRY(fs::path file, file_of(campaign, lives.front()));
    Result<UniqueFd> lock = take_lock(file, folder);
    if (!lock.ok() && lock.error().code == Errc::kConflict) other = lock_owner(file, {});
    if (!lock.ok()) return std::move(lock).error();
    return std::unique_ptr<LivingMark>(new LivingMark(std::move(file), std::move(lock).value()));
  };
  Result<std::unique_ptr<LivingMark>> mark = take_it();
  if (mark.ok()) return mark;
  if (mark.error().code == Errc::kConflict) {
    // In this folder too, where somebody removed the lock beside the journal.
    if (!other || other->folder == folder.string())
      return Error{Errc::kConflict, "this campaign is running: " + mark.error().detail};
    return Error{
        Errc::kConflict,
        fmt::format("this campaign is running, in another folder: {}.\n{} is a copy of "
                    "that: both would spend the same money.\n"
                    "  To go on here:  interrupt that process first, and use one of the "
                    "two folders from then on\n"
                    "  To run the same tasks as a campaign of its own: proctor copy {} NEW",
                    mark.error().detail, folder.string(), folder.string())};
  }
  log::warn(
      "no mark that this campaign runs on this host, so that a copy of its folder could run "
      "beside it: " +
      mark.error().detail);
  return std::unique_ptr<LivingMark>();
}

LivingMark::~LivingMark() {
  ::unlink(file_.c_str());
}
}  // namespace proctor
