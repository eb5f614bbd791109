#pragma once
// Evidence of a CVDP campaign as upstream's results and reports.  Private to the program.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/trace/evidence.h"
#include "common/trace/run_report.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cvdp/dataset/compose.h"
#include "coordinator/cvdp/dataset/import.h"
#include "coordinator/cvdp/report/report.h"
#include "coordinator/cvdp/report/results.h"
#include "coordinator/cvdp/run/campaign.h"

namespace proctor::cli {
// In the evidence of a run: the file that a single-shot method wrote
// (common/answers/single_shot.h).
inline constexpr const char* kAnswerFile = "agent/answer.json";

// The evidence of a run that counts: of the attempt whose report the journal names.
inline Result<fs::path> evidence_of(const FrozenCampaign& frozen, const RunRecord& run) {
  for (std::uint32_t n = run.attempts; 0 < n; --n) {
    const fs::path folder = frozen.folder.attempt(run.name, AttemptNo(n));
    const Result<std::string> bytes = read_file(folder / kReportFile, kReportBytes);
    if (bytes.ok() && sha256(*bytes) == run.report) return folder;
  }
  return Error{Errc::kNotFound, "no attempt left evidence (proctor explain " + run.name + ")"};
}

// Upstream's reports as files of a folder; each one written is named on standard output.

// "2026-01-31 12:00:00", as reports have it.
std::string local_time();

// report.txt, and report.json unless it is the file that was read.
Status write_single_report(const cvdp::Value& report, const fs::path& folder, bool is_there);
// composite_report.json and what is made of it.
Status write_composite(const std::vector<cvdp::Value>& reports,
                       const cvdp::CompositeMetadata& metadata, const fs::path& folder);
// composite_report.txt, pass_at_k.txt and .json.  `k` 0: the file's own.
Status write_composite_texts(const cvdp::Value& composite, const fs::path& folder, std::int64_t k);

// The evidence that runs of a campaign of CVDP problems left, as upstream's results: one
// raw_result.json a sample, and reports/<number>[_<service>].txt with what each service said.
// Only reports that the journal vouches for count.

struct SampleRequest {
  std::string method;           // of the campaign
  std::uint32_t replicate = 1;  // which run of it
  std::uint32_t sample = 1;     // as the prefix counts it
  bool golden = false;          // the reference answers stand for the candidate's
  fs::path folder;              // upstream's prefix
  bool agent = false;           // what it said and changed is shown too
  // Results of problems that were run outside the campaign; null: there are none.
  const std::map<std::string, std::vector<cvdp::TestResult>>* harness = nullptr;
  bool single_shot = false;  // what it answered is
  // The words of a judge, by judge_name(); null: no judge was asked.
  const std::map<std::string, Result<cvdp::Judgement>>* judgements = nullptr;
};
struct SampleResults {
  cvdp::Value raw;                                // raw_result.json
  std::map<std::string, bool> passed;             // by problem id; one without a verdict has none
  std::map<std::string, std::string> no_verdict;  // id -> why
  std::string responses;                          // prompt_response.jsonl, of single-shot methods

  // Those of other problems, of the same sample.
  void take(SampleResults more);
  // raw_result.json, indented as write_json() has it, and the responses.
  Status write(const fs::path& folder, bool with_responses, int indent) const;
};

// A name as a file may be called: theirs may be anything.
inline std::string file_part(std::string name) {
  for (char& c : name)
    if (!cvdp::is_word_byte(c) && c != '-' && c != '.') c = '_';
  return name;
}
// Name of the log of one service of a problem that has so many, without its extension.
std::string service_log_name(std::uint64_t issue, const std::string& service, std::size_t services);

class ResultGatherer {
 public:
  // Outlived by all it is given; `frozen` and `report` may be null: no problem could be run.
  ResultGatherer(const ImportOptions& dataset, const std::vector<Imported::LeftOut>& left_out,
                 const FrozenCampaign* frozen, const CampaignReport* report);
  // Writes the logs.
  Result<SampleResults> gather(const SampleRequest& request) const;
  // The answers in words that a judge is to be asked about.
  Result<std::vector<cvdp::JudgeCase>> judge_cases(const SampleRequest& request) const;

 private:
  class Sample;
  bool is_heavy(const cvdp::Record& record) const;
  const ImportOptions& dataset_;
  const FrozenCampaign* frozen_;
  std::map<std::string, const RunRecord*> runs_;              // by name
  std::map<std::string, const Imported::LeftOut*> left_out_;  // by problem id
};
}  // namespace proctor::cli
