#pragma once
// A git repository for benches that run real campaigns.
#include <string>
#include <vector>

#include "common/base/subprocess.h"
#include "tests/bench/bench_support.h"

namespace proctor::bench {

// Makes a repository of what is in `dir`, with one commit: its name.
inline std::string commit_all(const fs::path& dir) {
  constexpr std::size_t kCommitLetters = 40;
  const auto git = [&](std::vector<std::string> args) {
    CommandSpec spec;
    spec.argv = {"git", "-c", "user.name=b", "-c", "user.email=b@b"};
    spec.argv.insert(spec.argv.end(), args.begin(), args.end());
    spec.cwd = dir;
    return must(run_for_output(spec));
  };
  git({"init", "-q"});
  git({"add", "-A"});
  git({"commit", "-qm", "all"});
  return git({"rev-parse", "HEAD"}).substr(0, kCommitLetters);
}

}  // namespace proctor::bench
