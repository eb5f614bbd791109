#include "coordinator/cvdp/run/repository.h"

#include <cstdlib>

#include "common/base/parse.h"
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
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    std::uint64_t mark = 0;
    if (take_word(line, ":") && take_number(line, mark) && take_word(line, " ")) ids[mark] = line;
  }
  return ids;
}

}  // namespace proctor::cli
