#pragma once
// That a campaign lives, outside of its folder: a copy of that has a lock of its own, and what
// knows that the same journal is gone on with twice must lie elsewhere.  One file for each campaign
// that is running on this host, in $XDG_STATE_HOME/proctor/living, locked by its coordinator and
// named after the journal's first life, which every copy has.  Adapter (file system); any thread.
#include <memory>
#include <string_view>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {

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
