#include "worker/workspace/apply.h"

#include "common/base/assert.h"
#include "common/base/limits.h"

namespace proctor {
namespace {

// info/attributes is stronger than every .gitattributes file: bytes stay bytes.
constexpr std::string_view kAttributes =
    "* -text -eol -crlf -filter -ident -working-tree-encoding -whitespace -diff -merge\n";
// A merge must be allowed to look into files.
constexpr std::string_view kMergeAttributes =
    "* -text -eol -crlf -filter -ident -working-tree-encoding -whitespace !diff !merge\n";

Status make_repository(const fs::path& dir, std::string_view attributes) {
  PROCTOR_CHECK_OK(make_dirs(dir / "objects" / "info"));
  PROCTOR_CHECK_OK(make_dirs(dir / "refs"));
  PROCTOR_CHECK_OK(make_dirs(dir / "info"));
  const auto put = [&](const char* name, std::string_view bytes) {
    return write_file(dir / name, bytes, Durability::kLazy);
  };
  PROCTOR_CHECK_OK(put("HEAD", "ref: refs/heads/none\n"));
  PROCTOR_CHECK_OK(put("config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"));
  return put("info/attributes", attributes);
}

Status told(const CommandOutcome& outcome) {
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

// The folder that a diff is applied to.
struct Target {
  const fs::path& dir;
  const OwnUser* user;
};

Status apply_as(const GitProgram& git, const fs::path& scratch, const Target& target,
                const char* context, const std::string& diff) {
  CommandSpec spec = git.command(scratch, {"apply", context, "--whitespace=nowarn", "-p1", "-"});
  (*spec.env)["GIT_WORK_TREE"] = target.dir.string();
  spec.cwd = target.dir;
  spec.stdin_bytes = diff;
  PROCTOR_TRY(const CommandOutcome outcome,
              target.user != nullptr ? target.user->run(spec) : run_command(spec));
  return told(outcome);
}

// git reads a patch until a binary part that makes no sense, says so, applies what came before and
// reports success: such a patch is asked about first, since all of it counts or nothing.
Status check_binary_parts(const GitProgram& git, const fs::path& scratch, const std::string& diff) {
  if (diff.find("GIT binary patch") == std::string::npos) return ok_status();
  CommandSpec spec = git.command(scratch, {"apply", "--numstat", "-p1", "-"});
  spec.cwd = scratch;
  spec.stdin_bytes = diff;
  spec.output_max = limits::kPatchBytes;
  PROCTOR_TRY(const CommandOutcome outcome, run_command(spec));
  PROCTOR_CHECK_OK(told(outcome));
  const std::string words = git_words(outcome);
  if (words.find("corrupt binary patch") == std::string::npos) return ok_status();
  return Error{Errc::kInvalid, "apply patch: " + words};
}

// The patch merged over the snapshot, as a diff that fits the snapshot exactly.  Nothing of the
// folder is read or written: blobs, an index and a diff of two trees are all there is.
Result<std::string> merged(const GitProgram& git, const MergeBase& base, const std::string& diff) {
  PROCTOR_TRY(const TempDir own, TempDir::create("merge", base.work));
  PROCTOR_CHECK_OK(make_repository(own.path(), kMergeAttributes));
  PROCTOR_CHECK_OK(write_file(own.path() / "objects/info/alternates",
                              base.objects.string() + "\n" + base.others.string() + "\n",
                              Durability::kLazy));
  const auto run = [&](std::vector<std::string> args,
                       const std::string& input) -> Result<CommandOutcome> {
    CommandSpec spec = git.command(own.path(), std::move(args));
    (*spec.env)["GIT_INDEX_FILE"] = (own.path() / "index").string();
    spec.cwd = own.path();
    spec.stdin_bytes = input;
    spec.output_max = limits::kPatchBytes;
    return run_command(spec);
  };
  PROCTOR_TRY(const CommandOutcome read, run({"read-tree", base.tree.hex()}, ""));
  PROCTOR_CHECK_OK(told(read));
  PROCTOR_TRY(const CommandOutcome laid,
              run({"apply", "--3way", "--cached", "--whitespace=nowarn", "-p1", "-"}, diff));
  PROCTOR_CHECK_OK(told(laid));
  PROCTOR_TRY(const CommandOutcome out,
              run({"diff-index", "--cached", "-p", "--binary", "--full-index", "--no-renames",
                   "--no-ext-diff", "--no-textconv", base.tree.hex()},
                  ""));
  PROCTOR_CHECK_OK(told(out));
  if (out.output_cut) return Error{Errc::kInvalid, "apply patch: the merged patch is too large"};
  return out.out;
}

}  // namespace

std::string_view to_string(ApplyRung rung) {
  switch (rung) {
    case ApplyRung::kExact:
      return "exact";
    case ApplyRung::kWhitespace:
      return "whitespace";
    case ApplyRung::kThreeWay:
      return "three_way";
  }
  PROCTOR_ASSERT(false);
}

Status prepare_apply(const fs::path& scratch) {
  return make_repository(scratch, kAttributes);
}

Result<AppliedPatch> apply_diff(const GitProgram& git, const fs::path& scratch, const fs::path& dir,
                                const MergeBase& base, const std::string& diff,
                                const OwnUser* user) {
  const Target target{dir, user};
  AppliedPatch out;
  if (diff.empty()) return out;
  PROCTOR_CHECK_OK(check_binary_parts(git, scratch, diff));
  const Status exact = apply_as(git, scratch, target, "--no-ignore-whitespace", diff);
  if (exact.ok()) return out;
  if (exact.error().code != Errc::kInvalid) return exact.error();
  out.tried.push_back(exact.error().detail);

  out.rung = ApplyRung::kWhitespace;
  const Status loose = apply_as(git, scratch, target, "--ignore-whitespace", diff);
  if (loose.ok()) return out;
  if (loose.error().code != Errc::kInvalid) return loose.error();
  out.tried.push_back(loose.error().detail);

  out.rung = ApplyRung::kThreeWay;
  const Result<std::string> fitting = merged(git, base, diff);
  Status merge = fitting.ok() ? apply_as(git, scratch, target, "--no-ignore-whitespace", *fitting)
                              : Status(fitting.error());
  if (merge.ok()) return out;
  if (merge.error().code != Errc::kInvalid) return std::move(merge).error();
  // What is wrong with it as it is tells most.
  return exact.error();
}

}  // namespace proctor
