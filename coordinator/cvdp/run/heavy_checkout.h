#pragma once
// The repositories of heavy records: the payload of a commit becomes a tree of the campaign's own
// repository, from where workers fetch it like any other context.  Each commit is fetched once,
// alone where its server gives it.  Private to the program.  Source: CVDP 7.
#include <map>
#include <string>

#include "common/base/git_program.h"
#include "coordinator/cvdp/dataset/heavy.h"

namespace proctor::cli {

class HeavyRepos {
 public:
  // `base`: CVDP_HEAVY_REPOS_PATH.  Unless `keep_http`, GitHub is asked over ssh, as upstream does.
  HeavyRepos(fs::path repository, std::string base, bool keep_http)
      : repository_(std::move(repository)), base_(std::move(base)), keep_http_(keep_http) {}
  // The tree's id.  kInvalid: no such folder in that commit; else what git says.
  Result<std::string> payload(const cvdp::HeavySource& source);
  // kInvalid: git would refuse the diff on that tree.
  Status applies(const std::string& tree, const std::string& diff) const;

 private:
  Status fetch(const GitProgram& git, const GitSource& from, const std::string& commit);
  fs::path repository_;
  std::string base_;
  bool keep_http_;
  std::map<std::string, std::string> trees_;  // reference and commit -> tree
};

}  // namespace proctor::cli
