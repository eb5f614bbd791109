#include "coordinator/cli/cvdp_repository.h"

#include <algorithm>
#include <cstdlib>

#include "common/base/subprocess.h"

namespace proctor::cli {

Status ContextRepository::open() const {
  PROCTOR_CHECK_OK(make_dirs(repository_.parent_path()));
  CommandSpec init;
  init.argv = {"git", "init", "--quiet", "--bare", repository_.string()};
  PROCTOR_TRY(const std::string out, run_for_output(init));
  static_cast<void>(out);
  return ok_status();
}

Result<std::map<std::uint64_t, std::string>> ContextRepository::add(std::string stream) const {
  PROCTOR_TRY(const TempDir scratch, TempDir::create("proctor-cvdp"));
  const fs::path marks = scratch.path() / "marks";
  CommandSpec git;
  git.argv = {"git",     "--git-dir=" + repository_.string(), "fast-import", "--quiet",
              "--force", "--export-marks=" + marks.string()};
  git.stdin_bytes = std::move(stream);
  git.timeout = std::chrono::minutes(10);
  PROCTOR_TRY(const std::string out, run_for_output(git));
  static_cast<void>(out);
  PROCTOR_TRY(const std::string text, read_file(marks, std::size_t{64} << 20));
  std::map<std::uint64_t, std::string> ids;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const std::size_t blank = line.find(' ');
    if (line.starts_with(':') && blank != std::string::npos)
      ids[std::strtoull(line.c_str() + 1, nullptr, 10)] = line.substr(blank + 1);
    at = end + 1;
  }
  return ids;
}

}  // namespace proctor::cli
