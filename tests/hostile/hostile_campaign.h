#pragma once
// A campaign whose methods are hostile agents, one run each, and what must become of every one.
#include <map>
#include <string>
#include <vector>

#include "tests/hostile/kind.h"
#include "tests/support/campaign_scene.h"

namespace proctor::testing {

struct HostileAgent {
  std::string name;
  std::string script;                              // run by sh in the workspace
  std::string outcome, termination = "completed";  // empty: it depends, but it counts
  std::string violation{};                         // one that must be recorded
  std::string restored{};  // what a command left there was put back before a check: the event
};

// A scene on this kind of sandbox: files of the repository, then the contract's lines after its
// identity (environment, setup, checks, policy).  Agents are files of their methods.  What an agent
// "honest" makes of the repository is the reference patch, and noop and reference run beside it.
std::unique_ptr<CampaignScene> hostile_scene(const Kind& kind,
                                             const std::vector<HostileAgent>& agents,
                                             const std::map<std::string, std::string>& files,
                                             const std::string& contract);

// Runs it: every verdict as foretold, noop and reference what they must be and without a violation,
// evidence that verifies, a terminal and a report without a
// control character, and nothing left on the machine.
void run_hostile(const CampaignScene& scene, const std::vector<HostileAgent>& agents);

}  // namespace proctor::testing
