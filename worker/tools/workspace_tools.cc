#include "worker/tools/workspace_tools.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "common/base/line_pattern.h"
#include "common/base/text.h"
#include "worker/tools/text_lines.h"
#include "worker/workspace/beneath.h"

namespace proctor {
namespace {
// A folder's entries, and all files below a folder, without following a link and within bounds.
// Blocking; any thread.

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

// Calls `on` for what lies below a folder, a folder before what is in it, in the order of names;
// `path` from the root.  False from `on`: no more.  What cannot be opened is left out.  True: that
// was all of it.
using OnEntry = std::function<bool(int dir, const WalkedEntry& entry, const std::string& path)>;

constexpr std::size_t kEntriesMost = 50'000, kVisitedMost = 500'000;

WalkedEntry::Kind kind_of_mode(mode_t mode) {
  if (S_ISREG(mode)) return WalkedEntry::Kind::kFile;
  if (S_ISDIR(mode)) return WalkedEntry::Kind::kFolder;
  return S_ISLNK(mode) ? WalkedEntry::Kind::kLink : WalkedEntry::Kind::kOther;
}

// The entries of the folder that is open.
Result<FolderEntries> entries_of(int dir) {
  UniqueFd copy(::openat(dir, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!copy.valid()) return errno_error("list folder", errno);
  const auto close_dir = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close_dir)> stream(::fdopendir(copy.get()), close_dir);
  if (!stream) return errno_error("list folder", errno);
  (void)copy.release();  // the stream has it
  FolderEntries out;
  while (const dirent* e = ::readdir(stream.get())) {
    const std::string_view name(static_cast<const char*>(e->d_name));
    if (name == "." || name == ".." || name == ".git") continue;
    if (out.entries.size() == kEntriesMost) {
      out.more = true;
      break;
    }
    struct stat st {};
    if (::fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;  // it has gone
    out.entries.push_back(
        {std::string(name), kind_of_mode(st.st_mode), static_cast<std::uint64_t>(st.st_size)});
  }
  std::ranges::sort(out.entries, {}, &WalkedEntry::name);
  return out;
}

class Walk {
 public:
  explicit Walk(const OnEntry& on) : on_(on) {}
  bool all() const { return all_; }

  // False: no more.
  bool go(int dir, const std::string& path, std::size_t depth) {
    const auto inside = entries_of(dir);
    if (!inside.ok()) {
      all_ = false;
      return true;
    }
    all_ = all_ && !inside->more;
    for (const WalkedEntry& entry : inside->entries) {
      const std::string at = path.empty() ? entry.name : path + "/" + entry.name;
      if (kVisitedMost < ++visited_ || !on_(dir, entry, at)) {
        all_ = false;
        return false;
      }
      if (entry.kind != WalkedEntry::Kind::kFolder || depth <= 1) continue;
      const auto below = beneath::open_dir(dir, entry.name);
      if (!below.ok()) {
        all_ = false;
        continue;
      }
      if (!go(below->get(), at, depth - 1)) return false;
    }
    return true;
  }

 private:
  const OnEntry& on_;
  std::size_t visited_ = 0;
  bool all_ = true;
};

// The folder at a path as tool_path() has it.
Result<UniqueFd> open_folder(int root, const std::string& path) {
  if (path.empty()) {
    UniqueFd out(::openat(root, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!out.valid()) return errno_error("open folder", errno);
    return out;
  }
  PROCTOR_TRY(beneath::Parent parent, beneath::open_parent(root, path, beneath::Missing::kFail));
  return beneath::open_dir(parent.dir.get(), parent.name);
}

Result<bool> walk_tree(int root, const std::string& path, std::size_t depth, const OnEntry& on) {
  PROCTOR_TRY(const UniqueFd dir, open_folder(root, path));
  Walk walk(on);
  walk.go(dir.get(), path, depth);
  return walk.all();
}

constexpr std::uint64_t kReadMost = kEditedMax, kSearchedMost = std::uint64_t{4} << 20;
constexpr std::uint64_t kPatchedMost = std::uint64_t{64} << 20;
constexpr std::size_t kTextMost = std::size_t{256} << 10, kTreeDepth = 64, kLineSearched = 20'000;
constexpr std::uint32_t kPlain = 0644, kProgram = 0755, kModeBits = 0777;

// A name in its folder, and what is there now.
struct Place {
  beneath::Parent at;
  bool there = false;
  std::uint32_t mode = kPlain;
  std::uint64_t bytes = 0;
};

Result<Place> look(int root, const std::string& path, beneath::Missing missing) {
  PROCTOR_TRY(beneath::Parent parent, beneath::open_parent(root, path, missing));
  Place out{std::move(parent)};
  struct stat st {};
  if (::fstatat(out.at.dir.get(), out.at.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return out;
    return errno_error(printable(path), errno);
  }
  if (!S_ISREG(st.st_mode)) {
    const char* what = S_ISDIR(st.st_mode)   ? "a folder"
                       : S_ISLNK(st.st_mode) ? "a link, which is not followed"
                                             : "no file";
    return Error{Errc::kInvalid, printable(path) + " is " + what};
  }
  out.there = true;
  out.mode = static_cast<std::uint32_t>(st.st_mode) & kModeBits;
  out.bytes = static_cast<std::uint64_t>(st.st_size);
  return out;
}

Result<std::string> contents(const Place& place, const std::string& path) {
  if (!place.there) return Error{Errc::kNotFound, "there is no " + printable(path)};
  if (kReadMost < place.bytes)
    return Error{Errc::kExhausted, printable(path) + " has " + std::to_string(place.bytes) +
                                       " bytes, which is more than is read at once"};
  return beneath::read_file(place.at.dir.get(), place.at.name, kReadMost);
}

// A path as a model may say it again, whole.
std::string told(const std::string& path) {
  return printable(path, tool_bounds::kPathBytes);
}

std::string entry_line(const WalkedEntry& entry, const std::string& path) {
  switch (entry.kind) {
    case WalkedEntry::Kind::kFile:
      return told(path) + "  " + std::to_string(entry.bytes) + "\n";
    case WalkedEntry::Kind::kFolder:
      return told(path) + "/\n";
    case WalkedEntry::Kind::kLink:
      return told(path) + "  (a link)\n";
    case WalkedEntry::Kind::kOther:
      return told(path) + "  (no file)\n";
  }
  return "";
}

// The hits that a search has found so far.
struct Found {
  std::string text;
  std::uint64_t hits = 0, files = 0, skipped = 0;
  bool more = false, late = false;
};

class Searcher {
 public:
  Searcher(LinePattern pattern, const Search& ask, std::chrono::steady_clock::time_point until)
      : pattern_(std::move(pattern)), ask_(ask), until_(until) {}

  // False: that is enough.
  bool look_at(int dir, const WalkedEntry& entry, const std::string& path) {
    if (until_ <= std::chrono::steady_clock::now()) found.late = true;
    if (found.late) return false;
    if (entry.kind != WalkedEntry::Kind::kFile || !is_asked_for(entry.name, path)) return true;
    const auto bytes = beneath::read_file(dir, entry.name, kSearchedMost);
    if (!bytes.ok() || bytes->find('\0') != std::string::npos) {
      ++found.skipped;
      return true;
    }
    ++found.files;
    std::uint64_t number = 0;
    for (const std::string_view line : lines_of(*bytes)) {
      ++number;
      const std::string_view text = bare(line).substr(0, kLineSearched);
      if (!pattern_.matches(text)) {
        constexpr std::uint64_t kLinesBetween = 64;
        found.late = number % kLinesBetween == 0 && until_ <= std::chrono::steady_clock::now();
        if (found.late) return false;
        continue;
      }
      found.text += told(path) + ":" + std::to_string(number) + ": " +
                    head_of(text, tool_bounds::kHitBytes) + "\n";
      if (++found.hits == ask_.limit || kTextMost < found.text.size()) {
        found.more = true;
        return false;
      }
    }
    return true;
  }

  Found found;

 private:
  // A glob without a folder is one of names.
  bool is_asked_for(const std::string& name, const std::string& path) const {
    if (ask_.glob.empty() || glob_covers(ask_.glob, path)) return true;
    return ask_.glob.find('/') == std::string::npos && glob_covers(ask_.glob, name);
  }

  LinePattern pattern_;
  const Search& ask_;
  const std::chrono::steady_clock::time_point until_;
};

// A file of a patch, before anything is written.
struct Prepared {
  const DiffFile* file;
  Place place;
  std::string before, after;
};

Status put(const Prepared& p) {
  if (p.file->to.empty()) return beneath::remove(p.place.at.dir.get(), p.place.at.name);
  const std::uint32_t made = p.file->executable ? kProgram : kPlain;
  return beneath::write_file(p.place.at.dir.get(), p.place.at.name, p.after,
                             p.place.there ? p.place.mode : made);
}

Status put_back(const Prepared& p) {
  if (!p.place.there) return beneath::remove(p.place.at.dir.get(), p.place.at.name);
  return beneath::write_file(p.place.at.dir.get(), p.place.at.name, p.before, p.place.mode);
}

FileChange change_of(const Prepared& p) {
  FileChange out{p.file->path(), {}, {}};
  if (p.place.there) out.before = sha256(p.before);
  if (!p.file->to.empty()) out.after = sha256(p.after);
  return out;
}
}  // namespace

WorkspaceTools::WorkspaceTools(UniqueFd root, WorkspaceRules rules)
    : root_(std::move(root)), rules_(std::move(rules)), guarded_(rules_.guarded) {}

Result<WorkspaceTools> WorkspaceTools::open(const fs::path& dir, WorkspaceRules rules) {
  PROCTOR_TRY(UniqueFd root, beneath::open_root(dir.string()));
  return WorkspaceTools(std::move(root), std::move(rules));
}

std::string WorkspaceTools::refusal(const std::string& path) const {
  if (guarded_.covers(path)) return "Refused: " + printable(path) + " is protected by the task.";
  if (!rules_.writable.empty() && !any_glob_covers(rules_.writable, path))
    return "Refused: the task lets nobody change " + printable(path) + ".";
  return "";
}

ToolOutcome WorkspaceTools::list(const ListDir& ask) const {
  const ActingAs as(rules_.user.get());
  ToolOutcome out;
  std::uint64_t shown = 0;
  const auto all = walk_tree(root_.get(), ask.path, static_cast<std::size_t>(ask.depth),
                             [&](int, const WalkedEntry& entry, const std::string& path) {
                               if (shown == ask.limit || kTextMost < out.text.size()) return false;
                               ++shown;
                               out.text += entry_line(entry, path);
                               return true;
                             });
  if (!all.ok()) return tool_failure(all.error().detail);
  if (!*all) out.text += "[there is more: name a folder in it]\n";
  if (out.text.empty()) out.text = "[nothing is in it]\n";
  return out;
}

ToolOutcome WorkspaceTools::read(const ReadFile& ask) const {
  const ActingAs as(rules_.user.get());
  const auto place = look(root_.get(), ask.path, beneath::Missing::kFail);
  if (!place.ok()) return tool_failure(place.error().detail);
  const auto bytes = contents(*place, ask.path);
  if (!bytes.ok()) return tool_failure(bytes.error().detail);
  ToolOutcome out;
  if (!is_text(*bytes)) {
    out.text = "[" + printable(ask.path) + " is no text: " + std::to_string(bytes->size()) +
               " bytes, SHA-256 " + sha256(*bytes).hex() + "]\n";
    return out;
  }
  const NumberedLines lines = number_lines(*bytes, ask.offset, ask.limit);
  out.text = lines.text;
  const std::uint64_t last = ask.offset - 1 + lines.shown;
  if (lines.shown == 0)
    out.text = "[the file has " + counted(lines.lines, "line") + "]\n";
  else if (last < lines.lines)
    out.text += "[lines " + std::to_string(ask.offset) + " to " + std::to_string(last) + " of " +
                std::to_string(lines.lines) + "]\n";
  return out;
}

ToolOutcome WorkspaceTools::search(const Search& ask) const {
  const ActingAs as(rules_.user.get());
  auto pattern =
      ask.literal ? LinePattern::literal(ask.pattern) : LinePattern::compile(ask.pattern);
  if (!pattern.ok()) return tool_failure(pattern.error().detail);
  Searcher searcher(std::move(pattern).value(), ask,
                    std::chrono::steady_clock::now() + rules_.search);
  const Found& found = searcher.found;
  const auto on = [&](int dir, const WalkedEntry& entry, const std::string& path) {
    return searcher.look_at(dir, entry, path);
  };
  if (const auto all = walk_tree(root_.get(), ask.path, kTreeDepth, on); !all.ok()) {
    // It may be a file.
    auto place = ask.path.empty() ? Result<Place>(all.error())
                                  : look(root_.get(), ask.path, beneath::Missing::kFail);
    if (!place.ok()) return tool_failure(place.error().detail);
    if (!place->there) return tool_failure("there is no " + printable(ask.path));
    on(place->at.dir.get(), {place->at.name, WalkedEntry::Kind::kFile, place->bytes}, ask.path);
  }
  ToolOutcome out;
  out.text = found.text;
  out.text += "[" + counted(found.hits, "line") + " in " + counted(found.files, "file");
  if (0 < found.skipped) out.text += ", " + counted(found.skipped, "file") + " not searched";
  if (found.more) out.text += "; there may be more";
  if (found.late) out.text += "; it took too long: name a folder or a glob";
  out.text += "]\n";
  return out;
}

ToolOutcome WorkspaceTools::write(const WriteFile& ask) const {
  const ActingAs as(rules_.user.get());
  if (std::string no = refusal(ask.path); !no.empty()) return tool_failure(std::move(no));
  const auto place = look(root_.get(), ask.path, beneath::Missing::kMake);
  if (!place.ok()) return tool_failure(place.error().detail);
  FileChange change{ask.path, {}, sha256(ask.content)};
  if (place->there)
    if (const auto before = contents(*place, ask.path); before.ok())
      change.before = sha256(*before);
  const Status done =
      beneath::write_file(place->at.dir.get(), place->at.name, ask.content, place->mode);
  if (!done.ok()) return tool_failure(done.error().detail);
  ToolOutcome out;
  out.text = printable(ask.path) + ": " + counted(ask.content.size(), "byte") +
             (place->there ? ", replaced" : ", created");
  out.changes.push_back(std::move(change));
  return out;
}

ToolOutcome WorkspaceTools::edit(const EditFile& ask) const {
  const ActingAs as(rules_.user.get());
  if (std::string no = refusal(ask.path); !no.empty()) return tool_failure(std::move(no));
  const auto place = look(root_.get(), ask.path, beneath::Missing::kFail);
  if (!place.ok()) return tool_failure(place.error().detail);
  const auto before = contents(*place, ask.path);
  if (!before.ok()) return tool_failure(before.error().detail);
  const auto edited = edit_text(*before, ask);
  if (!edited.ok()) return tool_failure(printable(ask.path) + ": " + edited.error().detail);
  const Status done =
      beneath::write_file(place->at.dir.get(), place->at.name, edited->text, place->mode);
  if (!done.ok()) return tool_failure(done.error().detail);
  ToolOutcome out;
  out.text = printable(ask.path) + ": " + counted(edited->lines.size(), "replacement") + ", line " +
             std::to_string(edited->lines.front());
  out.changes.push_back({ask.path, sha256(*before), sha256(edited->text)});
  return out;
}

ToolOutcome WorkspaceTools::patch(const ApplyDiff& ask) const {
  const ActingAs as(rules_.user.get());
  const auto files = read_unified_diff(ask.patch);
  if (!files.ok()) return tool_failure(files.error().detail);
  for (const DiffFile& file : *files)
    if (std::string no = refusal(file.path()); !no.empty()) return tool_failure(std::move(no));
  std::vector<Prepared> all;
  std::uint64_t bytes = 0;
  for (const DiffFile& file : *files) {
    // Folders above a new file are made even where a later file does not fit: git knows no empty
    // folder, so that is no change.
    const bool made = file.from.empty();
    auto place =
        look(root_.get(), file.path(), made ? beneath::Missing::kMake : beneath::Missing::kFail);
    if (!place.ok()) return tool_failure(place.error().detail);
    if (made && place->there)
      return tool_failure("the patch makes " + printable(file.path()) + ", which is there already");
    std::string before;
    if (!made) {
      auto read = contents(*place, file.path());
      if (!read.ok()) return tool_failure(read.error().detail);
      before = std::move(read).value();
    }
    auto after = apply_hunks(file, before);
    if (!after.ok()) return tool_failure(after.error().detail);
    bytes += before.size() + after->size();
    if (kPatchedMost < bytes) return tool_failure("the files of the patch are too large together");
    all.push_back({&file, std::move(place).value(), std::move(before), std::move(after).value()});
  }
  ToolOutcome out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Status done = put(all[i]);
    if (!done.ok()) {
      std::string text = printable(all[i].file->path()) + ": " + done.error().detail;
      bool back = true;
      while (0 < i) back = put_back(all[--i]).ok() && back;
      text += back ? "; nothing of the patch was kept" : "; some of the patch was kept";
      return tool_failure(std::move(text));
    }
    const char* what = all[i].file->from.empty() ? ", created\n"
                       : all[i].file->to.empty() ? ", removed\n"
                                                 : ", changed\n";
    out.text += printable(all[i].file->path()) + what;
    out.changes.push_back(change_of(all[i]));
  }
  return out;
}
}  // namespace proctor
