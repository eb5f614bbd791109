#pragma once
// Harnesses run by `docker compose` itself, version 2 or 1, with upstream's command line: what the
// other engines are compared with, and the way for compose files beyond their subset.  Each service
// of each problem is a project of its own, removed when it has ended (containers, networks,
// volumes, images built for it).  No network leads out unless it is asked for; nothing is pulled.
// Private to the program.  Source: CVDP 5.1, 5.2, 5.4.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "coordinator/cvdp/report/results.h"
#include "coordinator/cvdp/run/campaign.h"

namespace proctor::cli {
using HarnessResults = std::map<std::string, std::vector<cvdp::TestResult>>;  // by problem id

// The words compose is called by.  kNotFound: there is neither `docker compose` nor
// `docker-compose`.
Result<std::vector<std::string>> find_compose();

struct ComposeRequest {
  const ImportOptions& dataset;
  fs::path folder;  // upstream's prefix, prepared; logs go into it too
  std::uint32_t at_once = 1;
  std::function<bool(const cvdp::Record&)> wanted;  // of those the selection holds
};
// A problem that could not be run has one failed test that says why.
Result<HarnessResults> run_by_compose(const ComposeRequest& request);
}  // namespace proctor::cli
