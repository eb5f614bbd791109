#include "common/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <string>

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
  spdlog::debug("{}", text);
}
void info(std::string_view text) {
  spdlog::info("{}", text);
}
void warn(std::string_view text) {
  spdlog::warn("{}", text);
}
void error(std::string_view text) {
  spdlog::error("{}", text);
}

}  // namespace proctor::log
