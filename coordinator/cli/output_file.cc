#include "coordinator/cli/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "common/base/owned.h"
#include "common/base/text.h"
#include "coordinator/cli/command.h"

namespace proctor::cli {
namespace {

Status write_into(const fs::path& path, std::string_view bytes) {
  // A pipe without a reader fails with ENXIO, where it would else be waited for.
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return errno_error(path.string(), errno);
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0)
    return errno_error(path.string(), errno);
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(path.string(), errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return ok_status();
}

// Where links lead to, also when nothing is there yet.
fs::path end_of_links(fs::path path) {
  constexpr int kLinksMax = 40;
  std::error_code ec;
  for (int i = 0; i < kLinksMax && fs::is_symlink(path, ec); ++i) {
    const fs::path to = fs::read_symlink(path, ec);
    if (ec) break;
    path = to.is_absolute() ? to : path.parent_path() / to;
  }
  return path;
}

}  // namespace

Status write_output(const fs::path& path, std::string_view bytes) {
  std::error_code ec;
  // By its own name: what /dev/stdout leads to may have none.
  const fs::file_type type = fs::status(path, ec).type();
  if (type == fs::file_type::directory)
    return Error{Errc::kInvalid, path.string() + ": is a folder; name a file in it"};
  if (type != fs::file_type::regular && type != fs::file_type::not_found)
    return write_into(path, bytes);
  return write_file(end_of_links(path), bytes);
}

std::string printable_lines(std::string_view text, std::string_view kept) {
  std::string out;
  for (;;) {
    const std::string_view part = text.substr(0, text.find_first_of(kept));
    out += printable(part, 4 * part.size() + 4);
    if (part.size() == text.size()) return out;
    out += text[part.size()];
    text.remove_prefix(part.size() + 1);
  }
}

int with_output_written(int code) {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  // What failed before is gone with its reason; one line's end more finds the same one.
  if (failed_before) std::fputc('\n', stdout);
  const bool flushed = std::fflush(stdout) == 0;
  const int reason = flushed ? 0 : errno;
  if ((flushed && !failed_before) || reason == EPIPE) return code;
  std::fprintf(stderr, "proctor: standard output: %s; not all of it was written\n",
               reason == 0 ? "a write failed" : std::strerror(reason));
  return code == kOk ? kInfrastructure : code;
}

}  // namespace proctor::cli
