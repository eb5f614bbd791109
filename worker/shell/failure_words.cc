#include "worker/shell/failure_words.h"

#include <algorithm>
#include <fstream>

#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {

constexpr std::size_t kLines = 3, kLineBytes = 300, kRefusedListed = 5;
constexpr std::streamoff kTailBytes = 4'096;

std::string tail_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const auto size = static_cast<std::streamoff>(in.tellg());
  in.seekg(std::max<std::streamoff>(0, size - kTailBytes));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

std::string last_lines(std::string_view text) {
  std::string out;
  for (std::size_t found = 0; found < kLines && !text.empty();) {
    const std::size_t cut = text.find_last_of('\n');
    const std::size_t begin = cut == std::string_view::npos ? 0 : cut + 1;
    const std::string_view line = trimmed(text.substr(begin), " \t\r");
    text = text.substr(0, cut == std::string_view::npos ? 0 : cut);
    if (line.empty()) continue;
    out = printable(line, kLineBytes) + (found == 0 ? "" : " | ") + out;
    ++found;
  }
  return out;
}

std::string failure_words(const fs::path& stderr_file, const std::vector<std::string>& refused) {
  std::string out;
  if (const std::string said = last_lines(tail_of(stderr_file)); !said.empty())
    out = "stderr ends: " + said;
  for (std::size_t i = 0; i < std::min(refused.size(), kRefusedListed); ++i)
    out += (i != 0        ? ", "
            : out.empty() ? "refused by its network: "
                          : "; refused by its network: ") +
           printable(refused[i], kLineBytes);
  if (kRefusedListed < refused.size())
    out += " and " + std::to_string(refused.size() - kRefusedListed) + " more";
  return out;
}

}  // namespace proctor
