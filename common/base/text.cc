#include "common/base/text.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "common/base/parse.h"

namespace proctor {
namespace {
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (1 < i && 1 < j && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before = row;
    std::swap(row, next);
  }
  return row[b.size()];
}

// Bytes of the well-formed UTF-8 sequence at the front, 0 if there is none (RFC 3629).
std::size_t sequence_length(std::string_view s) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const auto tail = [&](std::size_t i, unsigned lo = 0x80, unsigned hi = 0xBF) {
    return i < s.size() && lo <= at(i) && at(i) <= hi;
  };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  if (0xC2 <= lead && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead == 0xE0) return tail(1, 0xA0) && tail(2) ? 3 : 0;
  if (lead == 0xED) return tail(1, 0x80, 0x9F) && tail(2) ? 3 : 0;
  if (0xE1 <= lead && lead <= 0xEF) return tail(1) && tail(2) ? 3 : 0;
  if (lead == 0xF0) return tail(1, 0x90) && tail(2) && tail(3) ? 4 : 0;
  if (0xF1 <= lead && lead <= 0xF3) return tail(1) && tail(2) && tail(3) ? 4 : 0;
  if (lead == 0xF4) return tail(1, 0x80, 0x8F) && tail(2) && tail(3) ? 4 : 0;
  return 0;
}

// Unicode's Default_Ignorable_Code_Point: shown as nothing at all.  Joiners of U+200C and U+200D
// stay: scripts and emoji are spelled with them.
bool is_ignorable(unsigned code) {
  struct Range {
    unsigned first, last;
  };
  constexpr std::array<Range, 17> kRanges{{{0x00AD, 0x00AD},
                                           {0x034F, 0x034F},
                                           {0x061C, 0x061C},
                                           {0x115F, 0x1160},
                                           {0x17B4, 0x17B5},
                                           {0x180B, 0x180F},
                                           {0x200B, 0x200B},
                                           {0x200E, 0x200F},
                                           {0x202A, 0x202E},
                                           {0x2060, 0x206F},
                                           {0x3164, 0x3164},
                                           {0xFE00, 0xFE0F},
                                           {0xFEFF, 0xFEFF},
                                           {0xFFA0, 0xFFA0},
                                           {0xFFF0, 0xFFF8},
                                           {0x1BCA0, 0x1BCA3},
                                           {0x1D173, 0x1D17A}}};
  return (0xE0000 <= code && code <= 0xE0FFF) || std::ranges::any_of(kRanges, [&](const Range& r) {
           return r.first <= code && code <= r.last;
         });
}

// Controls, and what changes how the characters beside it are shown: line ends of Unicode, marks
// and overrides of direction, characters without width that make two names look the same.
bool misleads(std::string_view sequence) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  switch (sequence.size()) {
    case 1:
      return at(0) < 0x20 || at(0) == 0x7F;
    case 2:
      return (at(0) == 0xC2 && at(1) < 0xA0) ||  // C1: terminals obey them too
             is_ignorable((at(0) & 31U) << 6 | (at(1) & 63U));
    case 3: {
      const unsigned code = (at(0) & 15U) << 12 | (at(1) & 63U) << 6 | (at(2) & 63U);
      return is_ignorable(code) || code == 0x2028 || code == 0x2029 ||
             0xFFFE <= code;  // the last two are in no XML
    }
    default:
      return is_ignorable((at(0) & 7U) << 18 | (at(1) & 63U) << 12 | (at(2) & 63U) << 6 |
                          (at(3) & 63U));
  }
}
}  // namespace

std::optional<std::string> nearest_word(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  std::optional<std::string> best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  constexpr std::size_t kWordMax = 64;
  if (kWordMax < word.size()) return best;
  for (const std::string_view c : candidates) {
    const std::size_t n = edits(word, c);
    if (n < least) {
      least = n;
      best = std::string(c);
    }
  }
  return best;
}

std::string printable(std::string_view bytes, std::size_t bytes_max) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(std::min(bytes.size(), bytes_max));
  while (!bytes.empty()) {
    if (bytes_max <= out.size()) return out + "...";
    // Most of most texts at once.
    const std::size_t most = std::min(bytes.size(), bytes_max - out.size());
    std::size_t plain = 0;
    while (plain < most && ' ' <= bytes[plain] && bytes[plain] < 0x7F) ++plain;
    if (plain != 0) {
      out += bytes.substr(0, plain);
      bytes.remove_prefix(plain);
      continue;
    }
    const std::size_t n = sequence_length(bytes);
    if (n == 0 || misleads(bytes.substr(0, n))) {
      for (const char byte : bytes.substr(0, std::max<std::size_t>(n, 1))) {
        const auto c = static_cast<unsigned char>(byte);
        out += "\\x";
        out += kHex[c >> 4];
        out += kHex[c & 15];
      }
      bytes.remove_prefix(std::max<std::size_t>(n, 1));
      continue;
    }
    out += bytes.substr(0, n);
    bytes.remove_prefix(n);
  }
  return out;
}

std::string shell_quoted(std::string_view word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

bool is_utf8(std::string_view bytes) {
  constexpr std::uint64_t kTops = 0x8080808080808080U;
  while (!bytes.empty()) {
    std::uint64_t eight = kTops;
    if (sizeof eight <= bytes.size()) std::memcpy(&eight, bytes.data(), sizeof eight);
    if ((eight & kTops) == 0) {  // most of most texts
      bytes.remove_prefix(sizeof eight);
      continue;
    }
    const std::size_t n = sequence_length(bytes);
    if (n == 0) return false;
    bytes.remove_prefix(n);
  }
  return true;
}

namespace {
std::vector<std::string_view> components(std::string_view text) {
  std::vector<std::string_view> out;
  out.reserve(8);
  while (!text.empty())
    if (const std::string_view part = take_until(text, '/'); !part.empty()) out.push_back(part);
  return out;
}

// Two pointers and one point to come back to: linear in practice, never exponential.
bool component_matches(std::string_view glob, std::string_view name) {
  std::size_t g = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_name = 0;
  while (n < name.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      star_name = n;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == name[n])) {
      ++g;
      ++n;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}
}  // namespace

namespace {
enum class Meets : std::uint8_t { kNot, kBelow, kCovers };  // kBelow: it may cover what is below

Meets meets(std::string_view glob, const std::vector<std::string_view>& names) {
  const std::vector<std::string_view> g = components(glob);
  if (g.empty()) return Meets::kNot;
  // at[i]: the first i parts match what was read of the path.
  std::string at(g.size() + 1, 0), next;
  at[0] = 1;
  const auto skip_stars = [&] {
    for (std::size_t i = 0; i < g.size(); ++i)
      if (at[i] != 0 && g[i] == "**") at[i + 1] = 1;
  };
  skip_stars();
  for (const std::string_view name : names) {
    next.assign(g.size() + 1, 0);
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (at[i] == 0) continue;
      if (g[i] == "**")
        next[i] = 1;
      else if (component_matches(g[i], name))
        next[i + 1] = 1;
    }
    at.swap(next);
    skip_stars();
    // A match of a folder on the way (not of the empty path) covers what is under it.
    if (at.back() != 0) return Meets::kCovers;
  }
  return at.find('\1') == std::string::npos ? Meets::kNot : Meets::kBelow;
}

bool any_meets(const std::vector<std::string>& globs, std::string_view path, Meets least) {
  if (globs.empty()) return false;
  const std::vector<std::string_view> names = components(path);
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& g) { return least <= meets(g, names); });
}
}  // namespace

bool glob_covers(std::string_view glob, std::string_view path) {
  return meets(glob, components(path)) == Meets::kCovers;
}

bool any_glob_reaches(const std::vector<std::string>& globs, std::string_view folder) {
  return any_meets(globs, folder, Meets::kBelow);
}

bool any_glob_covers(const std::vector<std::string>& globs, std::string_view path) {
  return any_meets(globs, path, Meets::kCovers);
}
}  // namespace proctor
