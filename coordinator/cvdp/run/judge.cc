#include "coordinator/cvdp/run/judge.h"

#include "common/base/json.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cvdp/run/campaign.h"
#include "coordinator/cvdp/run/evidence.h"
#include "coordinator/cvdp/run/repository.h"

namespace proctor::cli {
namespace {

constexpr std::size_t kTextBytes = std::size_t{64} << 20;

// A judge needs a prompt and no files: one commit of one line for all.
Result<std::string> make_repository(const fs::path& path) {
  const ContextRepository repository(path);
  PROCTOR_CHECK_OK(repository.open());
  PROCTOR_TRY(const auto commits,
              repository.add("commit refs/heads/judging\nmark :1\n"
                             "committer cvdp <cvdp@localhost> 0 +0000\ndata 8\njudging\n"
                             "M 100644 inline README\ndata 8\njudging\n"));
  const auto made = commits.find(1);
  if (made == commits.end()) return Error{Errc::kCorrupt, "git fast-import made no commit"};
  return made->second;
}

std::string digest_of(const std::vector<cvdp::JudgeCase>& cases) {
  Sha256 sum;
  for (const cvdp::JudgeCase& c : cases)
    for (const cvdp::ContractFile& f : cvdp::make_judgement(c, "", ""))
      sum.update(f.path + "\n" + f.bytes);
  return sum.finish().hex();
}

Status write_campaign(const JudgeOptions& options, const std::vector<cvdp::JudgeCase>& cases) {
  PROCTOR_CHECK_OK(remove_tree(options.folder));  // not finished: the marker comes last
  PROCTOR_CHECK_OK(make_dirs(options.folder / "contracts"));
  PROCTOR_TRY(const std::string commit,
              make_repository(fs::absolute(options.folder) / "repos/judging.git"));
  for (const cvdp::JudgeCase& c : cases)
    for (const cvdp::ContractFile& f : cvdp::make_judgement(c, "../repos/judging.git", commit)) {
      const fs::path path = options.folder / "contracts" / f.path;
      PROCTOR_CHECK_OK(make_dirs(path.parent_path()));
      PROCTOR_CHECK_OK(write_file(path, f.bytes, Durability::kLazy, f.mode));
    }
  if (!options.prices.empty()) PROCTOR_CHECK_OK(take_prices(options.prices, options.folder));
  ImportOptions one;
  one.methods = "[" + options.method + "]";
  one.global_usd = options.global_usd;
  one.run_usd = options.run_usd;
  PROCTOR_CHECK_OK(
      write_file(options.folder / "campaign.yaml", cvdp_campaign_text("judging", one)));
  return write_file(options.folder / "cases.json", Json{{"cases", digest_of(cases)}}.dump() + "\n");
}

Result<bool> is_written(const JudgeOptions& options, const std::vector<cvdp::JudgeCase>& cases) {
  const Result<std::string> text = read_file(options.folder / "cases.json", kTextBytes);
  if (!text.ok() && text.error().code == Errc::kNotFound) return false;
  if (!text.ok()) return text.error();
  PROCTOR_TRY(const Json marker, parse_json(*text));
  if (marker == Json{{"cases", digest_of(cases)}}) return true;
  return Error{Errc::kConflict,
               options.folder.string() + " judged other answers: remove it to judge these"};
}

Result<cvdp::Judgement> judgement_of(const FrozenCampaign& frozen, const RunRecord& run) {
  PROCTOR_TRY(const fs::path evidence, evidence_of(frozen, run));
  const Result<std::string> text = read_file(evidence / kAnswerFile, kTextBytes);
  if (!text.ok()) return Error{Errc::kUnavailable, "the judge gave no answer"};
  PROCTOR_TRY(const cvdp::AnsweredFiles answer, cvdp::read_answer(*text));
  for (const cvdp::AnsweredFile& f : answer.files)
    if (f.path == cvdp::kJudgementFile) return cvdp::parse_judgement(f.text);
  return Error{Errc::kInvalid, "the judge's answer has no score"};
}

}  // namespace

Result<Judged> judge_answers(const JudgeOptions& options,
                             const std::vector<cvdp::JudgeCase>& cases) {
  Judged out;
  if (cases.empty()) return out;
  PROCTOR_TRY(const bool written, is_written(options, cases));
  if (!written && options.reports_only) return out;
  if (!written) PROCTOR_CHECK_OK(write_campaign(options, cases));
  if (!options.reports_only) {
    RunOptions run = options.run;
    run.folder = options.folder.string();
    out.exit_code = run_campaign(run);
    out.stopped = out.exit_code == kJobFailed;
    if (out.stopped || out.exit_code == kBadInput) return out;
  }
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(options.folder));
  PROCTOR_TRY(const CampaignReport report, read_report(frozen));
  for (const RunRecord& run : report.runs)
    if (run.state == RunRecord::State::kEnded)
      out.judgements.emplace(run.name.substr(0, run.name.find('/')), judgement_of(frozen, run));
  return out;
}

}  // namespace proctor::cli
