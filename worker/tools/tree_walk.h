#pragma once
// A folder's entries, and all files below a folder, without following a link and within bounds.
// Internal to this room.  Blocking; any thread.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {

struct WalkedEntry {
  enum class Kind { kFile, kFolder, kLink, kOther };
  std::string name;
  Kind kind = Kind::kOther;
  std::uint64_t bytes = 0;
};
struct FolderEntries {
  std::vector<WalkedEntry> entries;  // by name, without .git
  bool more = false;                 // than are looked at
};
// Of the folder that is open.
Result<FolderEntries> entries_of(int dir);

// The folder at a path as tool_path() has it.
Result<UniqueFd> open_folder(int root, const std::string& path);

// Calls `on` for what lies below a folder, a folder before what is in it, in the order of names;
// `path` from the root.  False from `on`: no more.  What cannot be opened is left out.  True: that
// was all of it.
using OnEntry = std::function<bool(int dir, const WalkedEntry& entry, const std::string& path)>;
Result<bool> walk_tree(int root, const std::string& path, std::size_t depth, const OnEntry& on);

}  // namespace proctor
