// proctor init DIR: a first campaign, commented, that runs as it is.
#include <cctype>
#include <cstdio>

#include "common/base/subprocess.h"
#include "common/contract/scaffold.h"
#include "coordinator/cli/command.h"

namespace proctor::cli {
namespace {

// A folder's name as an id: lower case, what does not fit becomes a dash.
std::string id_from(const fs::path& dir) {
  std::string out;
  for (const char c : dir.filename().string()) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool fits = std::isalnum(static_cast<unsigned char>(lower)) != 0 && lower > 0;
    out += fits ? lower : '-';
  }
  while (!out.empty() && out.front() == '-') out.erase(0, 1);
  return out.empty() ? "campaign" : out;
}

void put_commit(std::string& text, const std::string& commit) {
  for (std::size_t at = text.find(kCommitPlaceholder); at != std::string::npos;
       at = text.find(kCommitPlaceholder, at))
    text.replace(at, kCommitPlaceholder.size(), commit);
}

Status init(const std::string& where) {
  const fs::path dir = fs::absolute(where).lexically_normal();
  std::error_code ec;
  if (fs::exists(dir, ec) && !fs::is_empty(dir, ec))
    return Error{Errc::kConflict, dir.string() + " is not empty"};
  PROCTOR_CHECK_OK(make_dirs(dir));
  auto files = scaffold_files(id_from(dir.has_filename() ? dir : dir.parent_path()));
  const auto write_all = [&]() -> Status {
    for (const auto& [path, text] : files) {
      PROCTOR_CHECK_OK(make_dirs((dir / path).parent_path()));
      PROCTOR_CHECK_OK(write_file(dir / path, text, Durability::kLazy, kOpenFile));
    }
    return ok_status();
  };
  PROCTOR_CHECK_OK(write_all());
  CommandSpec make_repo;
  make_repo.argv = {"sh", "make-repo.sh"};
  make_repo.cwd = dir;
  PROCTOR_TRY(std::string commit, run_for_output(make_repo));
  while (!commit.empty() && std::isspace(static_cast<unsigned char>(commit.back())) != 0)
    commit.pop_back();
  for (auto& [path, text] : files) put_commit(text, commit);
  PROCTOR_CHECK_OK(write_all());
  std::printf("%s is ready:\n", dir.c_str());
  for (const auto& [path, text] : files) std::printf("  %s\n", path.c_str());
  std::printf("Next: proctor check %s && proctor run %s\n", where.c_str(), where.c_str());
  return ok_status();
}

}  // namespace

void add_init(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("init", "scaffold a commented campaign that runs as it is",
                         "Example:\n  proctor init demo && proctor run demo");
  auto dir = std::make_shared<std::string>();
  command.add_option("DIR", *dir, "a new or empty folder; its name becomes the campaign's")
      .required();
  command.callback([=, &exit_code] { exit_code = code_of(init(*dir)); });
}

}  // namespace proctor::cli
