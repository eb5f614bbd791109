#pragma once
// The `git` program, used for transport and for packing only, under a configuration of our own:
// no system or user configuration but this user's credential helpers, no hooks, no prompts, no
// remote helpers, nothing written about where objects came from.  Passwords of URLs travel in its
// environment, which other users do not see as they do arguments, and in no file.
// Blocking.  Thread-safe (a value).  Fails with the command's own words, URLs redacted.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "common/base/files.h"
#include "common/base/git_source.h"
#include "common/base/result.h"
#include "common/base/subprocess.h"

namespace proctor {

using GitSettings = std::vector<std::pair<std::string, std::string>>;

// `git ARGS` with these settings alone, none of the system's and of the user's those in the file
// `config`.  Beside what is said here it has PATH and TMPDIR of our environment.
CommandSpec guarded_git(std::vector<std::string> args, const fs::path& config,
                        const GitSettings& settings);

class GitProgram {
 public:
  // The remote under which a command finds the source that it is given.
  static constexpr const char* kRemote = "source";

  // Writes the configuration file into `home` (made if needed).
  static Result<GitProgram> create(const fs::path& home);

  // argv, environment and working folder of `git <args>`; GIT_DIR when `git_dir` is not empty.
  // `remote`: the source behind kRemote, and whose user and password its server is given.
  CommandSpec command(const fs::path& git_dir, std::vector<std::string> args,
                      const GitSource* remote = nullptr) const;
  // Runs it; the value is its stdout.  kUnavailable with stderr's last lines when it fails.
  Result<std::string> run(const CommandSpec& spec) const;

  const fs::path& home() const { return home_; }

 private:
  GitProgram(fs::path home, GitSettings credentials)
      : home_(std::move(home)), credentials_(std::move(credentials)) {}
  fs::path home_;
  GitSettings credentials_;  // credential.* of the user's own configuration
};

// stderr of a failed git, short enough for an error text and without credentials.
std::string git_words(const CommandOutcome& outcome);

}  // namespace proctor
