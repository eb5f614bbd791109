#include "coordinator/cvdp/run/heavy_checkout.h"

#include <cstdlib>

#include "common/base/apply.h"
#include "common/base/digest.h"
#include "common/base/text.h"

namespace proctor::cli {
namespace {

bool exists(const std::string& path) {
  std::error_code ec;
  return fs::exists(path, ec);
}

}  // namespace

// Another record's repository may have brought the commit: this one must have it too.
Status HeavyRepos::fetch(const GitProgram& git, const GitSource& from, const std::string& commit) {
  const std::string refs = "refs/heavy/" + sha256(from.location).short_hex() + "/";
  const auto fetched = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"fetch", "--quiet", "--no-tags"});
    return git.run(git.command(fs::absolute(repository_), std::move(args), &from));
  };
  const std::string remote = GitProgram::kRemote;
  if (fetched({"--depth", "1", remote, "+" + commit + ":" + refs + commit}).ok())
    return ok_status();
  // A bundle has its refs alone.
  if (const auto all = fetched({remote, "+refs/*:" + refs + "*"}); !all.ok())
    return in_context(printable(from.shown), all.error());
  const auto holds = git.run(git.command(
      fs::absolute(repository_), {"for-each-ref", "--count=1", "--contains", commit, refs}));
  if (!holds.ok() || holds->empty())
    return Error{Errc::kInvalid, printable(from.shown) + " has no commit " + commit};
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
  PROCTOR_TRY(const TempDir home, TempDir::create("proctor-cvdp"));
  PROCTOR_TRY(const GitProgram git, GitProgram::create(home.path()));
  PROCTOR_TRY(const GitSource place, parse_source(from, fs::current_path()));
  PROCTOR_CHECK_OK(fetch(git, place, source.commit));
  const auto tree = git.run(git.command(
      fs::absolute(repository_), {"rev-parse", "--verify", "--quiet",
                                  source.commit + (folder.empty() ? "^{tree}" : ":" + folder)}));
  std::string id = tree.ok() ? *tree : "";
  while (id.ends_with('\n')) id.pop_back();
  if (id.empty())
    return Error{Errc::kInvalid, "commit " + source.commit + " of " + printable(place.shown) +
                                     " has no folder " + folder};
  trees_[key] = id;
  return id;
}

}  // namespace proctor::cli
