#include "coordinator/cli/try_files.h"

#include "common/base/text.h"
#include "coordinator/cli/trial_campaign.h"
#include "coordinator/shell/control_protocol.h"

namespace proctor::cli {
namespace {

struct Names {
  std::string task, method;
};

std::optional<Names> names_of(const std::string& run) {
  const std::size_t slash = run.find('/');
  if (slash == std::string::npos) return std::nullopt;
  Names out{run.substr(0, slash), run.substr(slash + 1)};
  if (const std::size_t end = out.method.find('/'); end != std::string::npos) {
    if (out.method.substr(end) != "/r1") return std::nullopt;
    out.method.resize(end);
  }
  const bool safe = is_safe_relative(out.task) && is_safe_relative(out.method);
  return safe ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

StateFolder try_folder(const fs::path& campaign, const std::string& task,
                       const std::string& method) {
  return StateFolder::trials(campaign, ".proctor/try/" + task + "/" + method);
}

Result<TriedRun> find_try(const std::string& campaign, const std::string& run) {
  const std::optional<Names> names = names_of(run);
  if (!names)
    return Error{Errc::kInvalid, printable(run) + " names no try: TASK/METHOD, as in proctor try"};
  TriedRun out{try_folder(campaign, names->task, names->method),
               names->task + "/" + names->method + "/r1"};
  std::error_code ec;
  if (!fs::exists(out.folder.journal(), ec))
    return Error{Errc::kNotFound, names->task + " with " + names->method +
                                      " has not been tried: proctor try " + campaign + " " +
                                      names->task + " " + names->method};
  return out;
}

Result<FrozenCampaign> load_try(const std::string& campaign, const std::string& run) {
  PROCTOR_TRY(TriedRun tried, find_try(campaign, run));
  const Names names = *names_of(run);
  PROCTOR_TRY(const Campaign all, load_checked(campaign, Outside::kSkip));
  PROCTOR_TRY(Campaign one, try_campaign(all, names.task, names.method));
  return freeze_trials(std::move(one), {}, std::move(tried.folder));
}

Result<AskedRun> find_asked(const std::string& campaign, const std::string& run, Whose whose) {
  if (whose == Whose::kTry) {
    PROCTOR_TRY(FrozenCampaign tried, load_try(campaign, run));
    return AskedRun{std::move(tried), RunId(0)};
  }
  Result<FrozenCampaign> frozen = load_registered(campaign);
  if (!frozen.ok()) return with_try_hint(std::move(frozen).error(), campaign, run);
  Result<RunId> found = find_run(frozen->plan, run);
  if (!found.ok()) return with_try_hint(std::move(found).error(), campaign, run);
  return AskedRun{std::move(frozen).value(), *found};
}

Error with_try_hint(Error error, const std::string& campaign, const std::string& run) {
  if (find_try(campaign, run).ok())
    error.detail += "\nWhat proctor try made of it is there: the same command with --try";
  return error;
}

}  // namespace proctor::cli
