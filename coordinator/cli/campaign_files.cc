#include "coordinator/cli/campaign_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/subprocess.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/campaign_parser.h"
#include "coordinator/cli/model_check.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/outside_probe.h"
#include "coordinator/cli/own_folders.h"
#include "coordinator/cli/parked_advice.h"
#include "coordinator/cli/registered_files.h"
#include "coordinator/cli/task_trust.h"
#include "coordinator/journal/sqlite.h"

namespace proctor::cli {
namespace {

Result<std::string> read_plan_file(const Campaign& campaign) {
  return read_file(StateFolder{campaign.folder}.plan(), limits::kPlanFileBytes);
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + printable(name, 400);
  return out;
}

// What is not as it was: by their names where the files were kept.  The plan is drawn again and not
// kept; contracts that came are in no file that was.
std::vector<std::string> changed_since(const StateFolder& state, const Registration& registered,
                                       const std::vector<std::string>& came) {
  std::vector<std::string> out = changed_files(state);
  const Result<std::string> plan = read_file(state.plan(), limits::kPlanFileBytes);
  if (!plan.ok() || sha256(*plan) != registered.plan)
    out.push_back(state.plan().filename().string() + (plan.ok() ? " (changed)" : " (gone)"));
  out.insert(out.end(), came.begin(), came.end());
  return out;
}

std::vector<std::string> new_contracts(const Campaign& now, const Registration& registered) {
  std::vector<std::string> out;
  for (const Contract& c : now.contracts)
    if (!registered.contracts.contains(c.id))
      out.push_back(fs::path(c.origin.file).lexically_relative(now.folder).string() + " (new)");
  return out;
}

std::string way_out(const StateFolder& state, const std::string& folder) {
  std::error_code ec;
  return "Put back what changed (git checkout" +
         (fs::exists(state.registered(), ec)
              ? ", or from the copies in " + state.registered().string() + ")"
              : std::string(")")) +
         ", or register what is there now as a campaign of its own: " + copy_command(folder);
}

// As somebody typed it, without a slash at its end.
std::string typed(const fs::path& folder) {
  return folder.filename().empty() ? folder.parent_path().string() : folder.string();
}

Error does_not_match(const fs::path& folder, const StateFolder& state,
                     const Registration& registered, const std::vector<std::string>& came,
                     const std::vector<std::string>& differences) {
  std::string text = "the campaign differs from its registration:";
  for (const std::string& file : changed_since(state, registered, came))
    text += "\n  " + printable(file, 400);
  for (const std::string& d : differences) text += "\n  " + d;
  return Error{Errc::kConflict, text + "\n" + way_out(state, typed(folder))};
}

// Of a campaign with errors: what of it is not as it was when it was registered, and had none.
std::string since_registered(const fs::path& folder, const fs::path& campaign) {
  const StateFolder state{campaign};
  const std::vector<std::string> files = changed_files(state);
  if (files.empty()) return "";
  return "; since it was registered these have changed: " + joined(files) + "\n" +
         way_out(state, typed(folder));
}

Result<FrozenCampaign> frozen_of(Campaign campaign, Registration registered,
                                 const std::string& csv) {
  const StateFolder state{campaign.folder};
  PROCTOR_TRY(Plan plan, parse_plan(state.plan().filename().string(), csv, shape_of(campaign)));
  FrozenCampaign out{std::move(campaign), std::move(plan), std::move(registered), "", state, {}};
  out.id = campaign_id(out.registration);
  for (std::uint32_t r = 0; r < out.plan.size(); ++r)
    if (is_removed(out.registration, out.plan.task(RunId(r)).id)) out.removed.push_back(RunId(r));
  return out;
}

// Somebody took the file away: it is drawn again, where that makes the registered one.
Status restore_plan(const fs::path& folder, const Campaign& campaign,
                    const Registration& registered) {
  const StateFolder state{campaign.folder};
  std::error_code ec;
  if (fs::exists(state.plan(), ec)) return ok_status();
  PROCTOR_TRY(const Plan drawn, draw_plan(shape_of(campaign)));
  const std::string csv = to_csv(drawn);
  if (sha256(csv) != registered.plan)
    return does_not_match(folder, state, registered, new_contracts(campaign, registered), {});
  PROCTOR_CHECK_OK(write_file(state.plan(), csv));
  log::warn(state.plan().string() + " was gone: it was drawn again, and is the registered one");
  return ok_status();
}

Result<FrozenCampaign> as_registered(const fs::path& folder, Campaign campaign,
                                     Registration registered) {
  const StateFolder state{campaign.folder};
  PROCTOR_TRY(const std::string csv, read_plan_file(campaign));
  PROCTOR_TRY(const Registration now, make_registration(campaign, sha256(csv), registered.at));
  const std::vector<std::string> differ = differences(registered, now);
  if (!differ.empty())
    return does_not_match(folder, state, registered, new_contracts(campaign, registered), differ);
  return frozen_of(std::move(campaign), std::move(registered), csv);
}

// From what was kept at the freeze, if that makes the registration again.
std::optional<FrozenCampaign> as_kept(const StateFolder& state, const Registration& registered) {
  std::optional<Campaign> kept = load_kept(state);
  if (!kept) return std::nullopt;
  Result<std::string> csv = read_file(state.plan(), limits::kPlanFileBytes);
  if (!csv.ok() || sha256(*csv) != registered.plan) {
    const Result<Plan> drawn = draw_plan(shape_of(*kept));
    if (!drawn.ok()) return std::nullopt;
    csv = to_csv(*drawn);
  }
  const Result<Registration> again = make_registration(*kept, sha256(*csv), registered.at);
  if (!again.ok() || !differences(registered, *again).empty()) return std::nullopt;
  Result<FrozenCampaign> out = frozen_of(std::move(*kept), registered, *csv);
  if (!out.ok()) return std::nullopt;
  return std::move(out).value();
}

void warn_of_changes(const fs::path& folder, const StateFolder& state,
                     const Registration& registered, const std::vector<std::string>& came) {
  static std::set<fs::path> told;  // a command may look more than once
  if (!told.insert(state.campaign).second) return;
  std::fprintf(stderr,
               "warning: changed since the campaign was registered: %s. What follows is of the "
               "campaign as it was registered.\n%s\n",
               joined(changed_since(state, registered, came)).c_str(),
               way_out(state, typed(folder)).c_str());
}

}  // namespace

Error no_campaign(const std::string& folder) {
  constexpr std::size_t kLookedAt = 2'000;
  fs::path path(folder);
  if (path.filename().empty()) path = path.parent_path();
  const fs::path parent = path.parent_path();
  std::vector<std::string> there;
  std::error_code ec;
  std::size_t looked = 0;
  for (fs::directory_iterator it(parent.empty() ? "." : parent, ec), end;
       !ec && it != end && looked < kLookedAt; it.increment(ec), ++looked) {
    std::error_code unused;
    if (fs::exists(it->path() / kCampaignFile, unused))
      there.push_back(it->path().filename().string());
  }
  std::ranges::sort(there);
  const std::vector<std::string_view> names(there.begin(), there.end());
  const auto near = nearest_word(path.filename().string(), names);
  return {Errc::kNotFound, "there is no campaign at " + printable(folder) + ": it has no " +
                               kCampaignFile +
                               (near ? " (did you mean " + (parent / *near).string() + "?)" : "")};
}

Result<Campaign> load_checked(const fs::path& folder, Outside outside) {
  std::error_code ec;
  const fs::path absolute = fs::canonical(folder, ec);
  if (ec == std::errc::no_such_file_or_directory) return no_campaign(folder.string());
  if (ec) return errno_error("campaign " + folder.string(), ec.value());
  // A registered one that lost it is told of that below.
  if (!fs::exists(absolute / kCampaignFile, ec) &&
      !fs::exists(StateFolder{absolute}.registration(), ec))
    return no_campaign(folder.string());
  PROCTOR_CHECK_OK(check_own_folders(StateFolder{absolute}));
  Diagnostics diagnostics;
  Result<Campaign> campaign = load_campaign(absolute, diagnostics);
  if (campaign.ok() && diagnostics.empty() && outside == Outside::kCheck) {
    // Without it no repository is one.
    if (find_on_path("git").empty())
      return Error{
          Errc::kUnavailable,
          "git is not on this host's PATH, and repositories are looked at with it: apt-get "
          "install git"};
    std::vector<std::string> unasked;
    check_outside(*campaign, *make_outside_probe(unasked, campaign->contracts.size()), diagnostics);
    // Nothing is wrong with the campaign then: it is the machine that lacks something.
    if (!unasked.empty() && diagnostics.count() == unasked.size())
      return Error{Errc::kUnavailable, unasked.back() + ", and " + std::to_string(unasked.size()) +
                                           " of the campaign's contracts name an image"};
  }
  if (!diagnostics.empty()) {
    std::fputs(diagnostics.text().c_str(), stderr);
    return Error{Errc::kInvalid, std::to_string(diagnostics.count()) +
                                     (diagnostics.count() == 1 ? " error" : " errors") + " in " +
                                     folder.string() + since_registered(folder, absolute)};
  }
  return campaign;
}

Result<std::optional<Registration>> read_registration(const fs::path& folder) {
  const fs::path path = StateFolder{folder}.registration();
  Result<std::string> text = read_file(path, limits::kConfigFileBytes * 16);
  if (!text.ok() && text.error().code == Errc::kNotFound) return std::optional<Registration>();
  if (!text.ok()) return std::move(text).error();
  Result<Registration> parsed = parse_registration(*text);
  if (!parsed.ok()) return in_context(path.string(), std::move(parsed).error());
  return std::optional<Registration>(std::move(parsed).value());
}

Result<Digest> write_plan(const Campaign& campaign) {
  PROCTOR_TRY(const Plan plan, draw_plan(shape_of(campaign)));
  const std::string csv = to_csv(plan);
  PROCTOR_CHECK_OK(write_file(StateFolder{campaign.folder}.plan(), csv));
  return sha256(csv);
}

Status check_never_began(const StateFolder& state) {
  PROCTOR_TRY(std::optional<JournalReader> journal, begun_journal(state));
  if (!journal) return ok_status();
  PROCTOR_TRY(const std::vector<EpochBegun> lives, journal->epochs());
  if (lives.empty()) return ok_status();
  return Error{Errc::kConflict,
               fmt::format("{} is missing, but this campaign has begun, and what is registered now "
                           "would be another.\nTo go on:        put that file back\n"
                           "To begin afresh: proctor copy {} NEW",
                           state.registration().string(), state.campaign.string())};
}

Result<Registration> freeze(const Campaign& campaign) {
  PROCTOR_TRY(const std::string csv, read_plan_file(campaign));
  PROCTOR_TRY(const Plan plan, parse_plan("pilot_randomization_plan.csv", csv, shape_of(campaign)));
  PROCTOR_TRY(const std::optional<Registration> before, read_registration(campaign.folder));
  PROCTOR_TRY(Registration now, make_registration(campaign, sha256(csv), wall_now()));
  now.distrusted = distrusted_tasks(campaign);
  // What is registered runs; what is not yet can be mended.
  if (!before) {
    PROCTOR_CHECK_OK(check_never_began(StateFolder{campaign.folder}));
    PROCTOR_CHECK_OK(refuse_model_calls(campaign));
  } else {
    const std::vector<std::string> differ = differences(*before, now);
    if (!differ.empty())
      return does_not_match(campaign.folder, StateFolder{campaign.folder}, *before,
                            new_contracts(campaign, *before), differ);
    PROCTOR_CHECK_OK(keep_registered(campaign));
    return *before;
  }
  // Copies of an earlier registration, which somebody took away, are none of this one's.
  PROCTOR_CHECK_OK(remove_tree(StateFolder{campaign.folder}.registered()));
  PROCTOR_CHECK_OK(keep_registered(campaign));
  PROCTOR_CHECK_OK(write_file(StateFolder{campaign.folder}.registration(), to_json(now)));
  return now;
}

Result<FrozenCampaign> load_frozen(const fs::path& folder,
                                   const std::function<void(const std::string&)>& announce) {
  PROCTOR_TRY(Campaign campaign, load_checked(folder, Outside::kCheck));
  PROCTOR_TRY(std::optional<Registration> registered, read_registration(campaign.folder));
  if (!registered) {
    const StateFolder state{campaign.folder};
    std::error_code ec;
    if (!fs::exists(state.plan(), ec)) PROCTOR_CHECK_OK(write_plan(campaign));
    PROCTOR_TRY(registered, freeze(campaign));
    announce("registered the campaign as " + campaign_id(*registered) + " (" +
             state.registration().filename().string() + "): from now on nothing in it may change");
  }
  PROCTOR_CHECK_OK(restore_plan(folder, campaign, *registered));
  PROCTOR_TRY(FrozenCampaign frozen,
              as_registered(folder, std::move(campaign), std::move(*registered)));
  // Campaigns of earlier versions have no copies yet.
  PROCTOR_CHECK_OK(keep_registered(frozen.campaign));
  return frozen;
}

Result<FrozenCampaign> load_unchanged(const fs::path& folder) {
  PROCTOR_TRY(Campaign campaign, load_checked(folder, Outside::kSkip));
  PROCTOR_TRY(std::optional<Registration> registered, read_registration(campaign.folder));
  if (!registered) {
    PROCTOR_CHECK_OK(check_never_began(StateFolder{campaign.folder}));
    return Error{Errc::kNotFound, folder.string() +
                                      " is not registered yet: proctor plan --freeze " +
                                      folder.string() + ", or proctor run " + folder.string()};
  }
  return as_registered(folder, std::move(campaign), std::move(*registered));
}

Result<FrozenCampaign> load_registered(const fs::path& folder) {
  std::error_code ec;
  const StateFolder state{fs::canonical(folder, ec)};
  if (ec) return load_unchanged(folder);  // says why
  // Whoever loads one to look at it goes on to its journal.
  PROCTOR_CHECK_OK(check_journal_kinds(state.journal()));
  const Result<std::optional<Registration>> registered = read_registration(state.campaign);
  if (!registered.ok() || !*registered) return load_unchanged(folder);
  Diagnostics unsaid;
  Result<Campaign> now = load_campaign(state.campaign, unsaid);
  std::vector<std::string> came;
  if (now.ok() && unsaid.empty()) {
    came = new_contracts(*now, **registered);
    Result<FrozenCampaign> frozen = as_registered(folder, std::move(*now), **registered);
    if (frozen.ok()) return frozen;
  }
  std::optional<FrozenCampaign> kept = as_kept(state, **registered);
  if (!kept) return load_unchanged(folder);
  warn_of_changes(folder, state, **registered, came);
  return *std::move(kept);
}

}  // namespace proctor::cli
