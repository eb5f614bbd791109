#pragma once
// The command line of `proctor cvdp run` and `selfcheck`: our options, and upstream's under their
// own names; those that do nothing here, or nothing there, are refused with a sentence.
// Private to the program.  Source: CVDP 2.1, 2.4.
#include <string>
#include <vector>

#include "coordinator/cvdp/run/answers.h"
#include "coordinator/cvdp/run/run_work.h"

namespace proctor::cli {
struct CvdpFlags {
  std::string file, filename;
  std::string prefix = "work";
  CvdpPlan plan;
  std::uint64_t harness_seconds = 600, agent_seconds = 600;
  bool golden = false, no_patch = false, llm = false;
  AgentFlags agent;
  std::string verif_eda, license_network;
  ModelFlags model;
  bool force_agentic = false, force_copilot = false;
  // The given options that cannot be had, with the reason.
  std::vector<std::string> refused;
};

// Options that `run` and `selfcheck` share.
void add_cvdp_common_flags(Command command, CvdpFlags& flags);
// The rest of upstream's.
void add_cvdp_upstream_flags(Command command, CvdpFlags& flags);
// Everything but the modes.  With --force-... the dataset is transformed into the prefix.
Result<CvdpPlan> plan_of(const CvdpFlags& flags);
// The one way to work that the flags of `run` ask for.
Result<CvdpMode> mode_of(const CvdpFlags& flags, const CvdpPlan& plan);
}  // namespace proctor::cli
