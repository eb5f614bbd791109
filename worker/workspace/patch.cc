#include "worker/workspace/patch.h"

#include <git2.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "common/base/owned.h"
#include "common/base/parse.h"

namespace proctor {
namespace {

using GitRepository = Owned<git_repository, git_repository_free>;
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

// Whoever edits a file that shows markers has left none.
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

}  // namespace proctor
