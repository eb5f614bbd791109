#include "coordinator/cli/running_coordinator.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "common/base/file_lock.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/journal/journal.h"
#include "coordinator/shell/control_server.h"

namespace proctor::cli {
namespace {
// The file is the campaign's, and is neither made nor changed for a mark.
UniqueFd registration_of(const StateFolder& folder) {
  Result<UniqueFd> fd = open_own_file(folder.registration(), O_RDONLY);
  return fd.ok() ? std::move(fd).value() : UniqueFd();
}

int lock(int fd, int operation) {
  int result = 0;
  do result = ::flock(fd, operation);
  while (result != 0 && errno == EINTR);
  return result;
}
}  // namespace

std::optional<UniqueFd> mark_start(const StateFolder& folder) {
  UniqueFd fd = registration_of(folder);
  // Who looks has it for himself for an instant.
  if (!fd.valid() || lock(fd.get(), LOCK_SH) != 0) return std::nullopt;
  return fd;
}

bool is_starting(const StateFolder& folder) {
  const UniqueFd fd = registration_of(folder);
  return fd.valid() && lock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

namespace {
using Stands = SeenStatus::Stands;

// Nothing: none was ever written.
Result<std::optional<StatusSnapshot>> written_status(const StateFolder& folder) {
  Result<StatusSnapshot> status = last_status(folder);
  if (status.ok()) return std::optional(std::move(status).value());
  if (status.error().code == Errc::kNotFound) return std::optional<StatusSnapshot>();
  return std::move(status).error();
}

// A snapshot outlives its writer, and the journal is somebody else's then: a coordinator that
// begins, or an operator's act.
bool is_of(const StatusSnapshot& status, const LockOwner& owner) {
  return owner.pid == 0 || owner.pid == status.pid;
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
  if (!last.ok() || !*last)
    if (!is_there(folder_ / "campaign.yaml") && !is_there(folder.status()))
      return no_campaign(folder_.string());
  if (!last.ok()) return std::move(last).error();
  const std::optional<LockOwner> owner = journal_owner(folder.journal());
  if (!owner) return by_journal(*last, "");
  // Its last word may have come between our reading and now, with the lock still held.
  PROCTOR_TRY(last, written_status(folder));
  if (!*last || !is_of(**last, *owner)) return by_journal(*last, owner->text);
  SeenStatus out{.status = **last, .stands = Stands::kRuns, .held = nullptr, .doubt = ""};
  if (const Stands ended = stands_by(out.status); ended != Stands::kGone) out.stands = ended;
  return std::optional<SeenStatus>(std::move(out));
}

std::optional<StatusSnapshot> live_status(const StateFolder& folder) {
  const std::optional<LockOwner> owner = journal_owner(folder.journal());
  if (!owner) return std::nullopt;
  const Result<std::optional<StatusSnapshot>> status = written_status(folder);
  if (!status.ok() || !*status || !is_of(**status, *owner)) return std::nullopt;
  return *status;
}

namespace {
// A question has other answers: what the coordinator last wrote down.
constexpr std::chrono::seconds kAnswerPatience(4);

// Who does not answer, and when it last spoke: "the coordinator (process 17 on vm, ...)".
std::string silent_one(const StateFolder& folder) {
  const auto owner = journal_owner(folder.journal());
  if (!owner) return "the coordinator";
  const std::optional<StatusSnapshot> last = live_status(folder);
  return "the coordinator (" + owner->text +
         (last ? "; it last spoke at " + to_rfc3339(last->at) : std::string()) + ")";
}

Error unheard(const StateFolder& folder, const ControlRequest& request, bool ended) {
  const std::string campaign = folder.campaign.string();
  if (ended)
    return {Errc::kUnavailable,
            "the coordinator ended before it heard of this: nothing was done; "
            "proctor status " +
                campaign + " says where the campaign stands"};
  return {
      Errc::kUnavailable,
      silent_one(folder) + " does not answer" +
          (request.act == kActExplain ? std::string()
                                      : ": it has not heard of the " + request.act +
                                            ", which was withdrawn and is not done later either") +
          ". It hangs, is stopped, or its disk does not answer: proctor status " + campaign +
          " says how it stands; to kill it loses nothing, and then proctor resume " + campaign +
          " goes on"};
}

Error unanswered(const StateFolder& folder, const ControlRequest& request, bool ended) {
  const std::string campaign = folder.campaign.string();
  return {
      Errc::kUnavailable,
      (ended ? "the coordinator ended" : silent_one(folder) + " has said nothing more") +
          " after it took up the " + request.act +
          (ended ? ": whether it was done" : ": it will be done when it goes on; whether it is") +
          ", proctor story " + campaign + " says; asking again is safe"};
}
}  // namespace

Result<std::optional<ControlAnswer>> ask_coordinator(const StateFolder& folder,
                                                     const ControlRequest& request) {
  ControlPatience patience;
  if (request.act == kActExplain) patience.taken = kAnswerPatience;
  const Result<ControlHeard> heard = call_control(folder.control(), request, patience, [&] {
    std::fprintf(stderr, "waiting for %s\n", printable(silent_one(folder), 1000).c_str());
  });
  if (!heard.ok() && heard.error().code != Errc::kInvalid && heard.error().code != Errc::kCorrupt) {
    const auto owner = journal_owner(folder.journal(), kJournalPatience);
    if (!owner) return std::optional<ControlAnswer>();
    return Error{Errc::kUnavailable,
                 heard.error().detail + ", but the campaign is in use: " + owner->text};
  }
  if (!heard.ok()) return heard.error();
  using What = ControlHeard::What;
  if (heard->what == What::kNothing) return unheard(folder, request, heard->ended);
  if (heard->what == What::kTaken) return unanswered(folder, request, heard->ended);
  return std::optional<ControlAnswer>(heard->answer);
}

std::string user_name() {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
      found != nullptr && *found->pw_name != '\0')
    return found->pw_name;
  return "uid " + std::to_string(::geteuid());
}

Result<StateFolder> campaign_folder(const std::string& folder) {
  std::error_code ec;
  const fs::path absolute = fs::canonical(folder, ec);
  if (ec || !fs::exists(absolute / "campaign.yaml", ec)) return no_campaign(folder);
  return StateFolder{absolute};
}
}  // namespace proctor::cli
