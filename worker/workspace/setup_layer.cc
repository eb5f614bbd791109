#include "worker/workspace/setup_layer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <vector>

#include "common/base/json_fields.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/cache.h"
#include "worker/workspace/overlay.h"

namespace proctor {
namespace {
constexpr int kLayerDepthMax = 128;
constexpr std::size_t kBootBytes = 4096;
constexpr std::size_t kRecordBytes = std::size_t{16} << 20;

Result<std::string> boot_id() {
  return read_file("/proc/sys/kernel/random/boot_id", kBootBytes);
}

// Walks a folder in the order of names; what it holds goes into the digest, or is merely looked at.
class Reader {
 public:
  explicit Reader(Sha256* digest) : digest_(digest) {}

  Status folder(int dir, const std::string& prefix, int depth) {
    if (kLayerDepthMax < depth)
      return Error{Errc::kInvalid, printable(prefix) + ": nested too deep"};
    if (digest_ != nullptr && std::ranges::any_of(kWorkspaceKinds, [&](WorkspaceKind kind) {
          return is_opaque(dir, kind);
        }))
      digest_->update("opaque\n");
    PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(dir));
    for (const std::string& name : inside) PROCTOR_CHECK_OK(entry(dir, name, prefix + name, depth));
    return ok_status();
  }

 private:
  Status entry(int dir, const std::string& name, const std::string& path, int depth) {
    struct stat st {};
    if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
      return errno_error("look at " + printable(path), errno);
    const bool whiteout = is_whiteout(st);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) && !whiteout)
      return Error{Errc::kInvalid, printable(path) + ": neither file, link nor folder"};
    if (digest_ != nullptr)
      digest_->update(std::to_string(st.st_mode) + " " + std::to_string(st.st_size) + " " + path +
                      std::string(1, '\0'));
    if (S_ISDIR(st.st_mode)) {
      PROCTOR_TRY(const UniqueFd below, beneath::open_dir(dir, name));
      return folder(below.get(), path + '/', depth + 1);
    }
    if (digest_ == nullptr || whiteout) return ok_status();
    if (S_ISLNK(st.st_mode)) {
      PROCTOR_TRY(const std::string target, beneath::read_link(dir, name));
      digest_->update(target);
      return ok_status();
    }
    return bytes(dir, name, path);
  }

  Status bytes(int dir, const std::string& name, const std::string& path) {
    const UniqueFd fd(::openat(dir, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return errno_error("read " + printable(path), errno);
    buffer_.resize(std::size_t{1} << 18);
    while (true) {
      const ssize_t n = ::read(fd.get(), buffer_.data(), buffer_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno_error("read " + printable(path), errno);
      if (n == 0) return ok_status();
      digest_->update(std::string_view(buffer_).substr(0, static_cast<std::size_t>(n)));
    }
  }

  Sha256* digest_;
  std::string buffer_;
};

Status read_both(const fs::path& work, const fs::path& home, Sha256* digest) {
  for (const fs::path* dir : {&work, &home}) {
    PROCTOR_TRY(const UniqueFd root, beneath::open_root(dir->string()));
    struct stat st {};
    if (::fstat(root.get(), &st) != 0) return errno_error(dir->string(), errno);
    if (digest != nullptr) digest->update("root " + std::to_string(st.st_mode) + "\n");
    PROCTOR_CHECK_OK(Reader(digest).folder(root.get(), "", 0));
  }
  return ok_status();
}

// Ours, but a disk may have damaged it: a layer that cannot be read is none.
Result<SetupLayer> read_record(const fs::path& dir) {
  const fs::path record = dir / "layer.json";
  PROCTOR_TRY(const std::string text, read_file(record, kRecordBytes));
  PROCTOR_TRY(const Json json, parse_json(text, {kRecordBytes, 16}));
  PROCTOR_TRY(SetupLayer out,
              from_json<SetupLayer>(json, record.string(), Errc::kNotFound, Versions::kAny));
  out.dir = dir;
  return out;
}

// Off a bounded disk it is copied: with whiteouts, opaque folders and all else that a layer has.
Status move_tree(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return ok_status();
  if (errno != EXDEV) return errno_error("rename " + from.string() + " to " + to.string(), errno);
  constexpr std::chrono::minutes kMost{30};
  CommandSpec copy;
  copy.argv = {"cp", "--archive", "--no-target-directory", "--", from.string(), to.string()};
  copy.timeout = kMost;
  PROCTOR_TRY(const std::string said, run_for_output(copy));
  return ok_status();
}

bool of_this_boot(const fs::path& dir) {
  const auto then = read_file(dir / "boot", kBootBytes), now = boot_id();
  return then.ok() && now.ok() && *then == *now;
}
}  // namespace

Result<SetupLayer> open_setup_layer(const fs::path& dir) {
  auto use = use_tree(dir);
  if (!use.ok()) return Error{Errc::kNotFound, "layer " + dir.filename().string() + ": none"};
  PROCTOR_TRY(SetupLayer out, read_record(dir));
  out.use = std::make_shared<const FileLock>(std::move(use).value());
  return out;
}

SetupMaking::SetupMaking(fs::path dir, FileLock lock)
    : dir_(std::move(dir)), fresh_(dir_.string() + ".new"), lock_(std::move(lock)) {}

Status SetupMaking::keepable(const fs::path& work, const fs::path& home) {
  return read_both(work, home, nullptr);
}

Result<SetupLayer> SetupMaking::keep(const fs::path& work, const fs::path& home,
                                     SetupLayer made) const {
  PROCTOR_CHECK_OK(keepable(work, home));
  made.dir = fresh_;
  PROCTOR_CHECK_OK(move_tree(work, made.work()));
  PROCTOR_CHECK_OK(move_tree(home, made.home()));
  Sha256 digest;
  PROCTOR_CHECK_OK(read_both(made.work(), made.home(), &digest));
  made.content = digest.finish();
  PROCTOR_CHECK_OK(write_file(fresh_ / "layer.json", to_json(made).dump(), Durability::kLazy));
  PROCTOR_TRY(const std::string boot, boot_id());
  PROCTOR_CHECK_OK(write_file(fresh_ / "boot", boot, Durability::kLazy));
  PROCTOR_CHECK_OK(rename_path(fresh_, dir_));
  return open_setup_layer(dir_);
}

Result<SetupLayers> SetupLayers::create(const fs::path& root) {
  PROCTOR_CHECK_OK(make_dirs(root));
  // Homes are open to all, for users inside containers; no other user of the host may get there.
  if (::chmod(root.c_str(), 0700) != 0) return errno_error("close " + root.string(), errno);
  return SetupLayers(root);
}

Result<SetupLayer> SetupLayers::find(const Digest& key) const {
  const fs::path dir = root_ / key.hex();
  if (!of_this_boot(dir)) return Error{Errc::kNotFound, "layer " + key.short_hex() + ": none"};
  return open_setup_layer(dir);
}

Result<SetupMaking> SetupLayers::begin(const Digest& key) const {
  const fs::path dir = root_ / key.hex();
  PROCTOR_TRY(FileLock lock, FileLock::try_acquire(dir.string() + ".lock"));
  SetupMaking out(dir, std::move(lock));
  PROCTOR_CHECK_OK(remove_tree(out.fresh_));  // of a killed maker
  if (find(key).ok()) return out;             // made meanwhile: the caller looks again
  PROCTOR_TRY(const FileLock unused, FileLock::try_acquire(dir.string() + ".use"));
  PROCTOR_CHECK_OK(remove_tree(dir));  // of another boot, or damaged
  PROCTOR_CHECK_OK(make_dirs(out.output()));
  return out;
}
}  // namespace proctor
