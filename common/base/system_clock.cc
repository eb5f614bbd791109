#include "common/base/system_clock.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace proctor {
Instant mono_now() {
  return Instant(
      std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now().time_since_epoch()));
}

WallTime wall_now() {
  return WallTime(std::chrono::duration_cast<std::chrono::milliseconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count());
}

std::string to_rfc3339(WallTime t) {
  constexpr std::int64_t kMillisPerSecond = 1000;
  const std::time_t seconds = static_cast<std::time_t>(t.raw() / kMillisPerSecond);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 40> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 48> out{};
  std::snprintf(out.data(), out.size(), "%s.%03dZ", date.data(),
                static_cast<int>(t.raw() % kMillisPerSecond));
  return out.data();
}
}  // namespace proctor
