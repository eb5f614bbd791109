#pragma once
// The git program under a configuration of our own, and the sources that it is given as text.
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/base/subprocess.h"

namespace proctor {
// Where a repository comes from, as text: local path, URL or .bundle file, made canonical so that
// two spellings share one mirror, and with credentials taken out of everything that is shown.
// Pure apart from resolving symlinks of local paths.  Thread-safe.
// Fails with kInvalid on sources that git would treat as a program ("ext::...") or an option.

struct GitSource {
  bool local = false;    // a path of this host (folder or bundle)
  std::string location;  // absolute path or URL, credentials included: no argument, log or file
  std::string address;   // what git is given: the same without a password
  std::string shown;     // for errors and logs: no credentials
  std::string key;       // folder name of the mirror, hex: the same whoever fetches
};

// The rule that a source breaks, as in "found X, expected ...": it would be a program or an option
// to git, or other users would see a secret of it among git's arguments.  Empty: it keeps all
// rules.
std::string_view wanted_of(std::string_view source);

// `base` resolves relative paths.
Result<GitSource> parse_source(std::string_view source, const fs::path& base);

// A submodule's url seen from its superproject: "./x" and "../x" are relative to `parent`.
Result<GitSource> resolve_submodule_url(const GitSource& parent, std::string_view url);

// Where user and password of the first URL begin and, with their '@', end; equal: it has none.
// Both the end of the text: there is no URL.
std::pair<std::size_t, std::size_t> user_info(std::string_view text);

// "https://user:token@host/x?key=k" -> "https://***@host/x?***", anywhere in `text`.  Whatever
// shows a source to people, or writes it down, shows it so.  A URL reaches to the next blank.
std::string redact_urls(std::string_view text);

// One name for all spellings of a repository, to compare: without protocol, user, ".git" and
// slashes at the end, the host in lower case.  Reads no disk: symlinks of local paths are not
// followed.
std::string repository_name(std::string_view source, const fs::path& base);

// The `git` program, used for transport and for packing only, under a configuration of our own:
// no system or user configuration but this user's credential helpers, no hooks, no prompts, no
// remote helpers, nothing written about where objects came from.  Passwords of URLs travel in its
// environment, which other users do not see as they do arguments, and in no file.
// Blocking.  Thread-safe (a value).  Fails with the command's own words, URLs redacted.

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
