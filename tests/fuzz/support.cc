#include <algorithm>
#include <cstddef>

#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz {

std::uint8_t take_byte(std::string_view& bytes) {
  if (bytes.empty()) return 0;
  const auto first = static_cast<std::uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  return first;
}

std::string_view take_part(std::string_view& bytes, char end) {
  const std::size_t at = bytes.find(end);
  const std::string_view part = bytes.substr(0, at);
  bytes.remove_prefix(at == std::string_view::npos ? bytes.size() : at + 1);
  return part;
}

void check_diagnostics(const Diagnostics& out, std::string_view text) {
  const auto lines = static_cast<std::uint32_t>(1 + std::ranges::count(text, '\n') +
                                                std::ranges::count(text, '\r'));
  PROCTOR_ASSERT(out.kept().size() <= Diagnostics::kKept);
  PROCTOR_ASSERT(out.kept().empty() == out.empty());
  for (const Diagnostic& d : out.kept()) {
    PROCTOR_ASSERT(1 <= d.at.line && d.at.line <= lines);
    PROCTOR_ASSERT(!d.expected.empty());
    PROCTOR_ASSERT(to_string(d).find('\n') == std::string::npos);
  }
}

const fs::path& scratch_folder() {
  static const TempDir kFolder = [] {
    const fs::path memory = "/dev/shm";
    std::error_code ec;
    return must(
        TempDir::create("proctor-fuzz", fs::is_directory(memory, ec) ? memory : fs::path()));
  }();
  return kFolder.path();
}

}  // namespace proctor::fuzz
