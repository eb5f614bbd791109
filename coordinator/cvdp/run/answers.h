#pragma once
// `proctor cvdp run --model ...`: single-shot models, prompts for elsewhere, answers from
// elsewhere, and a model as judge.  Private to the program.  Source: CVDP 2.1, 8.1, 8.6;
// docs/cvdp.md.
#include <map>
#include <string>
#include <vector>

#include "coordinator/cli/campaign_run.h"
#include "coordinator/cvdp/dataset/import.h"
#include "coordinator/cvdp/run/run_work.h"

namespace proctor::cli {
struct ModelFlags {
  std::string model;           // a name, local_export or local_import
  std::string responses_file;  // of the last two
  std::string answers;         // a file or a prefix to replay
  std::string judge;           // a model
  std::string url, key_variable, key_file, models_file;
  std::vector<std::string> program;
  std::string provider;
  std::uint32_t retries = 3;  // upstream's: beside the first call
  std::uint64_t max_output_tokens = 16'384;
  std::uint64_t timeout_seconds = 60;
};

void add_model_flags(Command command, ModelFlags& flags);
// nullopt: no model is named.  Its file of answers is read here.
Result<std::optional<CvdpMode>> model_mode(const ModelFlags& flags, const CvdpPlan& plan);
// Which of them do not go together.  kInvalid.
Status check_models(const ModelFlags& flags);
// How models are reached and who judges, into the plan.  `agents`: the model of an agent's gateway;
// empty: it has none.
Status take_models(const ModelFlags& flags, const std::vector<GatewayModel>& agents,
                   CvdpPlan& plan);

inline constexpr const char* kLocalExport = "local_export";
inline constexpr const char* kLocalImport = "local_import";
// {"id", "prompt", "system", "user"} a line.  It names the problems that no model is asked about.
Result<int> export_prompts(const CvdpPlan& plan, const std::string& file);

// Answers in words, judged by a model: each judgement is a run of a campaign of its own beside the
// first, PREFIX/judging, so that it is metered, kept as evidence and gone on with like any other.
// Source: CVDP 8.5.

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
