#include "worker/shell/lives.h"

#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "common/base/log.h"

namespace proctor {
namespace {

constexpr const char* kLives = "lives";
constexpr const char* kSynced = "synced";
constexpr std::size_t kLivesBytes = 4096;
constexpr std::size_t kLivesKept = 8;  // that nobody has been told of

}  // namespace

std::vector<BootId> lives_with_books(const fs::path& meters) {
  const Result<std::string> text = read_file(meters / kLives, kLivesBytes);
  if (!text.ok() || !text->ends_with('\n')) return {};
  std::istringstream words(*text);
  std::string first;
  words >> first;
  if (first != kSynced) return {};
  std::vector<BootId> out;
  for (std::uint64_t life = 0; words >> life;) out.emplace_back(life);
  return out;
}

Status begin_life(const fs::path& meters, BootId life) {
  PROCTOR_CHECK_OK(make_private_dirs(meters));
  std::vector<BootId> lives = lives_with_books(meters);
  lives.push_back(life);
  if (kLivesKept < lives.size()) lives.erase(lives.begin());
  std::string text = kSynced;
  for (const BootId one : lives) text += " " + std::to_string(one.raw());
  return write_file(meters / kLives, text + "\n");
}

void books_are_not_whole(const fs::path& meters) {
  const fs::path file = meters / kLives;
  if (::unlink(file.c_str()) == 0) {
    if (const Status synced = sync_path(meters); !synced.ok()) log::warn(synced.error().detail);
  } else if (errno != ENOENT) {
    log::warn(errno_error("remove " + file.string(), errno).detail);
  }
}

}  // namespace proctor
