#pragma once
// A redis-server that is made to suffer: killed, frozen, flushed, brought back with everything,
// with an old copy or with nothing.  It appends every effect to a file (appendonly), in the order
// in which it took place; each loss of data begins a new folder, so that the whole history remains
// for the auditor under `folder`/life-N.
#include <signal.h>

#include <optional>
#include <string>

#include "common/base/subprocess.h"

namespace proctor::torture {

class SufferingRedis {
 public:
  explicit SufferingRedis(fs::path folder);
  std::string address() const { return "unix:" + socket().string(); }

  void kill();
  void freeze() { child_->signal(SIGSTOP); }
  void thaw() { child_->signal(SIGCONT); }
  void copy_for_later();  // while it is dead
  enum class With { kEverything, kOldCopy, kNothing };
  void start(With what);

 private:
  fs::path socket() const { return socket_dir_.path() / "redis.sock"; }
  fs::path life() const { return folder_ / ("life-" + std::to_string(lives_)); }
  fs::path folder_;
  TempDir socket_dir_;
  fs::path old_copy_;  // empty: none yet
  int lives_ = 0;
  std::optional<Child> child_;
};

}  // namespace proctor::torture
