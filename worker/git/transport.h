#pragma once
// The `git` program, used for transport and for packing only, under a configuration of our own:
// no system or user configuration but this user's credential helpers, no hooks, no prompts, no
// remote helpers, nothing written about where objects came from.  Blocking.  Thread-safe (a value).
// Fails with the command's own words, URLs redacted.
#include <chrono>
#include <string>
#include <utility>
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
  // `settings` hold for this command alone and are seen by no other user of the host, as arguments
  // are.
  using Settings = std::vector<std::pair<std::string, std::string>>;
  CommandSpec command(const fs::path& git_dir, std::vector<std::string> args,
                      const Settings& settings = {}) const;
  // Runs it; the value is its stdout.  kUnavailable with stderr's last lines when it fails.
  Result<std::string> run(const CommandSpec& spec) const;

  const fs::path& home() const { return home_; }

 private:
  GitProgram(fs::path home, Settings credentials)
      : home_(std::move(home)), credentials_(std::move(credentials)) {}
  fs::path home_;
  Settings credentials_;  // credential.* of the user's own configuration
};

// stderr of a failed git, short enough for an error text and without credentials.
std::string git_words(const CommandOutcome& outcome);

}  // namespace proctor
