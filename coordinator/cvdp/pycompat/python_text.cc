#include "coordinator/cvdp/pycompat/python_text.h"

#include <array>

namespace proctor::cvdp {
namespace {

// First bytes of what ends a line.
constexpr std::array<bool, 256> kMayEndLine = [] {
  std::array<bool, 256> out{};
  for (const unsigned c : {0x0AU, 0x0BU, 0x0CU, 0x0DU, 0x1CU, 0x1DU, 0x1EU, 0xC2U, 0xE2U})
    out[c] = true;
  return out;
}();

// How many bytes of `text` at `at` end a line; 0: none.
std::size_t line_end(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  switch (byte(at)) {
    case 0x0D:
      return byte(at + 1) == 0x0A ? 2 : 1;
    case 0xC2:
      return byte(at + 1) == 0x85 ? 2 : 0;
    case 0xE2:
      return byte(at + 1) == 0x80 && (byte(at + 2) == 0xA8 || byte(at + 2) == 0xA9) ? 3 : 0;
    default:
      return 1;
  }
}

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t from = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n =
        kMayEndLine[static_cast<unsigned char>(text[at])] ? line_end(text, at) : 0;
    if (n == 0) {
      ++at;
      continue;
    }
    out.push_back(text.substr(from, at - from));
    at += n;
    from = at;
  }
  if (from < text.size()) out.push_back(text.substr(from));
  return out;
}

std::vector<std::string_view> split_at_newlines(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t from = 0;
  for (;;) {
    const std::size_t at = text.find('\n', from);
    out.push_back(text.substr(from, at == std::string_view::npos ? at : at - from));
    if (at == std::string_view::npos) return out;
    from = at + 1;
  }
}

std::string join_lines(const std::vector<std::string_view>& lines) {
  std::size_t size = lines.size();
  for (const std::string_view l : lines) size += l.size();
  std::string out;
  out.reserve(size);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) out += '\n';
    out += lines[i];
  }
  return out;
}

}  // namespace proctor::cvdp
