#include "worker/workspace/tree_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "common/base/digest.h"
#include "common/base/owned.h"

namespace proctor {
namespace {

constexpr std::uint64_t kEntriesMost = 200'000;
constexpr int kDepthMost = 200;
constexpr std::size_t kHashedAtOnce = std::size_t{1} << 16;

class Look {
 public:
  Status folder(UniqueFd fd, int depth) {
    if (kDepthMost < depth) return Error{Errc::kExhausted, "a tree that is too deep to look at"};
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::fdopendir(fd.get()), ::closedir);
    if (!open) return errno_error("look at a folder", errno);
    fd.release();  // closedir() closes it
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(open.get())) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (kEntriesMost < ++entries_)
        return Error{Errc::kExhausted, "a tree of too many files to look at"};
      names.push_back(name);
    }
    std::ranges::sort(names);
    for (const std::string& name : names) PROCTOR_CHECK_OK(one(::dirfd(open.get()), name, depth));
    add("/");
    return ok_status();
  }

  TreeState state() {
    flush();
    return {sha256(chain_).hex(), files_, bytes_};
  }

 private:
  Status one(int dir, const std::string& name, int depth) {
    struct stat st {};
    if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return ok_status();  // gone
    ++files_;
    if (S_ISREG(st.st_mode)) bytes_ += static_cast<std::uint64_t>(st.st_size);
    add(name);
    std::string facts(1, '\0');
    for (const std::uint64_t fact :
         {static_cast<std::uint64_t>(st.st_mode), static_cast<std::uint64_t>(st.st_size),
          static_cast<std::uint64_t>(st.st_rdev), static_cast<std::uint64_t>(st.st_mtim.tv_sec),
          static_cast<std::uint64_t>(st.st_mtim.tv_nsec)})
      facts += std::to_string(fact) + ",";
    add(facts);
    if (!S_ISDIR(st.st_mode)) return ok_status();
    UniqueFd below(::openat(dir, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (below.valid()) return folder(std::move(below), depth + 1);
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return ok_status();  // swapped
    return errno_error("look at a folder", errno);
  }

  void add(std::string_view text) {
    pending_ += text;
    if (kHashedAtOnce < pending_.size()) flush();
  }
  // A chain, so that nothing grows with the tree.
  void flush() {
    chain_ += pending_;
    chain_ = sha256(chain_).hex();
    pending_.clear();
  }

  std::uint64_t entries_ = 0, files_ = 0, bytes_ = 0;
  std::string pending_, chain_;
};

}  // namespace

Result<TreeState> state_of_tree(const fs::path& dir) {
  UniqueFd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return errno_error("look at " + dir.string(), errno);
  Look look;
  PROCTOR_CHECK_OK(look.folder(std::move(fd), 0));
  return look.state();
}

}  // namespace proctor
