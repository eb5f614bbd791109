#pragma once
// The `git` program, used for transport and for packing only, under a configuration of our own:
// no system or user configuration, no hooks, no prompts, no remote helpers, nothing written about
// where objects came from.  Blocking.  Thread-safe (a value: the path of its configuration file).
// Fails with the command's own words, URLs redacted.
#include <chrono>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/base/subprocess.h"

namespace proctor {

class GitProgram {
 public:
  // Writes the configuration file into `home` (made if needed).
  static Result<GitProgram> create(const fs::path& home);

  // argv, environment and working folder of `git <args>`; GIT_DIR when `git_dir` is not empty.
  CommandSpec command(const fs::path& git_dir, std::vector<std::string> args) const;
  // Runs it; the value is its stdout.  kUnavailable with stderr's last lines when it fails.
  Result<std::string> run(const CommandSpec& spec) const;

  const fs::path& home() const { return home_; }

 private:
  explicit GitProgram(fs::path home) : home_(std::move(home)) {}
  fs::path home_;
};

// stderr of a failed git, short enough for an error text and without credentials.
std::string git_words(const CommandOutcome& outcome);

}  // namespace proctor
