#include "common/trace/event_file.h"

#include <string>
#include <string_view>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/trace/evidence.h"

namespace proctor {

Status each_event(const fs::path& run_dir, const std::function<void(const Event&)>& take) {
  PROCTOR_TRY(const std::string text, read_file(run_dir / kEventsFile, kEventLogBytes));
  EventChain chain;
  std::string_view rest = text;
  for (std::uint64_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    const Result<Event> event = chain.accept(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    if (!event.ok())
      return Error{Errc::kCorrupt, std::string(kEventsFile) + ":" + std::to_string(line) + ": " +
                                       event.error().detail};
    take(*event);
  }
  return ok_status();
}

Result<Json> last_event(const fs::path& run_dir, std::string_view type) {
  Json out;
  PROCTOR_CHECK_OK(each_event(run_dir, [&](const Event& event) {
    if (event.type == type) out = event.payload;
  }));
  return out;
}

Result<std::string> patch_of(const fs::path& run_dir) {
  PROCTOR_TRY(std::string patch, read_file(run_dir / kPatchFile, limits::kPatchBytes));
  if (!patch.empty()) return patch;
  PROCTOR_TRY(const Json mutation, last_event(run_dir, "mutation"));
  if (const auto why = mutation.find("unreadable"); why != mutation.end() && why->is_string())
    return Error{Errc::kCorrupt,
                 "what its agent left could not be read: " + printable(why->string())};
  return patch;
}

Result<std::vector<std::string>> refused_paths(const fs::path& run_dir) {
  PROCTOR_TRY(const Json mutation, last_event(run_dir, "mutation"));
  std::vector<std::string> out;
  const auto refused = mutation.find("refused");
  if (refused == mutation.end()) return out;
  if (const auto listed = refused->find("listed"); listed != refused->end())
    for (const Json& path : *listed)
      if (path.is_string()) out.push_back(path.string());
  return out;
}

}  // namespace proctor
