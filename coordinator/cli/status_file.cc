#include "coordinator/cli/status_file.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/system_clock.h"
#include "coordinator/cli/campaign_core.h"
#include "coordinator/journal/journal.h"
#include "coordinator/shell/campaign_view.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {
namespace {

using Stands = SeenStatus::Stands;

// Nothing: none was ever written.
Result<std::optional<StatusSnapshot>> written_status(const StateFolder& folder) {
  constexpr std::size_t kStatusBytes = std::size_t{64} << 20;
  const Result<std::string> text = read_file(folder.status(), kStatusBytes);
  if (!text.ok() && text.error().code == Errc::kNotFound) return std::optional<StatusSnapshot>();
  if (!text.ok()) return text.error();
  PROCTOR_TRY(StatusSnapshot status, parse_status(*text));
  return std::optional<StatusSnapshot>(std::move(status));
}

// Does it say of itself "process N on ..." as the one that wrote this?  A snapshot outlives its
// writer, and the journal is somebody else's then: a coordinator that begins, or an operator's act.
bool is_of(const StatusSnapshot& status, const std::string& owner) {
  return !owner.starts_with("process ") ||
         owner.starts_with(fmt::format("process {} on ", status.pid));
}

Stands stands_by(const StatusSnapshot& status) {
  if (status.state == "complete") return Stands::kComplete;
  return status.state == "stopped" ? Stands::kStopped : Stands::kGone;
}

constexpr const char* kGoesOn = "interrupted: its coordinator is gone; proctor resume goes on";

}  // namespace

const Result<FrozenCampaign>& StatusReader::campaign() {
  if (!campaign_) campaign_.emplace(load_registered(folder_));
  return *campaign_;
}

Result<std::shared_ptr<HeldCampaign>> StatusReader::hold() {
  PROCTOR_TRY(JournalReader journal, JournalReader::open(StateFolder{folder_}.journal()));
  PROCTOR_CHECK_OK(journal.hold());
  if (!campaign().ok()) return campaign().error();
  PROCTOR_TRY(CampaignView view, view_of(*campaign(), journal));
  view.begin({mono_now(), wall_now()});
  return std::make_shared<HeldCampaign>(HeldCampaign{std::move(journal), std::move(view)});
}

Result<std::optional<SeenStatus>> StatusReader::by_journal(
    const std::optional<StatusSnapshot>& last, const std::string& owner) {
  SeenStatus out;
  Result<std::shared_ptr<HeldCampaign>> held = hold();
  if (!held.ok()) {
    if (!last && held.error().code == Errc::kNotFound) return std::optional<SeenStatus>();
    if (!last) return held.error();
    out.status = *last;
    out.stands = stands_by(*last);
    if (out.stands == Stands::kGone) out.status.state = kGoesOn;
    out.doubt = held.error().detail;
    return std::optional<SeenStatus>(std::move(out));
  }
  out.held = std::move(held).value();
  if (!last && out.held->view.state.last_epoch == Epoch(0)) return std::optional<SeenStatus>();
  const FrozenCampaign& frozen = *campaign();
  RestingStatus rest = resting_status(
      out.held->view, [&](RunId run) { return frozen.plan.run_name(run); }, last ? &*last : nullptr,
      wall_now());
  out.status = std::move(rest.status);
  out.stands = rest.rest == Rest::kComplete  ? Stands::kComplete
               : rest.rest == Rest::kStopped ? Stands::kStopped
                                             : Stands::kGone;
  if (!owner.empty()) {
    out.stands = Stands::kRuns;
    out.status.state = "beginning: " + owner + " has the journal";
    out.status.eta_waits.clear();
  }
  return std::optional<SeenStatus>(std::move(out));
}

Result<std::optional<SeenStatus>> StatusReader::look() {
  const StateFolder folder{folder_};
  Result<std::optional<StatusSnapshot>> last = written_status(folder);
  std::error_code ec;
  if (!last.ok() || !*last)
    if (!fs::exists(folder_ / "campaign.yaml", ec) && !fs::exists(folder.status(), ec))
      return no_campaign(folder_.string());
  if (!last.ok()) return std::move(last).error();
  const std::optional<std::string> owner = journal_owner(folder.journal());
  if (!owner) return by_journal(*last, "");
  // Its last word may have come between our reading and now, with the lock still held.
  PROCTOR_TRY(last, written_status(folder));
  if (!*last || !is_of(**last, *owner)) return by_journal(*last, *owner);
  SeenStatus out{.status = **last, .stands = Stands::kRuns, .held = nullptr, .doubt = ""};
  if (const Stands ended = stands_by(out.status); ended != Stands::kGone) out.stands = ended;
  return std::optional<SeenStatus>(std::move(out));
}

std::optional<StatusSnapshot> live_status(const StateFolder& folder) {
  const std::optional<std::string> owner = journal_owner(folder.journal());
  if (!owner) return std::nullopt;
  const Result<std::optional<StatusSnapshot>> status = written_status(folder);
  if (!status.ok() || !*status || !is_of(**status, *owner)) return std::nullopt;
  return *status;
}

}  // namespace proctor::cli
