#include "worker/sandbox/held_locks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "common/base/owned.h"
#include "common/base/parse.h"

namespace proctor {
namespace {

constexpr std::size_t kLocksMost = std::size_t{256} << 10;
constexpr std::size_t kElsewhereMost = 100'000;

// "fe:00:131", the numbers of the device in hexadecimal.
std::optional<HeldLock> parse_inode(std::string_view word) {
  unsigned major_number = 0, minor_number = 0;
  std::uint64_t inode = 0;
  if (!take_number(word, major_number, 16) || !take_word(word, ":") ||
      !take_number(word, minor_number, 16) || !take_word(word, ":") || !take_number(word, inode))
    return std::nullopt;
  return HeldLock{makedev(major_number, minor_number), inode};
}

// "1: FLOCK  ADVISORY  WRITE 3481 fe:00:131 0 EOF"; "1: -> FLOCK ..." waits.
std::optional<HeldLock> parse_line(std::string_view line) {
  constexpr std::size_t kKindAt = 1, kInodeAt = 5;
  std::optional<HeldLock> out;
  for (std::size_t word = 0; !line.empty(); ++word) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view text = line.substr(0, end);
    if (word == kKindAt && text != "FLOCK") return std::nullopt;
    if (word == kInodeAt) return parse_inode(text);
    line.remove_prefix(end);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  }
  return out;
}

// Locks that are not on anything in a place: of every host's databases and queues, looked for once.
class Elsewhere {
 public:
  std::set<HeldLock> not_known(const fs::path& place, const std::set<HeldLock>& locks) {
    const std::lock_guard lock(mutex_);
    std::set<HeldLock> out;
    for (const HeldLock& l : locks)
      if (!known_.contains({place.string(), l})) out.insert(l);
    return out;
  }
  void learn(const fs::path& place, const std::set<HeldLock>& locks) {
    const std::lock_guard lock(mutex_);
    if (kElsewhereMost < known_.size()) known_.clear();
    for (const HeldLock& l : locks) known_.insert({place.string(), l});
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<std::string, HeldLock>> known_;
};

// Takes what is found out of `sought`.
void look_below(const fs::path& place, std::set<HeldLock>& sought, std::vector<fs::path>& found) {
  const auto look = [&](const fs::path& path) {
    struct stat st {};
    if (::lstat(path.c_str(), &st) == 0 && 0 < sought.erase({st.st_dev, st.st_ino}))
      found.push_back(path);
  };
  look(place);
  std::error_code ec;
  if (!fs::is_directory(fs::symlink_status(place, ec))) return;
  using Walk = fs::recursive_directory_iterator;
  for (Walk it(place, fs::directory_options::skip_permission_denied, ec), end;
       !ec && it != end && !sought.empty(); it.increment(ec))
    look(it->path());
}

}  // namespace

std::set<HeldLock> parse_locks(std::string_view words, std::size_t most) {
  std::set<HeldLock> out;
  if (most <= words.size()) {
    words = words.substr(0, words.substr(0, most).rfind('\n') + 1);
    out.insert(kMoreLocks);
  }
  while (!words.empty())
    if (const auto lock = parse_line(take_until(words, '\n'))) out.insert(*lock);
  return out;
}

std::set<HeldLock> locks_held() {
  const UniqueFd fd(::open("/proc/locks", O_RDONLY | O_CLOEXEC));
  std::string words(kLocksMost, '\0');
  std::size_t had = 0;
  while (fd.valid() && had < kLocksMost) {
    const ssize_t n = ::read(fd.get(), words.data() + had, kLocksMost - had);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    had += static_cast<std::size_t>(n);
  }
  words.resize(had);
  return parse_locks(words, kLocksMost);
}

std::vector<fs::path> locked_among(const std::vector<fs::path>& places,
                                   const std::set<HeldLock>& locks) {
  static Elsewhere elsewhere;
  std::vector<fs::path> out;
  for (const fs::path& place : places) {
    struct stat st {};
    if (::lstat(place.c_str(), &st) != 0) continue;
    std::set<HeldLock> sought = elsewhere.not_known(place, locks);
    std::erase_if(sought, [&](const HeldLock& l) { return l.device != st.st_dev; });
    if (sought.empty()) continue;
    look_below(place, sought, out);
    elsewhere.learn(place, sought);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace proctor
