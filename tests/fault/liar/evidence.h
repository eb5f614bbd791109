#pragma once
// Run directories as workers make them, and archives of them: what an honest worker sends, and what
// a liar sends that looks like it.
#include "common/base/files.h"
#include "common/wire/messages.h"
#include "tests/fault/liar/campaign.h"

namespace proctor::liar {

struct Evidence {
  std::string archive;                  // its bytes
  wire::ResultMessage result;           // that names it
  std::map<std::string, Digest> files;  // of the run directory, by path
};

struct Claim {
  AttemptId attempt;
  Epoch epoch;
  std::string campaign = kCampaignId;
  RunOutcome outcome = RunOutcome::kFailure;
  std::string rationale;
  Usage usage;
  bool without_rules = false;  // a manifest that lacks those of its verdict, as older workers' do
};
// Made below `scratch`, which is left empty.
Result<Evidence> make_evidence(const Played& played, const Claim& claim, const fs::path& scratch);

// Files below `dir` and their digests; nothing: it is not there or holds something else.
Result<std::map<std::string, Digest>> digests_of(const fs::path& dir);

}  // namespace proctor::liar
