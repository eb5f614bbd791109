#include "worker/workspace/checkout.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "common/base/text.h"
#include "worker/workspace/beneath.h"

namespace proctor {
namespace {

constexpr std::uint64_t kFileBytes = std::uint64_t{2} << 30;

Status stamp(int dir, const std::string& name) {
  const timespec times[2] = {{kCheckoutTime, 0}, {kCheckoutTime, 0}};
  if (::utimensat(dir, name.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0) return ok_status();
  return errno_error("set time of " + printable(name), errno);
}

// Writes consecutive entries of one folder without walking from the root again.
class Writer {
 public:
  Writer(const ObjectDb& db, UniqueFd root) : db_(db), root_(std::move(root)) {}

  Status write(const ListedEntry& e) {
    const std::size_t slash = e.path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : e.path.substr(0, slash);
    const std::string name = slash == std::string::npos ? e.path : e.path.substr(slash + 1);
    if (!at_.valid() || folder != folder_) {
      PROCTOR_TRY(auto parent, beneath::open_parent(root_.get(), e.path, beneath::Missing::kMake));
      at_ = std::move(parent.dir);
      folder_ = folder;
    }
    if (e.mode == git_mode::kGitlink) {
      if (::mkdirat(at_.get(), name.c_str(), 0755) != 0) return errno_error("make folder", errno);
      return ok_status();
    }
    PROCTOR_TRY(const std::string bytes, db_.blob(e.id));
    if (e.mode == git_mode::kSymlink) {
      if (bytes.empty() || bytes.find('\0') != std::string::npos) {
        return Error{Errc::kInvalid, "symlink " + printable(e.path) + ": bad target"};
      }
      if (::symlinkat(bytes.c_str(), at_.get(), name.c_str()) != 0) {
        return errno_error("link " + printable(e.path), errno);
      }
      return stamp(at_.get(), name);
    }
    return write_blob(name, bytes, e.mode == git_mode::kExecutable ? 0755 : 0644);
  }

 private:
  Status write_blob(const std::string& name, std::string_view bytes, mode_t mode) {
    UniqueFd fd(::openat(at_.get(), name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    // EEXIST: two entries of one name, or a file system that folds case.
    if (!fd.valid()) return errno_error("write " + printable(name), errno);
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno_error("write " + printable(name), errno);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    const timespec times[2] = {{kCheckoutTime, 0}, {kCheckoutTime, 0}};
    if (::fchmod(fd.get(), mode) != 0 || ::futimens(fd.get(), times) != 0) {
      return errno_error("write " + printable(name), errno);
    }
    return ok_status();
  }

  const ObjectDb& db_;
  UniqueFd root_;
  UniqueFd at_;
  std::string folder_;
};

Result<std::optional<GitTreeEntry>> hash_entry(int dir, const std::string& name,
                                            const std::string& path,
                                            const std::map<std::string, ObjectId>& gitlinks);

Result<std::vector<GitTreeEntry>> hash_folder(int dir, const std::string& prefix,
                                           const std::map<std::string, ObjectId>& gitlinks) {
  PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(dir));
  std::vector<GitTreeEntry> entries;
  for (const std::string& name : inside) {
    if (prefix.empty() && name == ".git") continue;
    PROCTOR_TRY(auto entry, hash_entry(dir, name, prefix + name, gitlinks));
    if (entry) entries.push_back(std::move(*entry));
  }
  return entries;
}

Result<std::optional<GitTreeEntry>> hash_entry(int dir, const std::string& name,
                                            const std::string& path,
                                            const std::map<std::string, ObjectId>& gitlinks) {
  if (const auto link = gitlinks.find(path); link != gitlinks.end()) {
    return std::optional<GitTreeEntry>(GitTreeEntry{git_mode::kGitlink, name, link->second});
  }
  struct stat st {};
  if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno_error(printable(path), errno);
  }
  GitTreeEntry out{0, name, {}};
  if (S_ISDIR(st.st_mode)) {
    PROCTOR_TRY(const UniqueFd child, beneath::open_dir(dir, name));
    PROCTOR_TRY(std::vector<GitTreeEntry> entries, hash_folder(child.get(), path + '/', gitlinks));
    if (entries.empty()) return std::optional<GitTreeEntry>();
    out.mode = git_mode::kTree;
    out.id = hash_object(ObjectType::kTree, encode_tree(std::move(entries)));
  } else if (S_ISLNK(st.st_mode)) {
    PROCTOR_TRY(const std::string target, beneath::read_link(dir, name));
    out.mode = git_mode::kSymlink;
    out.id = hash_object(ObjectType::kBlob, target);
  } else if (S_ISREG(st.st_mode)) {
    PROCTOR_TRY(const std::string bytes, beneath::read_file(dir, name, kFileBytes));
    out.mode = (st.st_mode & S_IXUSR) != 0 ? git_mode::kExecutable : git_mode::kBlob;
    out.id = hash_object(ObjectType::kBlob, bytes);
  } else {
    return Error{Errc::kInvalid, printable(path) + ": neither file, link nor folder"};
  }
  return std::optional<GitTreeEntry>(std::move(out));
}

}  // namespace

Status write_checkout(const ObjectDb& db, const std::vector<ListedEntry>& entries,
                      const fs::path& dir) {
  PROCTOR_TRY(UniqueFd root, beneath::open_root(dir.string()));
  Writer writer(db, std::move(root));
  for (const ListedEntry& e : entries) PROCTOR_CHECK_OK(writer.write(e));
  return ok_status();
}

Result<ObjectId> hash_checkout(const fs::path& dir,
                               const std::map<std::string, ObjectId>& gitlinks) {
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(dir.string()));
  PROCTOR_TRY(std::vector<GitTreeEntry> entries, hash_folder(root.get(), "", gitlinks));
  return hash_object(ObjectType::kTree, encode_tree(std::move(entries)));
}

}  // namespace proctor
