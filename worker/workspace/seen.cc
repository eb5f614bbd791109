#include "worker/workspace/seen.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <utility>

#include "common/base/files.h"
#include "common/base/text.h"

namespace proctor {
namespace {

using beneath::Missing;
using beneath::Parent;

// None: nothing is there.
Result<std::optional<Parent>> parent_of(int root, const std::string& path) {
  auto parent = beneath::open_parent(root, path, Missing::kFail);
  if (parent.ok()) return std::optional<Parent>(std::move(parent).value());
  if (parent.error().code == Errc::kNotFound || parent.error().code == Errc::kInvalid)
    return std::optional<Parent>();
  return std::move(parent).error();
}

Result<bool> same_bytes(const Parent& a, const Parent& b) {
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  const UniqueFd one(::openat(a.dir.get(), a.name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  const UniqueFd two(::openat(b.dir.get(), b.name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!one.valid() || !two.valid()) return errno_error("read " + printable(a.name), errno);
  std::string left(kPiece, '\0'), right(kPiece, '\0');
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(one.get(), left.data(), kPiece, at);
    const ssize_t m = ::pread(two.get(), right.data(), kPiece, at);
    if (n < 0 || m < 0) return errno_error("read " + printable(a.name), errno);
    const auto got = static_cast<std::size_t>(n);
    if (n != m || std::string_view(left).substr(0, got) != std::string_view(right).substr(0, got))
      return false;
    if (n == 0) return true;
    at += n;
  }
}

}  // namespace

Result<Seen> look(int root, const std::string& path) {
  Seen out;
  PROCTOR_TRY(out.parent, parent_of(root, path));
  if (!out.parent) return out;
  struct stat st {};
  if (::fstatat(out.parent->dir.get(), out.parent->name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
    out.st = st;
  } else if (errno != ENOENT) {
    return errno_error("look at " + printable(path), errno);
  }
  return out;
}

bool is_settled(const struct stat& st) {
  constexpr std::int64_t kTickNs = 100'000'000;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return kTickNs <
         (now.tv_sec - st.st_ctim.tv_sec) * 1'000'000'000 + (now.tv_nsec - st.st_ctim.tv_nsec);
}

Result<bool> say_the_same(const Seen& a, const Seen& b) {
  if (!a.st || !b.st || (a.st->st_mode & S_IFMT) != (b.st->st_mode & S_IFMT) ||
      a.st->st_size != b.st->st_size)
    return false;
  if (a.is_file()) return same_bytes(*a.parent, *b.parent);
  PROCTOR_TRY(const std::string one, beneath::read_link(a.parent->dir.get(), a.parent->name));
  PROCTOR_TRY(const std::string two, beneath::read_link(b.parent->dir.get(), b.parent->name));
  return one == two;
}

}  // namespace proctor
