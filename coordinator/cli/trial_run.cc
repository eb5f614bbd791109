#include "coordinator/cli/trial_run.h"

#include <algorithm>

#include "common/base/text.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/shell/local_workers.h"

namespace proctor::cli {
namespace {

// Holds the id of the campaign that has been begun there.
fs::path mark_of(const StateFolder& place) {
  return place.campaign / "campaign-id";
}

bool is_begun(const FrozenCampaign& frozen) {
  const Result<std::string> before = read_file(mark_of(frozen.folder), 4'096);
  return before.ok() && *before == frozen.id;
}

bool is_open(const RunRecord& run) {
  using State = RunRecord::State;
  return run.state == State::kPlanned || run.state == State::kRunning;
}

Trial trial_of(int code, CampaignReport report) {
  Trial out;
  out.code = code;
  out.over = std::ranges::none_of(report.runs, is_open);
  for (const RunRecord& run : report.runs) out.cost = out.cost + run.cost.total();
  out.report = std::move(report);
  return out;
}

}  // namespace

Result<std::vector<const Contract*>> asked_tasks(const Campaign& campaign,
                                                 const std::vector<std::string>& names) {
  std::vector<std::string_view> ids;
  for (const Contract& c : campaign.contracts) ids.push_back(c.id);
  for (const std::string& name : names) {
    if (campaign.find_contract(name) != nullptr) continue;
    std::string text = "the campaign has no task " + printable(name);
    if (const auto near = nearest_word(name, ids)) text += " (did you mean " + *near + "?)";
    return Error{Errc::kInvalid, std::move(text)};
  }
  std::vector<const Contract*> out;
  for (const Contract& c : campaign.contracts)
    if (names.empty() || std::ranges::find(names, c.id) != names.end()) out.push_back(&c);
  return out;
}

Result<std::optional<MicroUsd>> trial_limit(const std::string& text) {
  if (text.empty()) return std::optional<MicroUsd>();
  Result<MicroUsd> usd = parse_usd(text);
  if (!usd.ok()) return in_context("--usd", std::move(usd).error());
  return std::optional(*usd);
}

Result<FileLock> own_trial(const StateFolder& place, const std::string& command) {
  PROCTOR_CHECK_OK(make_private_dirs(place.campaign.parent_path()));
  Result<FileLock> lock = FileLock::try_acquire(place.campaign.string() + ".lock");
  if (!lock.ok() && lock.error().code == Errc::kConflict)
    return Error{Errc::kConflict, "this is under way now, by another proctor " + command + " in " +
                                      place.campaign.string() + ": wait for it, or interrupt it"};
  return lock;
}

Status begin_trial(const FrozenCampaign& frozen) {
  PROCTOR_CHECK_OK(LocalWorkers::end_left(frozen.folder));
  PROCTOR_CHECK_OK(remove_tree(frozen.folder.campaign));
  PROCTOR_CHECK_OK(make_dirs(frozen.folder.campaign));
  return write_file(mark_of(frozen.folder), frozen.id);
}

Result<Trial> run_trial(RunOptions options, const FrozenCampaign& frozen) {
  if (!is_begun(frozen)) {
    PROCTOR_CHECK_OK(begin_trial(frozen));
  } else if (Result<CampaignReport> before = read_report(frozen); before.ok()) {
    Trial trial = trial_of(kOk, std::move(before).value());
    if (trial.over) return trial;
  }
  options.folder = frozen.folder.campaign.string();
  options.begin = RunOptions::Begin::kEither;
  options.show_report = false;
  PROCTOR_TRY(const int code, run_frozen(options, frozen));
  PROCTOR_TRY(CampaignReport report, read_report(frozen));
  return trial_of(code, std::move(report));
}

void forget_trial(const StateFolder& place) {
  std::error_code ec;
  fs::remove(mark_of(place), ec);
}

}  // namespace proctor::cli
