#include "common/base/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "common/base/git_program.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/text.h"

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

Error misfit(const std::string& why) {
  return {Errc::kInvalid, "apply patch: " + why};
}

Status told(const CommandOutcome& outcome) {
  if (outcome.success()) return ok_status();
  const std::string words = git_words(outcome);
  if (words.find("No space left") != std::string::npos)
    return Error{Errc::kExhausted, "apply patch: " + words};
  if (outcome.timed_out || outcome.signal != 0 ||
      words.find("unable to write file") != std::string::npos)
    return Error{Errc::kUnavailable, "apply patch: " + words};
  return misfit(words);
}

// One patch on its way to one target.
struct Patching {
  const fs::path& scratch;
  const PatchTarget& target;
  const std::string& diff;
  std::string strip;  // "-p1": names have a leading folder that the files do not

  Result<CommandOutcome> run(const std::string& patch, std::vector<std::string> args) const {
    args.insert(args.begin(), "apply");
    args.insert(args.end(), {"--whitespace=nowarn", "-"});
    CommandSpec spec = apply_git(scratch, std::move(args));
    spec.stdin_bytes = patch;
    spec.cwd = scratch;
    if (target.folder.empty()) {
      (*spec.env)["GIT_INDEX_FILE"] = target.index.string();
      spec.argv.emplace_back("--cached");
      return run_command(spec);
    }
    (*spec.env)["GIT_WORK_TREE"] = target.folder.string();
    spec.cwd = target.folder;
    return target.user != nullptr ? target.user->run(spec) : run_command(spec);
  }
  Status apply(const char* context) const { return apply(diff, {context, strip}); }
  Status apply(const std::string& patch, std::vector<std::string> args) const {
    PROCTOR_TRY(const CommandOutcome outcome, run(patch, std::move(args)));
    return told(outcome);
  }
};

// git reads a patch until a binary part that makes no sense, says so, applies what came before and
// reports success: such a patch is asked about first, since all of it counts or nothing.
Status check_binary_parts(const Patching& patch) {
  if (patch.diff.find("GIT binary patch") == std::string::npos) return ok_status();
  CommandSpec spec = apply_git(patch.scratch, {"apply", "--numstat", patch.strip, "-"});
  spec.cwd = patch.scratch;
  spec.stdin_bytes = patch.diff;
  spec.output_max = limits::kPatchBytes;
  PROCTOR_TRY(const CommandOutcome outcome, run_command(spec));
  PROCTOR_CHECK_OK(told(outcome));
  const std::string words = git_words(outcome);
  if (words.find("corrupt binary patch") == std::string::npos) return ok_status();
  return misfit(words);
}

// The patch merged over the snapshot, as a diff that fits the snapshot exactly.  Nothing of the
// target is read or written: blobs, an index and a diff of two trees are all there is.
Result<std::string> merged(const Patching& patch, const MergeBase& base) {
  PROCTOR_TRY(const TempDir own, TempDir::create("merge", base.work));
  PROCTOR_CHECK_OK(make_repository(own.path(), kMergeAttributes));
  std::string alternates = base.objects.string() + "\n";
  if (!base.others.empty()) alternates += base.others.string() + "\n";
  PROCTOR_CHECK_OK(
      write_file(own.path() / "objects/info/alternates", alternates, Durability::kLazy));
  const auto run = [&](std::vector<std::string> args,
                       const std::string& input) -> Result<CommandOutcome> {
    CommandSpec spec = apply_git(own.path(), std::move(args));
    (*spec.env)["GIT_INDEX_FILE"] = (own.path() / "index").string();
    spec.cwd = own.path();
    spec.stdin_bytes = input;
    spec.output_max = limits::kPatchBytes;
    return run_command(spec);
  };
  PROCTOR_TRY(const CommandOutcome read, run({"read-tree", base.tree}, ""));
  PROCTOR_CHECK_OK(told(read));
  PROCTOR_TRY(
      const CommandOutcome laid,
      run({"apply", "--3way", "--cached", "--whitespace=nowarn", patch.strip, "-"}, patch.diff));
  PROCTOR_CHECK_OK(told(laid));
  PROCTOR_TRY(const CommandOutcome out,
              run({"diff-index", "--cached", "-p", "--binary", "--full-index", "--no-renames",
                   "--no-ext-diff", "--no-textconv", base.tree},
                  ""));
  PROCTOR_CHECK_OK(told(out));
  if (out.output_cut) return misfit("the merged patch is too large");
  if (out.out.empty()) return misfit("it changes nothing: all of it is there already");
  return out.out;
}

// The line at which `text` begins, and the text after it.
std::string_view line_of(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}
std::string_view after_line(std::string_view text) {
  return text.substr(std::min(text.find('\n'), text.size() - 1) + 1);
}

bool begins_file(std::string_view text) {
  return text.starts_with("--- ") && after_line(text).starts_with("+++ ");
}

struct Counts {
  std::uint64_t before = 0, after = 0;
  bool operator==(const Counts&) const = default;
  void add(char kind) {
    if (kind != '+' && kind != '\\') ++before;
    if (kind != '-' && kind != '\\') ++after;
  }
};

// Is this a line of a hunk, and not the next file's header or a mail's signature?
bool is_in_hunk(std::string_view text) {
  if (text.empty() || std::string_view(" +-\\").find(text[0]) == std::string_view::npos)
    return false;
  const std::string_view line = line_of(text);
  return !begins_file(text) && line != "-- " && line != "--";
}

// Does the hunk end where its header says, as git counts?
bool fits(std::string_view body, const Counts& said) {
  Counts n;
  while (n.before < said.before || n.after < said.after) {
    if (body.empty() || std::string_view(" +-\\\n").find(body[0]) == std::string_view::npos)
      return false;
    n.add(body[0]);
    body = after_line(body);
  }
  if (body.starts_with('\\')) body = after_line(body);
  return n == said && !is_in_hunk(body);
}

// An empty line is one of context that lost its space, if more of the hunk follows.
Counts count(std::string_view body) {
  Counts n, sure;
  for (; !body.empty(); body = after_line(body)) {
    if (body[0] != '\n' && !is_in_hunk(body)) break;
    n.add(body[0]);
    if (body[0] != '\n') sure = n;
  }
  return sure;
}

struct HunkHeader {
  std::string_view before, after, rest;  // where it begins, as written; what follows the counts
  Counts said{1, 1};
};

bool eat_range(std::string_view& text, std::string_view& begin, std::uint64_t& lines) {
  begin = text.substr(0, text.find_first_not_of("0123456789"));
  text.remove_prefix(begin.size());
  return !begin.empty() && (!take_word(text, ",") || take_number(text, lines));
}

std::optional<HunkHeader> hunk_header(std::string_view text) {
  HunkHeader h;
  h.rest = text.substr(0, text.find('\n'));
  if (!take_word(h.rest, "@@ -") || !eat_range(h.rest, h.before, h.said.before) ||
      !take_word(h.rest, " +") || !eat_range(h.rest, h.after, h.said.after) ||
      !h.rest.starts_with(" @@"))
    return std::nullopt;
  return h;
}

// The name that both sides of the first file have, as in a diff without prefixes; else empty.
std::string_view one_name(std::string_view diff) {
  constexpr std::string_view kGit = "diff --git ", kNone = "/dev/null";
  const auto name = [](std::string_view text) {
    const std::string_view line = line_of(text).substr(4);
    return line.substr(0, line.find('\t'));
  };
  for (std::string_view rest = diff; !rest.empty(); rest = after_line(rest)) {
    if (rest.starts_with(kGit)) {
      const std::string_view both = line_of(rest).substr(kGit.size());
      const std::string_view half = both.substr(0, both.size() / 2);
      return both.ends_with(half) && both.size() % 2 == 1 && both[half.size()] == ' '
                 ? half
                 : std::string_view();
    }
    if (!begins_file(rest)) continue;
    const std::string_view a = name(rest), b = name(after_line(rest));
    const std::string_view made = a == kNone ? b : a;
    if (a == b) return a;
    return (a == kNone || b == kNone) && made.find('/') == std::string_view::npos
               ? made
               : std::string_view();
  }
  return {};
}

// Names of git's have a leading "a/" and "b/"; those of `diff -u` and of git without prefixes are
// the files' own.
Result<std::string> strip_of(const Patching& patch) {
  const std::string name(one_name(patch.diff));
  if (name.empty()) return std::string("-p1");
  const auto there = [&](const std::string& path) -> Result<bool> {
    std::error_code ec;
    if (!patch.target.folder.empty())
      return fs::exists(fs::symlink_status(patch.target.folder / path, ec));
    CommandSpec spec = apply_git(patch.scratch, {"ls-files", "--error-unmatch", "--", path});
    (*spec.env)["GIT_INDEX_FILE"] = patch.target.index.string();
    PROCTOR_TRY(const CommandOutcome outcome, run_command(spec));
    return outcome.success();
  };
  PROCTOR_TRY(const bool whole, there(name));
  if (whole) return std::string("-p0");
  const std::size_t folder = name.find('/');
  if (folder == std::string::npos) return std::string("-p0");
  PROCTOR_TRY(const bool below, there(name.substr(folder + 1)));
  return std::string(below || name.starts_with("a/") || name.starts_with("b/") ? "-p1" : "-p0");
}

// True if the patch changes the commit of a submodule: no file, and so nothing of a workspace.
bool moves_submodule(std::string_view diff) {
  constexpr std::string_view kMode = "160000";
  for (std::size_t at = 0; (at = diff.find(kMode, at)) != std::string_view::npos;
       at += kMode.size()) {
    const std::size_t begin = diff.rfind('\n', at) + 1;  // npos + 1 is the first byte
    const std::string_view line = line_of(diff.substr(begin));
    if (line.ends_with(kMode) &&
        std::ranges::any_of(
            std::array{"index ", "old mode ", "new mode ", "new file mode ", "deleted file mode "},
            [&](const char* word) { return line.starts_with(word); }))
      return true;
  }
  return false;
}

// The fault of the patch as it is tells most, with a hint where there is one.
Error refusal(const Patching& patch, const Error& exact) {
  std::string why = exact.detail;
  const Result<CommandOutcome> back = patch.run(patch.diff, {"-R", "--check", patch.strip});
  if (back.ok() && back->success()) why += "; it fits when it is reversed";
  if (patch.diff.find("\x1b[") != std::string::npos)
    why += "; it has codes of colours (git diff --no-color makes none)";
  return Error{Errc::kInvalid, std::move(why)};
}
}  // namespace

CommandSpec apply_git(const fs::path& git_dir, std::vector<std::string> args) {
  CommandSpec spec = guarded_git(std::move(args), "/dev/null",
                                 {{"safe.directory", "*"},
                                  {"core.hooksPath", "/dev/null"},
                                  {"core.fsmonitor", "false"},
                                  {"core.autocrlf", "false"},
                                  {"core.protectNTFS", "false"},
                                  {"core.protectHFS", "false"}});
  spec.env->insert({{"GIT_LITERAL_PATHSPECS", "1"}, {"GIT_DIR", git_dir.string()}});
  return spec;
}

std::string mended_patch(std::string diff, std::vector<std::string>& mends) {
  if (!diff.empty() && diff.back() != '\n') {
    diff += '\n';
    mends.emplace_back("its last newline was missing");
  }
  std::string out;
  std::size_t copied = 0, number = 0;
  for (std::string_view rest = diff; !rest.empty(); rest = after_line(rest)) {
    ++number;
    const std::optional<HunkHeader> header = hunk_header(rest);
    if (!header || fits(after_line(rest), header->said)) continue;
    const Counts n = count(after_line(rest));
    if (n == header->said) continue;  // git says what is wrong
    const std::size_t at = diff.size() - rest.size();
    out.append(diff, copied, at - copied);
    out += fmt::format("@@ -{},{} +{},{}{}", header->before, n.before, header->after, n.after,
                       header->rest);
    copied = at + std::min(rest.find('\n'), rest.size());
    mends.push_back(fmt::format("the hunk header of line {} counted {} and {} lines, not {} and {}",
                                number, header->said.before, header->said.after, n.before,
                                n.after));
  }
  if (copied == 0) return diff;
  return out.append(diff, copied);
}

Status prepare_apply(const fs::path& scratch) {
  return make_repository(scratch, kAttributes);
}

Status prepare_apply(const fs::path& scratch, const fs::path& objects, const std::string& commit,
                     const fs::path& index) {
  PROCTOR_CHECK_OK(prepare_apply(scratch));
  PROCTOR_CHECK_OK(
      write_file(scratch / "objects/info/alternates", objects.string() + "\n", Durability::kLazy));
  CommandSpec spec = apply_git(scratch, {"read-tree", commit});
  (*spec.env)["GIT_INDEX_FILE"] = index.string();
  PROCTOR_CHECK_OK(run_for_output(spec));
  return ok_status();
}

Result<AppliedPatch> apply_diff(const fs::path& scratch, const PatchTarget& target,
                                const MergeBase& base, const std::string& diff) {
  AppliedPatch out;
  if (diff.empty()) return out;
  if (moves_submodule(diff))
    return misfit(
        "it moves the commit of a submodule, which changes no file: make it of the "
        "submodule's files (with repository.submodules: true)");
  const std::string whole = mended_patch(diff, out.tried);
  Patching patch{scratch, target, whole, "-p1"};
  PROCTOR_TRY(patch.strip, strip_of(patch));
  PROCTOR_CHECK_OK(check_binary_parts(patch));
  const Status exact = patch.apply("--no-ignore-whitespace");
  if (exact.ok()) return out;
  if (exact.error().code != Errc::kInvalid) return exact.error();
  out.tried.push_back(exact.error().detail);

  out.rung = ApplyRung::kWhitespace;
  const Status loose = patch.apply("--ignore-whitespace");
  if (loose.ok()) return out;
  if (loose.error().code != Errc::kInvalid) return loose.error();
  out.tried.push_back(loose.error().detail);

  out.rung = ApplyRung::kThreeWay;
  const Result<std::string> fitting = merged(patch, base);
  Status merge = fitting.ok() ? patch.apply(*fitting, {"--no-ignore-whitespace", "-p1"})
                              : Status(fitting.error());
  if (merge.ok()) return out;
  if (merge.error().code != Errc::kInvalid) return std::move(merge).error();
  return refusal(patch, exact.error());
}
}  // namespace proctor
