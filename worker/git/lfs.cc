#include "worker/git/lfs.h"

#include <algorithm>
#include <utility>

#include "common/base/digest.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {
constexpr std::size_t kAttributesBytes = std::size_t{1} << 20;
constexpr std::size_t kNamed = 3;  // files in an error

std::string_view next_line(std::string_view& rest) {
  std::string_view line = take_until(rest, '\n');
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string first_names(const std::map<std::string, LfsPointer>& pointers) {
  std::string out;
  std::size_t n = 0;
  for (const auto& [path, pointer] : pointers) {
    if (n++ == kNamed) break;
    out += (out.empty() ? "" : ", ") + printable(path, 200);
  }
  return out + (kNamed < pointers.size()
                    ? " and " + std::to_string(pointers.size() - kNamed) + " more"
                    : "");
}

// Where git-lfs keeps a content it has fetched.
fs::path content_of(const fs::path& mirror, const LfsPointer& p) {
  return mirror / "lfs" / "objects" / p.oid.substr(0, 2) / p.oid.substr(2, 2) / p.oid;
}

std::map<std::string, LfsPointer> missing_of(const fs::path& mirror,
                                             const std::map<std::string, LfsPointer>& pointers) {
  std::map<std::string, LfsPointer> out;
  std::error_code ec;
  for (const auto& [path, pointer] : pointers)
    if (!fs::is_regular_file(content_of(mirror, pointer), ec)) out.emplace(path, pointer);
  return out;
}

Result<std::string> read_content(const fs::path& mirror, const std::string& path,
                                 const LfsPointer& p) {
  const fs::path file = content_of(mirror, p);
  PROCTOR_TRY(std::string bytes, read_file(file, kLfsFileBytes));
  if (bytes.size() == p.size && sha256(bytes).hex() == p.oid) return bytes;
  std::error_code ec;
  fs::remove(file, ec);  // the next try fetches it again
  return Error{Errc::kCorrupt, "LFS file " + printable(path) + ": not the content of its pointer"};
}
}  // namespace

std::optional<LfsPointer> parse_lfs_pointer(std::string_view blob) {
  if (kLfsPointerBytes < blob.size()) return std::nullopt;
  if (next_line(blob) != "version https://git-lfs.github.com/spec/v1") return std::nullopt;
  LfsPointer out;
  bool sized = false;
  while (!blob.empty()) {
    std::string_view line = next_line(blob);
    if (take_word(line, "oid sha256:"))
      out.oid = line;
    else if (take_word(line, "size "))
      sized = take_number(line, out.size) && line.empty();
  }
  if (!Digest::from_hex(out.oid).ok() || !sized) return std::nullopt;
  return out;
}

bool mentions_lfs(std::string_view gitattributes) {
  while (!gitattributes.empty()) {
    std::string_view line = next_line(gitattributes);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with('#') && line.find("filter=lfs") != std::string_view::npos) return true;
  }
  return false;
}

Result<std::map<std::string, LfsPointer>> lfs_pointers(const ObjectDb& db, const ObjectId& tree) {
  std::map<std::string, LfsPointer> out;
  PROCTOR_TRY(const std::vector<ListedEntry> entries, list_tree(db, tree));
  bool used = false;
  for (const ListedEntry& e : entries) {
    if (!(e.path == ".gitattributes" || e.path.ends_with("/.gitattributes"))) continue;
    PROCTOR_TRY(const std::uint64_t size, db.size(e.id));
    if (kAttributesBytes < size) continue;
    PROCTOR_TRY(const std::string text, db.blob(e.id));
    used = used || mentions_lfs(text);
  }
  if (!used) return out;
  for (const ListedEntry& e : entries) {
    if (e.mode != git_mode::kBlob && e.mode != git_mode::kExecutable) continue;
    PROCTOR_TRY(const std::uint64_t size, db.size(e.id));
    if (kLfsPointerBytes < size) continue;
    PROCTOR_TRY(const std::string blob, db.blob(e.id));
    const std::optional<LfsPointer> pointer = parse_lfs_pointer(blob);
    if (!pointer) continue;
    if (kLfsFileBytes < pointer->size)
      return Error{Errc::kExhausted, "LFS file " + printable(e.path) + ": larger than 2 GiB"};
    out.emplace(e.path, *pointer);
  }
  return out;
}

Result<ObjectId> fill_lfs(const MirrorStore& mirrors, const GitSource& source,
                          const ObjectId& commit, const ObjectId& tree,
                          const std::map<std::string, LfsPointer>& pointers,
                          const std::vector<fs::path>& objects, const fs::path& scratch) {
  if (pointers.empty()) return tree;
  const fs::path mirror = objects.front().parent_path();
  if (const auto missing = missing_of(mirror, pointers); !missing.empty()) {
    const std::string files = first_names(missing);
    if (const Status fetched = mirrors.fetch_lfs(source, commit); !fetched.ok())
      return in_context("LFS content of " + files, fetched.error());
    if (const auto still = missing_of(mirror, pointers); !still.empty())
      return Error{Errc::kUnavailable,
                   "LFS content of " + first_names(still) + " is not at the repository's server"};
  }
  PROCTOR_TRY(ObjectDb db, ObjectDb::open(objects, scratch));
  std::map<std::string, ObjectId> blobs;
  for (const auto& [path, pointer] : pointers) {
    PROCTOR_TRY(const std::string content, read_content(mirror, path, pointer));
    PROCTOR_TRY(blobs[path], db.write(ObjectType::kBlob, content));
  }
  return replace_in_tree(db, tree, ObjectType::kBlob, blobs);
}
}  // namespace proctor
