#include "worker/workspace/apply.h"

namespace proctor {
namespace {

// info/attributes is stronger than every .gitattributes file: bytes stay bytes.
constexpr std::string_view kAttributes =
    "* -text -eol -crlf -filter -ident -working-tree-encoding -whitespace -diff -merge\n";

}  // namespace

Status prepare_apply(const fs::path& scratch) {
  PROCTOR_CHECK_OK(make_dirs(scratch / "objects"));
  PROCTOR_CHECK_OK(make_dirs(scratch / "refs"));
  PROCTOR_CHECK_OK(make_dirs(scratch / "info"));
  const auto put = [&](const char* name, std::string_view bytes) {
    return write_file(scratch / name, bytes, Durability::kLazy);
  };
  PROCTOR_CHECK_OK(put("HEAD", "ref: refs/heads/none\n"));
  PROCTOR_CHECK_OK(put("config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"));
  return put("info/attributes", kAttributes);
}

Status apply_diff(const GitProgram& git, const fs::path& scratch, const fs::path& dir,
                  const std::string& diff) {
  if (diff.empty()) return ok_status();
  CommandSpec spec = git.command(scratch, {"apply", "--whitespace=nowarn", "-p1", "-"});
  (*spec.env)["GIT_WORK_TREE"] = dir.string();
  spec.cwd = dir;
  spec.stdin_bytes = diff;
  PROCTOR_TRY(const CommandOutcome outcome, run_command(spec));
  if (outcome.success()) return ok_status();
  const std::string words = git_words(outcome);
  if (words.find("No space left") != std::string::npos) {
    return Error{Errc::kExhausted, "apply patch: " + words};
  }
  if (outcome.timed_out || outcome.signal != 0 ||
      words.find("unable to write file") != std::string::npos) {
    return Error{Errc::kUnavailable, "apply patch: " + words};
  }
  return Error{Errc::kInvalid, "apply patch: " + words};
}

}  // namespace proctor
