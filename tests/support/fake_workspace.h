#pragma once
// A workspace for tests of agents: takes patches and files; anything else would be a surprise.
#include <map>
#include <string>
#include <vector>

#include "worker/workspace/workspace.h"

namespace proctor::testing {

class FakeWorkspace final : public Workspace {
 public:
  WorkspaceKind kind() const override { return WorkspaceKind::kCopy; }
  const fs::path& dir() const override { return dir_; }
  Result<std::string> docker_volume() override { return surprise(); }
  Result<fs::path> surrender() override { return surprise(); }
  Result<bool> lay_below(const SetupLayer&) override { return surprise(); }
  Result<Patch> extract_patch(std::size_t, const std::vector<std::string>&) override {
    return surprise();
  }
  Result<AppliedPatch> apply(const std::string& diff) override {
    applied.push_back(diff);
    if (refuse) return Error{Errc::kInvalid, "hunk 1 does not match"};
    return AppliedPatch{rung};
  }
  Status put_file(const std::string& path, std::string_view bytes, std::uint32_t, Way) override {
    if (path.starts_with(".git/")) return Error{Errc::kInvalid, "inside .git"};
    files[path] = bytes;
    return ok_status();
  }
  Written written() const override { return {}; }
  Result<std::vector<std::string>> restore_again(
      const std::vector<std::string>&, const MadeUnder&,
      const std::map<std::string, PlacedFile>&) override {
    return std::vector<std::string>{};
  }
  Result<std::vector<std::string>> restore_copy(const TreeCopy&, const std::vector<std::string>&,
                                                const MadeUnder&,
                                                const std::map<std::string, PlacedFile>&) override {
    return std::vector<std::string>{};
  }
  Result<std::vector<std::string>> restore_git(const MadeUnder&,
                                               const std::vector<SeenAt>&) override {
    return std::vector<std::string>{};
  }
  Result<MadeUnder> made_under(const std::vector<std::string>&, const fs::path&) override {
    return MadeUnder{};
  }
  Result<std::vector<std::string>> changed_under(const std::vector<std::string>&) override {
    return std::vector<std::string>{};
  }
  Status whole(TreeMark::Look) const override { return ok_status(); }
  Result<std::vector<std::string>> restore(const std::vector<std::string>&,
                                           const std::vector<std::string>&) override {
    return surprise();
  }

  std::vector<std::string> applied;
  std::map<std::string, std::string> files;
  bool refuse = false;
  ApplyRung rung = ApplyRung::kExact;

 private:
  static Error surprise() { return {Errc::kCorrupt, "an agent has no business here"}; }
  fs::path dir_ = "/nowhere";
};

}  // namespace proctor::testing
