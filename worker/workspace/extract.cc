#include "worker/workspace/extract.h"

#include <git2.h>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#include "common/base/json_fields.h"
#include "common/base/owned.h"
#include "common/base/parse.h"
#include "common/base/result.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "worker/git/object_db.h"
#include "worker/workspace/removal.h"
#include "worker/workspace/snapshot.h"

namespace proctor {
namespace {
using GitRepository = Owned<git_repository, git_repository_free>;

constexpr std::array<std::string_view, 5> kFolders = {"__pycache__", ".pytest_cache", ".mypy_cache",
                                                      ".ruff_cache", "node_modules"};

// Also inside of such a folder.
bool is_common_product(std::string_view path, bool folder) {
  const std::vector<std::string_view> names = split(path, '/');
  const auto folders = folder ? names.end() : names.end() - 1;
  if (std::find_first_of(names.begin(), folders, kFolders.begin(), kFolders.end()) != folders)
    return true;
  return !folder && (path.ends_with(".pyc") || names.back() == ".DS_Store");
}

// Which new files are build products and stay out of patches.  A file that the snapshot has always
// counts.  A new one does not if the snapshot's own .gitignore files ignore it (the agent's edits
// of them change nothing, so an agent can neither hide nor smuggle by them), or if it is one of a
// few products that every tool chain leaves: __pycache__/, *.pyc, .pytest_cache/, .mypy_cache/,
// .ruff_cache/, node_modules/, .DS_Store.  The contract's word goes before all of it: what its
// globs cover is wanted, ignored or not.  Owns a libgit2 repository over the read-only tree; the
// workspace is never read.  One thread at a time.  Fails with libgit2's error.
class IgnoreRules {
 public:
  // `kept`: the contract's globs (policy.ignored).
  IgnoreRules(const Snapshot& snapshot, std::vector<std::string> kept)
      : work_(snapshot.tree_dir),
        git_(snapshot_git_layer(snapshot) / ".git"),
        kept_(std::move(kept)) {}
  // `path` relative, of a file or folder that the snapshot does not have.  A folder that may hold
  // something wanted is not ignored; what is in it is asked for by itself.
  Result<bool> ignored(const std::string& path, bool folder) {
    if (folder ? any_glob_reaches(kept_, path) : any_glob_covers(kept_, path)) return false;
    if (is_common_product(path, folder)) return true;
    if (!repository_) PROCTOR_CHECK_OK(open());
    int ignored = 0;
    const std::string asked = folder ? path + '/' : path;
    const int rc = git_ignore_path_is_ignored(&ignored, repository_.get(), asked.c_str());
    if (rc != 0) return libgit2_error("ignore rules", rc);
    return ignored != 0;
  }

 private:
  Status open() {
    start_libgit2();
    GitRepository repository;
    int rc = git_repository_open_ext(OutPtr(repository), git_.c_str(),
                                     GIT_REPOSITORY_OPEN_NO_SEARCH, nullptr);
    if (rc == 0) rc = git_repository_set_workdir(repository.get(), work_.c_str(), 0);
    if (rc != 0) return libgit2_error("ignore rules", rc);
    repository_ = std::move(repository);
    return ok_status();
  }

  fs::path work_;
  fs::path git_;
  std::vector<std::string> kept_;
  GitRepository repository_;  // opened when first asked: most runs add no file
};

using GitTree = Owned<git_tree, git_tree_free>;
using GitDiff = Owned<git_diff, git_diff_free>;
using GitPatch = Owned<git_patch, git_patch_free>;
using GitDiffStats = Owned<git_diff_stats, git_diff_stats_free>;
using GitBlob = Owned<git_blob, git_blob_free>;

Result<GitTree> look_up(git_repository* repository, const ObjectId& id) {
  git_oid oid;
  std::memcpy(oid.id, id.bytes.data(), id.bytes.size());
  GitTree tree;
  const int rc = git_tree_lookup(OutPtr(tree), repository, &oid);
  if (rc != 0) return libgit2_error("patch", rc);
  return tree;
}

struct Output {
  std::string text;
  std::size_t max;
  bool full = false;
  int conflict_at = 0;  // of the file that is printed: the first added line that is a marker
};

// As a merge leaves them.  Seven equals signs alone underline a heading, too.
bool is_conflict_marker(std::string_view line) {
  constexpr std::size_t kLength = 7;
  for (const char mark : {'<', '>', '|'}) {
    if (!line.starts_with(std::string(kLength, mark))) continue;
    const std::string_view rest = line.substr(kLength);
    return rest.empty() || rest[0] == ' ' || rest[0] == '\n' || rest[0] == '\r';
  }
  return false;
}

bool has_conflict_marker(std::string_view text) {
  while (!text.empty())
    if (is_conflict_marker(take_until(text, '\n'))) return true;
  return false;
}

// An edit of a file that shows markers has left none.
Result<bool> had_markers(git_repository* repository, const git_diff_delta& delta) {
  if (delta.status == GIT_DELTA_ADDED || git_oid_is_zero(&delta.old_file.id) != 0) return false;
  GitBlob blob;
  const int rc = git_blob_lookup(OutPtr(blob), repository, &delta.old_file.id);
  if (rc != 0) return libgit2_error("patch", rc);
  return has_conflict_marker({static_cast<const char*>(git_blob_rawcontent(blob.get())),
                              static_cast<std::size_t>(git_blob_rawsize(blob.get()))});
}

int take_line(const git_diff_delta* delta, const git_diff_hunk*, const git_diff_line* line,
              void* payload) {
  auto& out = *static_cast<Output*>(payload);
  const char origin = line->origin;
  // A binary file that was only moved or chmodded gets a "Binary files differ" which git apply
  // refuses; nothing but the header is needed when the content is the same.
  if (origin != GIT_DIFF_LINE_FILE_HDR &&
      git_oid_equal(&delta->old_file.id, &delta->new_file.id) == 1) {
    return 0;
  }
  if (origin == GIT_DIFF_LINE_CONTEXT || origin == GIT_DIFF_LINE_ADDITION ||
      origin == GIT_DIFF_LINE_DELETION) {
    out.text += origin;
  }
  if (out.max < out.text.size() + line->content_len) {
    out.full = true;
    return GIT_EUSER;
  }
  out.text.append(line->content, line->content_len);
  if (origin == GIT_DIFF_LINE_ADDITION && out.conflict_at == 0 &&
      is_conflict_marker({line->content, line->content_len}))
    out.conflict_at = line->new_lineno;
  return 0;
}

// A path that changed its type is two deltas, and git wants the deletion first; the search for
// renames does not keep that order.
std::vector<std::size_t> order_of(git_diff* diff) {
  std::vector<std::size_t> order(git_diff_num_deltas(diff));
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) {
    const git_diff_delta* d = git_diff_get_delta(diff, i);
    return std::pair(std::string_view(d->new_file.path), d->status != GIT_DELTA_DELETED);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

Status print(git_repository* repository, git_diff* diff, Output& out,
             std::vector<std::string>& conflicts) {
  for (const std::size_t i : order_of(diff)) {
    GitPatch patch;
    out.conflict_at = 0;
    int rc = git_patch_from_diff(OutPtr(patch), diff, i);
    if (rc == 0) rc = git_patch_print(patch.get(), take_line, &out);
    if (out.full) {
      return Error{Errc::kExhausted, "patch: larger than " + std::to_string(out.max) + " bytes"};
    }
    if (rc != 0) return libgit2_error("patch", rc);
    if (out.conflict_at == 0) continue;
    const git_diff_delta& delta = *git_diff_get_delta(diff, i);
    PROCTOR_TRY(const bool had, had_markers(repository, delta));
    if (!had)
      conflicts.push_back(std::string(delta.new_file.path) + ":" + std::to_string(out.conflict_at));
  }
  return ok_status();
}

Result<GitDiff> diff_trees(git_repository* repository, const ObjectId& from, const ObjectId& to) {
  PROCTOR_TRY(const GitTree before, look_up(repository, from));
  PROCTOR_TRY(const GitTree after, look_up(repository, to));
  git_diff_options options = GIT_DIFF_OPTIONS_INIT;
  options.flags = GIT_DIFF_SHOW_BINARY | GIT_DIFF_INDENT_HEURISTIC;
  options.id_abbrev = GIT_OID_HEXSZ;
  GitDiff diff;
  int rc = git_diff_tree_to_tree(OutPtr(diff), repository, before.get(), after.get(), &options);
  if (rc != 0) return libgit2_error("patch", rc);
  git_diff_find_options find = GIT_DIFF_FIND_OPTIONS_INIT;
  find.flags = GIT_DIFF_FIND_RENAMES | GIT_DIFF_FIND_EXACT_MATCH_ONLY;
  rc = git_diff_find_similar(diff.get(), &find);
  if (rc != 0) return libgit2_error("patch", rc);
  return diff;
}
}  // namespace

// From a set of changes to a diff that `git apply` takes: text and binary hunks, modes, symlinks,
// exact renames.  Made between two trees in a private object database, so no attribute, driver or
// configuration has a say.  One thread.
// Fails with kExhausted beyond `bytes_max`, else with libgit2's error.
Result<Patch> make_patch(ObjectDb& db, const ChangeSet& changes, std::size_t bytes_max) {
  Patch patch;
  patch.refused = changes.refused;
  if (changes.changed.empty()) return patch;
  // libgit2 reads every folder of what it compares, changed or not.
  PROCTOR_TRY(const ChangedTrees trees, write_changed(db, changes));
  GitRepository repository;
  int rc = git_repository_wrap_odb(OutPtr(repository), db.raw());
  if (rc != 0) return libgit2_error("patch", rc);
  PROCTOR_TRY(const GitDiff diff, diff_trees(repository.get(), trees.before, trees.after));
  Output out{{}, bytes_max};
  PROCTOR_CHECK_OK(print(repository.get(), diff.get(), out, patch.conflicts));
  GitDiffStats stats;
  rc = git_diff_get_stats(OutPtr(stats), diff.get());
  if (rc != 0) return libgit2_error("patch", rc);
  patch.diff = std::move(out.text);
  patch.files = git_diff_num_deltas(diff.get());
  patch.insertions = git_diff_stats_insertions(stats.get());
  patch.deletions = git_diff_stats_deletions(stats.get());
  for (const auto& [path, change] : changes.changed) patch.paths.push_back(path);
  return patch;
}

namespace {
// An edit of a large file makes a small patch, so contents may be larger than the patch; this much
// is read even when the patch must be tiny.
constexpr std::uint64_t kContentBytes = std::uint64_t{64} << 20;
constexpr std::size_t kAskedBytes = std::size_t{1} << 30;  // of a copy's files, mostly
constexpr std::size_t kNamesBytes = std::size_t{64} << 20;
constexpr std::size_t kHeadBytes = std::size_t{64} << 10;
// Ours to wait for a machine that is busy; what the tree takes is counted in CPU time.
constexpr std::chrono::minutes kPatience{20};

// Texts of any bytes, one after another, each ended by a NUL: no path holds one.
std::optional<std::string_view> next(std::string_view& rest) {
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view out = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return out;
}

std::string hex_of(const ObjectId& id) {
  return id.hex();
}

// The question that the process reads; the files of a copy follow.
struct Question {
  Extraction what{};
  Extractor limits{};
  fs::path answer{};
};
void fields(auto& v, Is<Question> auto& q) {
  v("tree_dir", q.what.snapshot.tree_dir);
  v("dir", q.what.dir);
  v("kind", q.what.kind);
  v("setup", q.what.setup);
  v("content", AsText{q.what.content, hex_of, ObjectId::from_hex});
  v("bytes_max", q.what.bytes_max);
  v("kept", q.what.kept);
  v("cpu_s", q.limits.cpu);
  v("memory", q.limits.memory);
  v("answer", q.answer);
}

// Its answer; the paths of each list and then the diff follow.
struct Answer {
  std::optional<Errc> failed{};
  std::string why{};
  apart::Use took{};
  Patch patch{};
};
void fields(auto& v, Is<Answer> auto& a) {
  v("failed", a.failed);
  v("why", a.why);
  v("took", a.took);
  v("files", a.patch.files);
  v("insertions", a.patch.insertions);
  v("deletions", a.patch.deletions);
  v("left_out", a.patch.left_out_count);
}
constexpr std::array kLists = {&Patch::paths, &Patch::refused, &Patch::conflicts, &Patch::left_out};

template <class T>
Result<T> head_in(std::string_view& rest) {
  const auto text = next(rest);
  if (!text) return Error{Errc::kUnavailable, "extract: bytes that cannot be read"};
  PROCTOR_TRY(const Json json, parse_json(*text, {kHeadBytes, 4}));
  return from_json<T>(json, "extract", Errc::kUnavailable);
}

std::array<std::int64_t, 4> numbers_of(const CopiedFile& file) {
  return {static_cast<std::int64_t>(file.inode), file.size, file.changed.tv_sec,
          file.changed.tv_nsec};
}

std::string question(const Question& asked) {
  std::string out = to_json(asked).dump() + '\0';
  if (asked.what.copied == nullptr) return out;
  for (const auto& [path, file] : *asked.what.copied) {
    out += path + '\0';
    for (const auto n : numbers_of(file)) out += std::to_string(n) + ' ';
    out += '\0';
  }
  return out;
}

Result<CopiedFiles> copied_in(std::string_view rest) {
  CopiedFiles out;
  while (const auto path = next(rest)) {
    const auto state = next(rest);
    std::string_view left = state.value_or("");
    std::array<std::int64_t, 4> numbers{};
    for (std::int64_t& n : numbers)
      if (!take_number(left, n) || !take_word(left, " "))
        return Error{Errc::kInvalid, "extract: a file without its state"};
    const auto& [inode, size, seconds, ns] = numbers;
    out.emplace(*path, CopiedFile{static_cast<ino_t>(inode), size, {seconds, ns}});
  }
  return out;
}

std::string answer_of(Result<Patch> patch) {
  Answer head;
  head.took = apart::so_far();
  if (patch.ok()) {
    head.patch = std::move(patch).value();
  } else {
    head.failed = patch.error().code;
    head.why = printable(patch.error().detail);
  }
  std::string out = to_json(head).dump() + '\0';
  for (const auto list : kLists) {
    for (const std::string& path : head.patch.*list) out += path + '\0';
    out += '\0';
  }
  return out + head.patch.diff;
}

// The program is ours, what it read was not; so its answer is looked at, but believed.
Result<Patch> patch_in(std::string_view rest) {
  PROCTOR_TRY(Answer head, head_in<Answer>(rest));
  if (head.failed) return Error{*head.failed, head.why};
  Patch out = std::move(head.patch);
  for (const auto list : kLists)
    for (auto path = next(rest); path && !path->empty(); path = next(rest))
      (out.*list).emplace_back(*path);
  out.apart = head.took;
  out.diff = rest;
  return out;
}

Status answer_question(std::string_view rest) {
  PROCTOR_TRY(Question asked, head_in<Question>(rest));
  PROCTOR_CHECK_OK(apart::limit_self(asked.limits.cpu, asked.limits.memory));
  PROCTOR_TRY(const CopiedFiles copied, copied_in(rest));
  asked.what.copied = &copied;
  TreeCache folders;
  start_libgit2();    // before that it has no last error, and looking for it crashes
  git_error_clear();  // so that the last one is of this extraction; closing leaves it
  Result<Patch> patch = extract_here(asked.what, folders);
  const git_error* const last = git_error_last();
  if (!patch.ok() && last != nullptr && last->klass == GIT_ERROR_NOMEMORY) throw std::bad_alloc();
  return write_file(asked.answer, answer_of(std::move(patch)), Durability::kLazy);
}
}  // namespace

Result<Patch> extract_here(const Extraction& what, TreeCache& folders) {
  // The lower layer's objects: the agent's own are never read.
  PROCTOR_TRY(ObjectDb db,
              ObjectDb::open({snapshot_git_layer(what.snapshot) / ".git" / "objects"}));
  IgnoreRules ignore(what.snapshot, what.kept);
  std::vector<std::string> left_out;
  std::uint64_t left_out_count = 0;
  ScanInput scan{.dir = what.dir,
                 .kind = what.kind,
                 .setup = what.setup,
                 .copied = what.copied,
                 .tree = what.content,
                 .folders = &folders,
                 .content_max = std::max<std::uint64_t>(what.bytes_max, kContentBytes)};
  scan.wanted = [&](const std::string& path, bool folder) -> Result<bool> {
    PROCTOR_TRY(const bool ignored, ignore.ignored(path, folder));
    if (ignored && left_out.size() < Patch::kLeftOutListed)
      left_out.push_back(folder ? path + '/' : path);
    if (ignored) ++left_out_count;
    return !ignored;
  };
  PROCTOR_TRY(const ChangeSet changes, scan_changes(db, scan));
  PROCTOR_TRY(Patch patch, make_patch(db, changes, what.bytes_max));
  std::ranges::sort(left_out);
  patch.left_out = std::move(left_out);
  patch.left_out_count = left_out_count;
  return patch;
}

Result<Patch> extract_apart(const Extraction& what, const Extractor& program,
                            const fs::path& scratch) {
  // Likewise our want of room and of descriptors: what the tree takes, the process says.
  const auto of_host = [](Error e) {
    return Error{Errc::kUnavailable, "extract: " + std::move(e.detail)};
  };
  Result<TempDir> made = TempDir::create("extract", scratch);
  if (!made.ok()) return of_host(std::move(made).error());
  const TempDir dir = std::move(made).value();
  const fs::path answer = dir.path() / "answer";
  CommandSpec spec;
  spec.argv = {program.path.string(), "extract"};
  spec.stdin_bytes = question({what, program, answer});
  spec.timeout = kPatience;
  Result<CommandOutcome> ran = run_command(spec);
  if (!ran.ok()) return of_host(std::move(ran).error());
  const CommandOutcome& outcome = *ran;
  if (outcome.signal == SIGXCPU)
    return Error{Errc::kExhausted, "workspace: a patch takes more than " +
                                       std::to_string(program.cpu.count()) + " s of CPU time"};
  if (outcome.exit_code == apart::kNoMemory)
    return Error{Errc::kExhausted, "workspace: a patch takes more than " +
                                       std::to_string(program.memory >> 20) + " MiB of memory"};
  if (!outcome.success()) return Error{Errc::kUnavailable, "extract: " + outcome.describe()};
  Result<std::string> bytes = read_file(answer, what.bytes_max + kNamesBytes + kHeadBytes);
  if (!bytes.ok()) return of_host(std::move(bytes).error());
  return patch_in(*bytes);
}

int extract_as_asked() {
  return apart::serve(kAskedBytes, answer_question);
}
}  // namespace proctor
