// AttemptRun: files of the agent that its method wants kept as evidence (campaign.h).
#include <algorithm>

#include "common/trace/archive.h"
#include "common/trace/evidence.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/run_events.h"
#include "worker/workspace/kept_files.h"

namespace proctor {
namespace {

// What may not be there is no mistake: an agent that failed writes no trajectory.
void add(const KeptFiles& kept, const std::string& below, Json& files, Json& left_out) {
  for (const KeptFiles::File& f : kept.files)
    files.push_back({{"path", below + f.path}, {"bytes", f.bytes}, {"digest", f.digest.hex()}});
  for (const KeptFiles::LeftOut& l : kept.left_out)
    left_out.push_back({{"path", below + l.path}, {"why", l.why}});
  if (0 < kept.left_out_beside)
    left_out.push_back({{"path", below}, {"why", std::to_string(kept.left_out_beside) + " more"}});
}

}  // namespace

Status AttemptRun::keep_files() {
  const std::vector<std::string>& wanted = input_.method->keep;
  if (wanted.empty() || !recorder_ || !workspace_) return ok_status();
  constexpr std::string_view kHome = "~/";
  std::vector<std::string> of_home, of_workspace;
  for (const std::string& glob : wanted) {
    if (glob.starts_with(kHome))
      of_home.push_back(glob.substr(kHome.size()));
    else
      of_workspace.push_back(glob);
  }
  KeepRoom room{kKeptFiles, kKeptFileBytes, kKeptBytes, 0};
  Json files = Json::array(), left_out = Json::array();
  const auto keep = [&](const fs::path& from, const std::vector<std::string>& globs,
                        const std::string& name) -> Status {
    if (globs.empty()) return ok_status();
    const std::string below = std::string(kKeptDir) + "/" + name + "/";
    room.depth = kArchiveDepth - static_cast<std::size_t>(std::ranges::count(below, '/'));
    PROCTOR_TRY(const KeptFiles kept,
                proctor::keep_files(from, globs, recorder_->dir() / below, room));
    add(kept, below, files, left_out);
    return ok_status();
  };
  PROCTOR_CHECK_OK(keep(workspace_->dir(), of_workspace, "workspace"));
  if (!of_home.empty()) {
    PROCTOR_TRY(const fs::path home, writable_dir(home_name(Room::kAgent)));
    PROCTOR_CHECK_OK(keep(home, of_home, "home"));
  }
  note("agent.kept", Actor::kHarness,
       Json{{"files", std::move(files)}, {"left_out", std::move(left_out)}});
  return ok_status();
}

}  // namespace proctor
