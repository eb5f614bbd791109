#pragma once
// A lock file that says who has the lock.  It ends with its holder, however that ends; the file
// may stay.  Adapter (file system); any thread.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/fields.h"
#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {
// Of this machine; "unknown host" where it has none.
std::string host_name();

// The holder of a lock, whose file has a line for people and one with the facts.
struct LockOwner {
  std::string text;      // "process 17 on build7 since 2026-11-26T20:00:00Z"
  std::int64_t pid = 0;  // 0: not known
  std::string folder;    // of a mark that a campaign lives, else empty
};
void fields(auto& v, Is<LockOwner> auto& o) {
  v("pid", o.pid);
  v("folder", o.folder, {.text = Rule::Text::kBytes, .optional = true});
}

// Makes the file where there is none and writes this process into it, for `folder` where that is
// not empty.  kConflict: somebody has had the lock for all of `patience`; the detail is that one's
// text.
Result<UniqueFd> take_owner_lock(const fs::path& file, const std::string& folder,
                                 std::chrono::milliseconds patience);
// The one who has had the lock for all of `patience`, if anyone.
std::optional<LockOwner> lock_owner(const fs::path& file, std::chrono::milliseconds patience);

// The mark that a campaign lives, outside of its folder: a copy of that has a lock of its own, and
// what knows that the same journal is gone on with twice must lie elsewhere.  One file for each
// campaign that is running on this host, in $XDG_STATE_HOME/proctor/living, locked by its
// coordinator and named after the journal's first life, which every copy has.
class LivingMark {
 public:
  // Null: no life of the journal has begun yet, so that nobody can have a copy; or there is no
  // place for marks here, which costs no run and is logged.  kConflict, with who, where and what to
  // type: another process has it, in a folder of its own.
  static Result<std::unique_ptr<LivingMark>> take(std::string_view campaign, const fs::path& folder,
                                                  const fs::path& journal);
  LivingMark(const LivingMark&) = delete;
  LivingMark& operator=(const LivingMark&) = delete;
  ~LivingMark();  // the file goes first, then its lock

 private:
  LivingMark(fs::path file, UniqueFd lock) : file_(std::move(file)), lock_(std::move(lock)) {}
  fs::path file_;
  UniqueFd lock_;
};
}  // namespace proctor
