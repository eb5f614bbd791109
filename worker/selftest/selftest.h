#pragma once
// `proctor-worker selftest`: what this host offers, who keeps which limit, whether the containment
// suite holds, and the answer to one question: may untrusted agents run here?  Blocking, under a
// minute; leaves nothing.  Needs no engine, no image and no root: what is missing is said.
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "common/base/fields.h"
#include "worker/selftest/containment.h"

namespace proctor {
struct SelftestOptions {
  std::string docker_socket;
  std::string oci_runtime;  // as SandboxOptions has it
  fs::path scratch;         // where to make a folder for it; empty: the system's place for such
};

struct KindReport {
  std::string kind;                           // "bubblewrap"
  std::string missing;                        // why it is not to be had here; empty: it is
  std::map<std::string, std::string> limits;  // who keeps them: "cgroup1", "monitor", "none"
  struct Case {
    std::string name, promise;
    ContainmentResult result;
  };
  std::vector<Case> cases;
  bool offered() const { return missing.empty(); }
  bool contained() const;    // offered, and every attack was tried and failed
  std::string told() const;  // a line: what it is worth, what escaped, what to do
};

void fields(auto& v, Is<KindReport::Case> auto& c) {
  v("name", c.name);
  v("promise", c.promise);
  v("verdict", c.result.verdict);
  v("detail", c.result.detail);
  v("ms", c.result.took);
}
void fields(auto& v, Is<KindReport> auto& kind) {
  v("kind", kind.kind);
  v("missing", kind.missing);
  v("limits", kind.limits);
  v.follows("contained", kind.contained());
  v.follows("told", kind.told());
  v("cases", kind.cases);
}

struct SelftestReport {
  bool root = false;
  std::string cgroups;     // "version 1", "version 2", "none"
  std::string workspaces;  // the kinds that work, the one that is used first; why others do not
  std::string disks;       // "can be bounded ...", or why they cannot
  std::vector<KindReport> kinds;
  std::chrono::milliseconds took{0};
  // Some kind is offered, and every kind that is contains all: a run may get any of them.
  bool untrusted_allowed() const;
  std::string verdict() const;  // the last line
};
void fields(auto& v, Is<SelftestReport> auto& report) {
  v("root", report.root);
  v("control_groups", report.cgroups);
  v("workspaces", report.workspaces);
  v("disks", report.disks);
  v("kinds", report.kinds);
  v("ms", report.took);
  v.follows("untrusted_agents", report.untrusted_allowed());
  v.follows("verdict", report.verdict());
}

Result<SelftestReport> run_selftest(const SelftestOptions& options);
std::string selftest_text(const SelftestReport& report);
}  // namespace proctor
