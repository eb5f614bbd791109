#include "worker/workspace/kept_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "common/base/text.h"
#include "worker/workspace/beneath.h"

namespace proctor {
namespace {
constexpr std::size_t kLooksMax = 100'000;  // at files and folders
constexpr std::size_t kKeptPathBytes = 1024;

// write_file would take such a file for its own.
bool has_our_name(const fs::path& path) {
  return std::ranges::any_of(path,
                             [](const fs::path& part) { return is_temporary_name(part.native()); });
}

bool is_plain_path(std::string_view path) {
  return path.size() <= kKeptPathBytes && is_utf8(path) && std::ranges::none_of(path, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte < 0x20 || byte == 0x7F || c == '\\';
         });
}

class Keeper {
 public:
  Keeper(const std::vector<std::string>& globs, const fs::path& to, KeepRoom& room)
      : globs_(globs), to_(to), room_(room) {}

  Status folder(int dir, const std::string& prefix, std::size_t depth) {
    const Result<std::vector<std::string>> inside = beneath::names(dir);
    if (!inside.ok()) return left_out(prefix, "cannot be read");
    for (const std::string& name : *inside) {
      if (prefix.empty() && name == ".git") continue;
      if (kLooksMax < ++looks_) return left_out(prefix + name, "too many files to look at");
      PROCTOR_CHECK_OK(entry(dir, name, prefix + name, depth));
    }
    return ok_status();
  }

  // Its owner may close a folder to himself.
  Status closed_root() { return left_out(".", "cannot be read"); }
  KeptFiles take() { return std::move(out_); }

 private:
  Status entry(int dir, const std::string& name, const std::string& path, std::size_t depth) {
    struct stat st {};
    if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return ok_status();
    if (S_ISDIR(st.st_mode)) {
      if (!any_glob_reaches(globs_, path)) return ok_status();
      if (room_.depth <= depth) return left_out(path, "nested too deep");
      const Result<UniqueFd> below = beneath::open_dir(dir, name);
      if (!below.ok()) return left_out(path, "cannot be read");
      return folder(below->get(), path + '/', depth + 1);
    }
    if (!any_glob_covers(globs_, path)) return ok_status();
    if (S_ISLNK(st.st_mode)) return left_out(path, "a link");
    if (!S_ISREG(st.st_mode)) return left_out(path, "neither file nor folder");
    if (!is_plain_path(path)) return left_out(path, "its name is no plain text, or too long");
    if (has_our_name(path)) return left_out(path, "a name that Proctor has for files of its own");
    return file(dir, name, path, static_cast<std::uint64_t>(st.st_size));
  }

  // A size is what a reader would get, also of a file that is mostly holes.
  Status file(int dir, const std::string& name, const std::string& path, std::uint64_t size) {
    if (room_.files == 0) return left_out(path, "too many files");
    if (room_.bytes_each < size)
      return left_out(path, std::to_string(size) + " bytes, more than " +
                                std::to_string(room_.bytes_each >> 20) + " MiB");
    if (room_.bytes < size) return left_out(path, "no room beside the others");
    const Result<std::string> bytes =
        beneath::read_file(dir, name, std::min(room_.bytes_each, room_.bytes));
    if (!bytes.ok()) return left_out(path, "cannot be read");
    const fs::path target = to_ / path;
    Status written = make_dirs(target.parent_path());
    if (written.ok()) written = write_file(target, *bytes, Durability::kLazy);
    // A name that this file system does not take says nothing of the host.
    if (!written.ok() && written.error().code != Errc::kUnavailable &&
        written.error().code != Errc::kExhausted)
      return left_out(path, "cannot be stored: " + printable(written.error().detail, kShown));
    PROCTOR_CHECK_OK(std::move(written));
    --room_.files;
    room_.bytes -= bytes->size();
    out_.files.push_back({path, bytes->size(), sha256(*bytes)});
    return ok_status();
  }

  Status left_out(const std::string& path, std::string why) {
    if (out_.left_out.size() < KeptFiles::kLeftOutTold)
      out_.left_out.push_back({printable(path, kShown), std::move(why)});
    else
      ++out_.left_out_beside;
    return ok_status();
  }

  static constexpr std::size_t kShown = 300;
  const std::vector<std::string>& globs_;
  const fs::path& to_;
  KeepRoom& room_;
  std::size_t looks_ = 0;
  KeptFiles out_;
};
}  // namespace

Result<KeptFiles> keep_files(const fs::path& from, const std::vector<std::string>& globs,
                             const fs::path& to, KeepRoom& room) {
  Keeper keeper(globs, to, room);
  const Result<UniqueFd> root = beneath::open_root(from.string());
  if (!root.ok() && root.error().code == Errc::kExhausted) return root.error();
  PROCTOR_CHECK_OK(root.ok() ? keeper.folder(root->get(), "", 0) : keeper.closed_root());
  return keeper.take();
}
}  // namespace proctor
