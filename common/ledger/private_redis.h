#pragma once
// A redis-server of our own: unix socket only, nothing on disk, gone when we are.  Its contents are
// rebuilt from the journal, so persistence would only add a second truth.
//
// Owns the process, its socket's folder and a log beside it.  Not thread-safe.  The kernel ends the
// server with the THREAD that started it (PR_SET_PDEATHSIG): start it from one that lives as long
// as the process.
#include <chrono>
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/base/subprocess.h"

namespace proctor {
class PrivateRedis {
 public:
  // Starts it under `state_dir` (the socket moves to a short private folder in /tmp when the path
  // would pass the 107 bytes of a unix socket's address) and waits until it answers.
  // kNotFound: no redis-server on PATH.  kUnavailable: it ended or stayed silent; the text holds
  // the end of its log.
  static Result<PrivateRedis> start(const fs::path& state_dir);
  PrivateRedis(PrivateRedis&&) noexcept = default;
  ~PrivateRedis();

  // The file of this folder that holds the address of its server while that runs, and after its
  // owner was killed: for who looks in from outside.
  static fs::path address_file(const fs::path& state_dir) { return state_dir / "redis.address"; }

  const std::string& address() const { return address_; }  // "unix:/..."
  pid_t pid() const { return child_.pid(); }
  bool running() { return child_.running(); }
  // Starts it again, empty and at the same address, when it has ended: at most once a second, and
  // without waiting for it to answer.  Call it now and then.  Its users find another run_id
  // and rebuild what it held.
  void tend();
  // Removes the socket folders that killed owners left for this state.  Only for who has the
  // campaign's lock: another's fresh one would go too.
  void remove_abandoned() const;
  // Ends it; the socket's folder goes with this object.  May be called twice.
  void stop();

 private:
  PrivateRedis(CommandSpec command, fs::path log, Child child, TempDir folder, std::string address)
      : command_(std::move(command)),
        log_(std::move(log)),
        child_(std::move(child)),
        folder_(std::move(folder)),
        address_(std::move(address)) {}
  CommandSpec command_;
  fs::path log_;
  Child child_;
  TempDir folder_;
  std::string address_;
  std::chrono::steady_clock::time_point not_before_;
};
}  // namespace proctor
