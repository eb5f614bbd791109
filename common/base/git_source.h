#pragma once
// Where a repository comes from, as text: local path, URL or .bundle file, made canonical so that
// two spellings share one mirror, and with credentials taken out of everything that is shown.
// Pure apart from resolving symlinks of local paths.  Thread-safe.
// Fails with kInvalid on sources that git would treat as a program ("ext::...") or an option.
#include <string>
#include <string_view>
#include <utility>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

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

// Where user and password of the first URL begin and, with their '@', end; equal: it has none. Both
// the end of the text: there is no URL.
std::pair<std::size_t, std::size_t> user_info(std::string_view text);

// "https://user:token@host/x?key=k" -> "https://***@host/x?***", anywhere in `text`.  Whatever
// shows a source to people, or writes it down, shows it so.  A URL reaches to the next blank.
std::string redact_urls(std::string_view text);

// One name for all spellings of a repository, to compare: without protocol, user, ".git" and
// slashes at the end, the host in lower case.  Reads no disk: symlinks of local paths are not
// followed.
std::string repository_name(std::string_view source, const fs::path& base);

}  // namespace proctor
