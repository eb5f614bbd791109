#include "worker/services/readiness.h"

#include <algorithm>

namespace proctor {

std::string hosts_of_services(const std::vector<std::string>& names) {
  std::string out = "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n";
  for (const std::string& name : names) out += "127.0.0.1\t" + name + "\n";
  return out;
}

std::string until_it_succeeds(const std::string& command, std::chrono::milliseconds pause) {
  constexpr std::int64_t kSecond = 1000;
  std::string fraction = std::to_string(kSecond + pause.count() % kSecond).substr(1);
  const std::string seconds = std::to_string(pause.count() / kSecond) + "." + fraction;
  // Not every sleep knows fractions.  The newline ends a comment in the command.
  return "until (\n" + command + "\n) </dev/null; do sleep " + seconds +
         " 2>/dev/null || sleep 1; done";
}

Blame blame_for(const std::vector<bool>& workspace, std::size_t failed) {
  const auto end = workspace.begin() + static_cast<std::ptrdiff_t>(failed) + 1;
  return std::find(workspace.begin(), end, true) == end ? Blame::kHost : Blame::kCandidate;
}

}  // namespace proctor
