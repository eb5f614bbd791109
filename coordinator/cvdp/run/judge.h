#pragma once
// Answers in words, judged by a model: each judgement is a run of a campaign of its own beside the
// first, PREFIX/judging, so that it is metered, kept as evidence and gone on with like any other.
// Private to the program.  Source: CVDP 8.5.
#include <map>
#include <string>
#include <vector>

#include "coordinator/cli/campaign_run.h"
#include "coordinator/cvdp/dataset/import.h"

namespace proctor::cli {

struct JudgeOptions {
  fs::path folder;     // PREFIX/judging
  std::string method;  // as campaign.yaml has it, in JSON
  std::string run_usd = "1.00";
  std::uint64_t global_usd = 1'000'000;
  std::string prices;  // file; empty: none
  RunOptions run;      // how; its folder is filled in
  bool reports_only = false;
};
struct Judged {
  int exit_code = 0;
  bool stopped = false;
  // By the case's name; absent where its run has not ended.
  std::map<std::string, Result<cvdp::Judgement>> judgements;
};
// Cases that were judged are not judged again.  kConflict: the folder has other cases.
Result<Judged> judge_answers(const JudgeOptions& options,
                             const std::vector<cvdp::JudgeCase>& cases);

}  // namespace proctor::cli
