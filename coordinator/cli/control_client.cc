#include "coordinator/cli/control_client.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>

#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/status_file.h"
#include "coordinator/journal/journal.h"
#include "coordinator/shell/control_server.h"

namespace proctor::cli {
namespace {

// A question has other answers: what the coordinator last wrote down.
constexpr std::chrono::seconds kAnswerPatience(4);

// Who does not answer, and when it last spoke: "the coordinator (process 17 on vm, ...)".
std::string silent_one(const StateFolder& folder) {
  const auto owner = journal_owner(folder.journal());
  if (!owner) return "the coordinator";
  const std::optional<StatusSnapshot> last = live_status(folder);
  return "the coordinator (" + *owner +
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
                 heard.error().detail + ", but the campaign is in use: " + *owner};
  }
  if (!heard.ok()) return heard.error();
  switch (heard->what) {
    case ControlHeard::What::kAnswer:
      break;
    case ControlHeard::What::kNothing:
      return unheard(folder, request, heard->ended);
    case ControlHeard::What::kTaken:
      return unanswered(folder, request, heard->ended);
  }
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
