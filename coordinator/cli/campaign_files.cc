#include "coordinator/cli/campaign_files.h"

#include <algorithm>
#include <cstdio>

#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/program_path.h"
#include "common/base/text.h"
#include "common/contract/campaign_parser.h"
#include "coordinator/cli/model_check.h"
#include "coordinator/cli/outside_probe.h"

namespace proctor::cli {
namespace {

Result<std::string> read_plan_file(const Campaign& campaign) {
  return read_file(StateFolder{campaign.folder}.plan(), limits::kPlanFileBytes);
}

Error does_not_match(const std::vector<std::string>& differences) {
  std::string text = "the campaign differs from its registration:";
  for (const std::string& d : differences) text += "\n  " + d;
  text +=
      "\nPut back what changed, or register a new campaign (a copy of the folder without "
      "registration.json and .proctor).";
  return Error{Errc::kConflict, std::move(text)};
}

Result<FrozenCampaign> as_registered(Campaign campaign, Registration registered) {
  const StateFolder state{campaign.folder};
  PROCTOR_TRY(const std::string csv, read_plan_file(campaign));
  PROCTOR_TRY(const Registration now, make_registration(campaign, sha256(csv), registered.at));
  const std::vector<std::string> differ = differences(registered, now);
  if (!differ.empty()) return does_not_match(differ);
  PROCTOR_TRY(Plan plan, parse_plan(state.plan().filename().string(), csv, shape_of(campaign)));
  FrozenCampaign out{std::move(campaign), std::move(plan), std::move(registered), "", state, {}};
  out.id = campaign_id(out.registration);
  for (std::uint32_t r = 0; r < out.plan.size(); ++r)
    if (is_removed(out.registration, out.plan.task(RunId(r)).id)) out.removed.push_back(RunId(r));
  return out;
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
  Diagnostics diagnostics;
  Result<Campaign> campaign = load_campaign(absolute, diagnostics);
  if (campaign.ok() && diagnostics.empty() && outside == Outside::kCheck) {
    std::vector<std::string> unasked;
    check_outside(*campaign, *make_outside_probe(unasked), diagnostics);
    // Nothing is wrong with the campaign then: it is the machine that lacks something.
    if (!unasked.empty() && diagnostics.count() == unasked.size())
      return Error{Errc::kUnavailable, unasked.back() + ", and " + std::to_string(unasked.size()) +
                                           " of the campaign's contracts name an image"};
  }
  if (!diagnostics.empty()) {
    std::fputs(diagnostics.text().c_str(), stderr);
    return Error{Errc::kInvalid, std::to_string(diagnostics.count()) +
                                     (diagnostics.count() == 1 ? " error" : " errors") + " in " +
                                     folder.string()};
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

Result<Registration> freeze(const Campaign& campaign) {
  PROCTOR_TRY(const std::string csv, read_plan_file(campaign));
  PROCTOR_TRY(const Plan plan, parse_plan("pilot_randomization_plan.csv", csv, shape_of(campaign)));
  PROCTOR_TRY(const std::optional<Registration> before, read_registration(campaign.folder));
  PROCTOR_TRY(Registration now, make_registration(campaign, sha256(csv), wall_now()));
  // What is registered runs; what is not yet can be mended.
  if (!before) PROCTOR_CHECK_OK(refuse_model_calls(campaign));
  if (before) {
    const std::vector<std::string> differ = differences(*before, now);
    if (!differ.empty()) return does_not_match(differ);
    return *before;
  }
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
  return as_registered(std::move(campaign), std::move(*registered));
}

Result<FrozenCampaign> load_registered(const fs::path& folder) {
  PROCTOR_TRY(Campaign campaign, load_checked(folder, Outside::kSkip));
  PROCTOR_TRY(std::optional<Registration> registered, read_registration(campaign.folder));
  if (!registered)
    return Error{Errc::kNotFound, folder.string() +
                                      " is not registered yet: proctor plan --freeze " +
                                      folder.string() + ", or proctor run " + folder.string()};
  return as_registered(std::move(campaign), std::move(*registered));
}

}  // namespace proctor::cli
    // Without it no repository is one.
    if (find_on_path("git").empty())
      return Error{
          Errc::kUnavailable,
          "git is not on this host's PATH, and repositories are looked at with it: apt-get "
          "install git (or scripts/setup)"};
