#include "worker/git/object_db.h"

#include <git2.h>
#include <git2/sys/mempack.h>
#include <git2/sys/odb_backend.h>
#include <algorithm>
#include <cstring>

#include "common/base/digest.h"
#include "common/base/owned.h"
#include "common/base/text.h"

namespace proctor {
namespace {
using GitOdbObject = Owned<git_odb_object, git_odb_object_free>;

constexpr std::size_t kObjectBytes = std::size_t{2} << 30;

git_oid to_oid(const ObjectId& id) {
  git_oid oid;
  static_assert(sizeof oid.id == sizeof id.bytes);
  std::memcpy(oid.id, id.bytes.data(), id.bytes.size());
  return oid;
}

ObjectId from_oid(const git_oid& oid) {
  ObjectId id;
  std::memcpy(id.bytes.data(), oid.id, id.bytes.size());
  return id;
}

git_object_t to_git(ObjectType type) {
  switch (type) {
    case ObjectType::kCommit:
      return GIT_OBJECT_COMMIT;
    case ObjectType::kTree:
      return GIT_OBJECT_TREE;
    case ObjectType::kBlob:
      return GIT_OBJECT_BLOB;
    case ObjectType::kTag:
      return GIT_OBJECT_TAG;
  }
  PROCTOR_ASSERT(false);
}

Error damaged(const ObjectId& id, std::string_view why) {
  return Error{Errc::kCorrupt, "git object " + id.hex() + ": " + std::string(why)};
}

Result<std::uint32_t> normal_mode(std::uint32_t mode) {
  switch (mode & 0170000U) {
    case 0040000U:
      return git_mode::kTree;
    case 0120000U:
      return git_mode::kSymlink;
    case 0160000U:
      return git_mode::kGitlink;
    case 0100000U:
      return (mode & 0100U) != 0 ? git_mode::kExecutable : git_mode::kBlob;
    default:
      return Error{Errc::kCorrupt, "unknown file mode"};
  }
}

Result<GitTreeEntry> parse_entry(std::string_view& rest, const ObjectId& tree) {
  GitTreeEntry entry;
  const std::size_t space = rest.find(' ');
  if (space == 0 || 7 < space) return damaged(tree, "bad mode");
  std::uint32_t mode = 0;
  for (const char c : rest.substr(0, space)) {
    if (c < '0' || '7' < c) return damaged(tree, "bad mode");
    mode = mode * 8 + static_cast<std::uint32_t>(c - '0');
  }
  auto normal = normal_mode(mode);
  if (!normal.ok()) return damaged(tree, normal.error().detail);
  entry.mode = *normal;
  const std::size_t end = rest.find('\0', space);
  if (end == std::string_view::npos || rest.size() - end - 1 < entry.id.bytes.size()) {
    return damaged(tree, "cut short");
  }
  entry.name = std::string(rest.substr(space + 1, end - space - 1));
  std::memcpy(entry.id.bytes.data(), rest.data() + end + 1, entry.id.bytes.size());
  rest.remove_prefix(end + 1 + entry.id.bytes.size());
  if (entry.name.empty() || entry.name == "." || entry.name == ".." || is_dot_git(entry.name) ||
      entry.name.find('/') != std::string::npos) {
    return Error{Errc::kInvalid,
                 "git tree " + tree.hex() + ": refused name \"" + printable(entry.name, 80) + "\""};
  }
  return entry;
}
}  // namespace

void start_libgit2() {
  static const bool started = [] {
    git_libgit2_init();
    git_libgit2_opts(GIT_OPT_ENABLE_STRICT_HASH_VERIFICATION, 1);
    git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    for (int level = GIT_CONFIG_LEVEL_PROGRAMDATA; level <= GIT_CONFIG_LEVEL_GLOBAL; ++level) {
      git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, "");
    }
    return true;
  }();
  PROCTOR_ASSERT(started);
}

Error libgit2_error(std::string_view what, int code) {
  const git_error* e = git_error_last();
  std::string detail = e == nullptr || e->message == nullptr ? "unknown" : e->message;
  const Errc errc = code == GIT_ENOTFOUND   ? Errc::kNotFound
                    : code == GIT_EMISMATCH ? Errc::kCorrupt
                    : code == GIT_EEXISTS   ? Errc::kConflict
                    : e != nullptr && (e->klass == GIT_ERROR_ODB || e->klass == GIT_ERROR_ZLIB)
                        ? Errc::kCorrupt
                        : Errc::kUnavailable;
  return Error{errc, std::string(what) + ": " + printable(detail, 400)};
}

Result<ObjectDb> ObjectDb::open(const std::vector<fs::path>& objects, const fs::path& writable) {
  start_libgit2();
  Odb odb(nullptr, git_odb_free);
  int rc =
      writable.empty() ? git_odb_new(OutPtr(odb)) : git_odb_open(OutPtr(odb), writable.c_str());
  if (rc != 0) return libgit2_error("open objects", rc);
  if (writable.empty()) {
    git_odb_backend* memory = nullptr;
    rc = git_mempack_new(&memory);
    if (rc == 0) rc = git_odb_add_backend(odb.get(), memory, 1000);
    if (rc != 0) return libgit2_error("open objects", rc);
  }
  for (const fs::path& dir : objects) {
    rc = git_odb_add_disk_alternate(odb.get(), dir.c_str());
    if (rc != 0) return libgit2_error("open objects of " + dir.string(), rc);
  }
  return ObjectDb(std::move(odb));
}

bool ObjectDb::has(const ObjectId& id) const {
  const git_oid oid = to_oid(id);
  return git_odb_exists(odb_.get(), &oid) == 1;
}

namespace {
struct Header {
  std::size_t size = 0;
  git_object_t type = GIT_OBJECT_INVALID;
};
Result<Header> header_of(git_odb* odb, const ObjectId& id) {
  const git_oid oid = to_oid(id);
  Header out;
  const int rc = git_odb_read_header(&out.size, &out.type, odb, &oid);
  if (rc != 0) return libgit2_error("git object " + id.hex(), rc);
  return out;
}
}  // namespace

Result<ObjectType> ObjectDb::type(const ObjectId& id) const {
  PROCTOR_TRY(const Header header, header_of(odb_.get(), id));
  for (const ObjectType t :
       {ObjectType::kCommit, ObjectType::kTree, ObjectType::kBlob, ObjectType::kTag}) {
    if (to_git(t) == header.type) return t;
  }
  return damaged(id, "unknown type");
}

Result<std::uint64_t> ObjectDb::size(const ObjectId& id) const {
  PROCTOR_TRY(const Header header, header_of(odb_.get(), id));
  return std::uint64_t{header.size};
}

Result<std::string> ObjectDb::read(const ObjectId& id, ObjectType wanted) const {
  PROCTOR_TRY(const Header header, header_of(odb_.get(), id));
  if (header.type != to_git(wanted)) {
    return Error{Errc::kInvalid, "git object " + id.hex() + " is a " +
                                     git_object_type2string(header.type) + " and not a " +
                                     std::string(word_of(wanted))};
  }
  if (kObjectBytes < header.size)
    return Error{Errc::kExhausted, "git object " + id.hex() + ": over 2 GiB"};
  GitOdbObject object;
  const git_oid oid = to_oid(id);
  const int rc = git_odb_read(OutPtr(object), odb_.get(), &oid);
  if (rc != 0) return libgit2_error("git object " + id.hex(), rc);
  return std::string(static_cast<const char*>(git_odb_object_data(object.get())),
                     git_odb_object_size(object.get()));
}

Result<std::string> ObjectDb::blob(const ObjectId& id) const {
  return read(id, ObjectType::kBlob);
}

Result<std::vector<GitTreeEntry>> ObjectDb::tree(const ObjectId& id) const {
  PROCTOR_TRY(const std::string bytes, read(id, ObjectType::kTree));
  std::vector<GitTreeEntry> out;
  for (std::string_view rest = bytes; !rest.empty();) {
    PROCTOR_TRY(GitTreeEntry entry, parse_entry(rest, id));
    out.push_back(std::move(entry));
  }
  return out;
}

Result<ObjectId> ObjectDb::tree_of_commit(const ObjectId& commit) const {
  PROCTOR_TRY(const std::string bytes, read(commit, ObjectType::kCommit));
  constexpr std::string_view kPrefix = "tree ";
  if (!bytes.starts_with(kPrefix)) return damaged(commit, "commit without a tree");
  auto id = ObjectId::from_hex(std::string_view(bytes).substr(kPrefix.size(), 40));
  if (!id.ok()) return damaged(commit, "commit without a tree");
  return id;
}

Result<ObjectId> ObjectDb::write(ObjectType type, std::string_view bytes) {
  git_oid oid;
  const int rc = git_odb_write(&oid, odb_.get(), bytes.data(), bytes.size(), to_git(type));
  if (rc != 0) return libgit2_error("write git object", rc);
  return from_oid(oid);
}

Result<ObjectId> ObjectDb::write_tree(std::vector<GitTreeEntry> entries) {
  return write(ObjectType::kTree, encode_tree(std::move(entries)));
}

ObjectId hash_object(ObjectType type, std::string_view bytes) {
  start_libgit2();
  git_oid oid;
  const int rc = git_odb_hash(&oid, bytes.data(), bytes.size(), to_git(type));
  PROCTOR_ASSERT(rc == 0);
  return from_oid(oid);
}

std::string encode_tree(std::vector<GitTreeEntry> entries) {
  // As if the name of a folder ended in '/'.
  const auto byte = [](const GitTreeEntry& e, std::size_t at) {
    if (at < e.name.size()) return int{static_cast<unsigned char>(e.name[at])};
    return at == e.name.size() && e.mode == git_mode::kTree ? int{'/'} : -1;
  };
  std::ranges::sort(entries, [&](const GitTreeEntry& a, const GitTreeEntry& b) {
    const std::size_t shared = std::min(a.name.size(), b.name.size());
    const int order = a.name.compare(0, shared, b.name, 0, shared);
    if (order != 0) return order < 0;
    for (std::size_t at = shared;; ++at) {
      const int x = byte(a, at), y = byte(b, at);
      if (x != y || x < 0) return x < y;
    }
  });
  std::string out;
  for (const GitTreeEntry& e : entries) {
    char mode[12];
    std::snprintf(mode, sizeof mode, "%o ", e.mode);
    out += mode;
    out += e.name;
    out += '\0';
    out.append(reinterpret_cast<const char*>(e.id.bytes.data()), e.id.bytes.size());
  }
  return out;
}

bool is_dot_git(std::string_view name) {
  return name.size() == 4 && name[0] == '.' && (name[1] | 0x20) == 'g' && (name[2] | 0x20) == 'i' &&
         (name[3] | 0x20) == 't';
}

Result<ObjectId> ObjectId::from_hex(std::string_view hex) {
  if (hex.size() == 64) {
    return Error{Errc::kInvalid, "SHA-256 object ids are not supported, only SHA-1 (40 digits)"};
  }
  git_oid oid;
  if (hex.size() == 2 * sizeof oid.id &&
      hex.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
      git_oid_fromstrn(&oid, hex.data(), hex.size()) == 0)
    return from_oid(oid);
  return Error{Errc::kInvalid,
               "\"" + printable(hex, 80) + "\" is not a full commit id (40 lower-case hex digits)"};
}

std::string ObjectId::hex() const {
  return to_hex(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

namespace {
struct Walk {
  const ObjectDb& db;
  std::vector<ListedEntry>& out;
  std::vector<ObjectId>* trees;
  std::size_t folders = 0;

  Status visit(const ObjectId& tree, const std::string& prefix, std::size_t depth) {
    if (kTreeDepthMax < depth) return Error{Errc::kExhausted, "tree: nested too deep"};
    if (kTreeFilesMax < ++folders) return Error{Errc::kExhausted, "tree: too many folders"};
    if (trees != nullptr) trees->push_back(tree);
    PROCTOR_TRY(const std::vector<GitTreeEntry> entries, db.tree(tree));
    for (const GitTreeEntry& e : entries) {
      std::string path = prefix + e.name;
      if (kTreePathBytes < path.size()) {
        return Error{Errc::kExhausted, "tree: path too long: " + printable(path, 80)};
      }
      if (e.mode == git_mode::kTree) {
        PROCTOR_CHECK_OK(visit(e.id, path + '/', depth + 1));
        continue;
      }
      if (kTreeFilesMax <= out.size()) return Error{Errc::kExhausted, "tree: too many files"};
      out.push_back({std::move(path), e.mode, e.id});
    }
    return ok_status();
  }
};
}  // namespace

Result<std::vector<ListedEntry>> list_tree(const ObjectDb& db, const ObjectId& tree,
                                           std::vector<ObjectId>* trees) {
  std::vector<ListedEntry> out;
  Walk walk{db, out, trees};
  PROCTOR_CHECK_OK(walk.visit(tree, "", 0));
  return out;
}

Result<ObjectId> replace_in_tree(ObjectDb& db, const ObjectId& tree, ObjectType type,
                                 const std::map<std::string, ObjectId>& contents,
                                 const std::string& prefix) {
  const auto first = contents.lower_bound(prefix);
  if (first == contents.end() || !first->first.starts_with(prefix)) return tree;
  PROCTOR_TRY(std::vector<GitTreeEntry> entries, db.tree(tree));
  for (GitTreeEntry& e : entries) {
    const std::string path = prefix + e.name;
    if (e.mode == git_mode::kTree) {
      PROCTOR_TRY(e.id, replace_in_tree(db, e.id, type, contents, path + '/'));
      continue;
    }
    const bool link = e.mode == git_mode::kGitlink;
    if (type == ObjectType::kTree ? !link : link || e.mode == git_mode::kSymlink) continue;
    const auto it = contents.find(path);
    if (it == contents.end()) continue;
    if (link) e.mode = git_mode::kTree;
    e.id = it->second;
  }
  return db.write_tree(std::move(entries));
}

constexpr std::size_t kEntriesMax = 500'000;  // some 50 MiB

Result<TreeCache::Folder> TreeCache::folder(const ObjectDb& db, const ObjectId& id) {
  {
    const std::lock_guard guard(mutex_);
    if (const auto it = known_.find(id); it != known_.end()) return it->second;
  }
  PROCTOR_TRY(std::vector<GitTreeEntry> entries, db.tree(id));
  if (!std::ranges::is_sorted(entries, {}, &GitTreeEntry::name))
    std::ranges::stable_sort(entries, {}, &GitTreeEntry::name);
  const auto made = std::make_shared<const std::vector<GitTreeEntry>>(std::move(entries));
  const std::lock_guard guard(mutex_);
  if (kEntriesMax < entries_ + made->size()) {
    known_.clear();
    entries_ = 0;
  }
  if (known_.emplace(id, made).second) entries_ += made->size();
  return made;
}

Result<std::optional<GitTreeEntry>> TreeCache::entry_at(const ObjectDb& db, const ObjectId& tree,
                                                        std::string_view path) {
  ObjectId at = tree;
  while (true) {
    Result<Folder> listed = folder(db, at);
    // A tree that is named and cannot be read (a host without descriptors) is no path that is not
    // there, for which a caller would take away what stands in its place.
    if (!listed.ok() && listed.error().code == Errc::kNotFound)
      return Error{Errc::kUnavailable, listed.error().detail};
    PROCTOR_TRY(const Folder entries, std::move(listed));
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    // A checkout has the later one of two with one name, which git's own check refuses.
    const auto behind = std::ranges::upper_bound(*entries, name, {}, &GitTreeEntry::name);
    const auto found = std::ranges::prev(behind, 1, entries->begin());
    const bool there = behind != entries->begin() && found->name == name;
    if (there && slash == std::string_view::npos) return std::optional(*found);
    if (!there || found->mode != git_mode::kTree) return std::optional<GitTreeEntry>();
    at = found->id;
    path.remove_prefix(slash + 1);
  }
}
}  // namespace proctor
