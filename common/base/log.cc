#include "common/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor::log {
namespace {
spdlog::level::level_enum level_of(Level l) {
  switch (l) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Whatever a message quotes, it is one message: no control byte reaches a terminal, and a line end
// inside it does not begin a line that looks like another's.
std::string shown(std::string_view text) {
  std::string out;
  constexpr std::string_view kIndent = "\n    ";
  for (const std::string_view line : split(text, '\n'))
    out.append(kIndent).append(printable(line, 4 * line.size() + 1));
  return out.substr(kIndent.size());
}
}  // namespace

void init(std::string_view who, Level least) {
  auto logger = std::make_shared<spdlog::logger>(
      std::string(who), std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %n: %v");
  logger->set_level(level_of(least));
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}
void debug(std::string_view text) {
  spdlog::debug("{}", shown(text));
}
void info(std::string_view text) {
  spdlog::info("{}", shown(text));
}
void warn(std::string_view text) {
  spdlog::warn("{}", shown(text));
}
void error(std::string_view text) {
  spdlog::error("{}", shown(text));
}
void warn_seldom(std::string_view text) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kMost = 100;
  static std::mutex mutex;
  static std::map<std::string, std::pair<Clock::time_point, std::uint64_t>, std::less<>> said;
  const std::lock_guard lock(mutex);
  const auto now = Clock::now();
  if (!said.contains(text) && kMost <= said.size()) {
    std::erase_if(said, [&](const auto& s) { return s.second.first <= now; });
    if (kMost <= said.size()) return;
  }
  auto& [until, left_out] = said[std::string(text)];
  if (now < until && ++left_out != 0) return;
  warn(std::string(text) +
       (left_out == 0 ? "" : " (" + std::to_string(left_out) + " times since it was said)"));
  until = now + std::chrono::minutes(1);
  left_out = 0;
}
}  // namespace proctor::log
