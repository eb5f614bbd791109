#include "coordinator/cli/cvdp_heavy.h"

#include <cstdlib>

#include "common/base/apply.h"
#include "common/base/digest.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"

namespace proctor::cli {
namespace {

// A dataset names the place: nothing that git would run, no questions on the terminal.
Result<CommandOutcome> guarded_git(const fs::path& repository, std::vector<std::string> args) {
  CommandSpec spec;
  spec.argv = {"env", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=https:http:ssh:git:file", "git",
               "--git-dir=" + repository.string()};
  spec.argv.insert(spec.argv.end(), args.begin(), args.end());
  spec.timeout = std::chrono::minutes(60);
  return run_command(spec);
}

bool exists(const std::string& path) {
  std::error_code ec;
  return fs::exists(path, ec);
}

}  // namespace

// Another record's repository may have brought the commit: this one must have it too.
Status HeavyRepos::fetch(const std::string& from, const std::string& commit) {
  const std::string refs = "refs/heavy/" + sha256(from).short_hex() + "/";
  // A folder gives single commits only where it is told to; a bundle has its refs alone.
  PROCTOR_TRY(
      const CommandOutcome alone,
      guarded_git(repository_, {"fetch", "--quiet", "--no-tags", "--depth", "1", "--upload-pack",
                                "git -c uploadpack.allowAnySHA1InWant=true upload-pack", "--", from,
                                "+" + commit + ":" + refs + commit}));
  if (alone.success()) return ok_status();
  PROCTOR_TRY(const CommandOutcome all,
              guarded_git(repository_,
                          {"fetch", "--quiet", "--no-tags", "--", from, "+refs/*:" + refs + "*"}));
  if (!all.success())
    return Error{Errc::kUnavailable,
                 "git fetch " + printable(from) + ": " + printable(all.describe(), 500)};
  PROCTOR_TRY(const CommandOutcome holds,
              guarded_git(repository_, {"for-each-ref", "--count=1", "--contains", commit, refs}));
  if (!holds.success() || holds.out.empty())
    return Error{Errc::kInvalid, printable(from) + " has no commit " + commit};
  return ok_status();
}

Status HeavyRepos::applies(const std::string& tree, const std::string& diff) const {
  if (diff.empty()) return ok_status();
  PROCTOR_TRY(const TempDir scratch, TempDir::create("proctor-cvdp"));
  const fs::path git = scratch.path() / "git", index = scratch.path() / "index",
                 objects = fs::absolute(repository_) / "objects";
  PROCTOR_CHECK_OK(prepare_apply(git, objects, tree, index));
  const auto applied =
      apply_diff(git, {{}, nullptr, index}, {objects, {}, tree, scratch.path()}, diff);
  if (!applied.ok()) return in_context("its patch does not apply to the commit", applied.error());
  return ok_status();
}

Result<std::string> HeavyRepos::payload(const cvdp::HeavySource& source) {
  const std::string key = source.repository + "\n" + source.commit;
  if (const auto it = trees_.find(key); it != trees_.end()) return it->second;
  PROCTOR_TRY(std::string from, cvdp::resolve_reference(source.repository, base_, exists));
  const std::string folder = cvdp::payload_folder(from);
  if (!keep_http_ && !exists(from)) from = cvdp::github_over_ssh(from);
  PROCTOR_CHECK_OK(fetch(from, source.commit));
  PROCTOR_TRY(
      const CommandOutcome tree,
      guarded_git(repository_, {"rev-parse", "--verify", "--quiet",
                                source.commit + (folder.empty() ? "^{tree}" : ":" + folder)}));
  std::string id = tree.out;
  while (id.ends_with('\n')) id.pop_back();
  if (!tree.success() || id.empty())
    return Error{Errc::kInvalid,
                 "commit " + source.commit + " of " + printable(from) + " has no folder " + folder};
  trees_[key] = id;
  return id;
}

}  // namespace proctor::cli
