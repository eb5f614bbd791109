#pragma once
// Small phrases of messages for people.
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/text.h"

namespace proctor {

// "1 run", "2 runs".
inline std::string counted(std::uint64_t n, std::string_view one) {
  return std::to_string(n) + " " + std::string(one) + (n == 1 ? "" : "s");
}

// The last `bytes_max` bytes of what a program wrote, safe to print, on one line: "; " between its
// lines.
inline std::string last_lines(std::string_view text, std::size_t bytes_max) {
  std::string out;
  for (const char c : text.substr(0, text.find_last_not_of("\r\n") + 1))
    out += c == '\n' ? std::string("; ") : std::string(1, c);
  if (bytes_max < out.size()) out.erase(0, out.size() - bytes_max);
  return printable(out, 4 * bytes_max);  // each byte may become \xNN
}

}  // namespace proctor
