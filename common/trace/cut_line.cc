#include "common/trace/cut_line.h"

namespace proctor {
namespace {

constexpr std::string_view kBegin = "[proctor: cut here: ", kEnd = " bytes are not kept]\n";

}  // namespace

std::string cut_line(std::uint64_t lost, std::uint64_t written) {
  return "\n" + std::string(kBegin) + std::to_string(lost) + " of " + std::to_string(written) +
         std::string(kEnd);
}

std::optional<std::string> cut_line_of(std::string_view tail) {
  if (!tail.ends_with(kEnd)) return std::nullopt;
  tail.remove_suffix(1);
  const std::size_t begin = tail.rfind('\n');
  if (begin == std::string_view::npos) return std::nullopt;
  tail.remove_prefix(begin + 1);
  if (!tail.starts_with(kBegin)) return std::nullopt;
  return std::string(tail);
}

}  // namespace proctor
