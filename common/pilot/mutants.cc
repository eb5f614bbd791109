#include "common/pilot/mutants.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "common/base/digest.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/plan/numpy_random.h"

namespace proctor {
namespace {

bool is_word(char c) {
  return is_digit(c) || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_';
}
char at(std::string_view text, std::size_t i) {
  return i < text.size() ? text[i] : '\0';
}

std::string with(std::string_view line, std::size_t begin, std::size_t length,
                 std::string_view word) {
  std::string out(line);
  return out.replace(begin, length, word);
}

std::string plus_one(std::string_view digits) {
  std::string out(digits);
  for (std::size_t i = out.size(); 0 < i; --i) {
    if (out[i - 1] != '9') {
      ++out[i - 1];
      return out;
    }
    out[i - 1] = '0';
  }
  return "1" + out;
}

// Neither part of a name (x86) nor of a fraction (0.5).
std::optional<AlteredLine> other_number(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (!is_digit(line[i])) continue;
    std::size_t end = i;
    while (end < line.size() && is_digit(line[end])) ++end;
    const char before = i == 0 ? '\0' : line[i - 1];
    const bool alone = !is_word(before) && before != '.' && !is_word(at(line, end)) &&
                       !(at(line, end) == '.' && is_digit(at(line, end + 1)));
    if (alone) {
      const std::string_view digits = line.substr(i, end - i);
      const std::string next = plus_one(digits);
      return AlteredLine{with(line, i, end - i, next), std::string(digits) + " becomes " + next};
    }
    i = end - 1;
  }
  return std::nullopt;
}

struct Exchange {
  std::string_view from, to;
};
// Two signs before one: "<=" is no "<".
constexpr std::array<Exchange, 6> kComparisons{
    {{"<=", "<"}, {">=", ">"}, {"==", "!="}, {"!=", "=="}, {"<", "<="}, {">", ">="}}};

// Arrows and shifts are no comparisons: ->, =>, <-, <<, >>, <=>.
bool part_of_other_sign(std::string_view line, std::size_t i, std::string_view sign) {
  const char before = i == 0 ? '\0' : line[i - 1];
  const char after = at(line, i + sign.size());
  if (before == '<' || before == '>' || after == '<' || after == '>') return true;
  const bool one = sign.size() == 1;
  return one && (before == '-' || before == '=' || after == '-');
}

std::optional<AlteredLine> other_comparison(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i)
    for (const auto& [from, to] : kComparisons) {
      if (!line.substr(i).starts_with(from)) continue;
      if (part_of_other_sign(line, i, from)) {
        i += from.size() - 1;
        break;
      }
      return AlteredLine{with(line, i, from.size(), to),
                         std::string(from) + " becomes " + std::string(to)};
    }
  return std::nullopt;
}

std::optional<AlteredLine> other_word(std::string_view line, std::string_view a,
                                      std::string_view b) {
  const bool words = is_word(a[0]);
  for (std::size_t i = 0; i < line.size(); ++i)
    for (const auto& [from, to] : {Exchange{a, b}, Exchange{b, a}}) {
      if (!line.substr(i).starts_with(from)) continue;
      const bool inside =
          words && ((0 < i && is_word(line[i - 1])) || is_word(at(line, i + from.size())));
      if (inside) continue;
      return AlteredLine{with(line, i, from.size(), to),
                         std::string(from) + " becomes " + std::string(to)};
    }
  return std::nullopt;
}

// One mistake: a change of the patch, or of one line of it.
struct Change {
  enum class Kind : std::uint8_t { kDropHunk, kOnlyHunk, kDropFile, kDropLine, kSwapLines, kAlter };
  Kind kind = Kind::kDropHunk;
  std::size_t file = 0, hunk = 0, line = 0;
  std::string text{}, what{};  // kAlter: the line as it becomes
};

using Kind = Change::Kind;

bool added(const PatchHunk& hunk, std::size_t i) {
  return i < hunk.lines.size() && hunk.lines[i][0] == '+';
}

template <class Visit>
void for_each_hunk(const PatchText& patch, Visit visit) {
  for (std::size_t f = 0; f < patch.size(); ++f)
    for (std::size_t h = 0; h < patch[f].hunks.size(); ++h) visit(f, h, patch[f].hunks[h]);
}
template <class Visit>
void for_each_added_line(const PatchText& patch, Visit visit) {
  for_each_hunk(patch, [&](std::size_t f, std::size_t h, const PatchHunk& hunk) {
    for (std::size_t i = 0; i < hunk.lines.size(); ++i)
      if (added(hunk, i)) visit(f, h, i, hunk);
  });
}

std::vector<Change> changes_of(const PatchText& patch) {
  std::vector<Change> out;
  for (const Kind kind : {Kind::kDropHunk, Kind::kOnlyHunk})
    for_each_hunk(patch, [&](std::size_t f, std::size_t h, const PatchHunk&) {
      out.push_back({kind, f, h});
    });
  for (std::size_t f = 0; f < patch.size(); ++f) out.push_back({Kind::kDropFile, f});
  for_each_added_line(patch, [&](std::size_t f, std::size_t h, std::size_t i, const PatchHunk&) {
    out.push_back({Kind::kDropLine, f, h, i});
  });
  for_each_added_line(patch, [&](std::size_t f, std::size_t h, std::size_t i, const PatchHunk& in) {
    if (added(in, i + 1)) out.push_back({Kind::kSwapLines, f, h, i});
  });
  for_each_added_line(patch, [&](std::size_t f, std::size_t h, std::size_t i, const PatchHunk& in) {
    for (AlteredLine& one : altered_lines(std::string_view(in.lines[i]).substr(1)))
      out.push_back({Kind::kAlter, f, h, i, "+" + one.line, std::move(one.what)});
  });
  return out;
}

// With the line behind it that says there is no line feed at the end of the file.
void drop_line(PatchHunk& hunk, std::size_t i) {
  const bool marked = i + 1 < hunk.lines.size() && hunk.lines[i + 1][0] == '\\';
  const auto first = hunk.lines.begin() + static_cast<std::ptrdiff_t>(i);
  hunk.lines.erase(first, first + (marked ? 2 : 1));
}

PatchText made(const PatchText& patch, const Change& c) {
  PatchText out;
  switch (c.kind) {
    case Kind::kOnlyHunk:
      out.push_back(patch[c.file]);
      out.front().hunks = {patch[c.file].hunks[c.hunk]};
      return out;
    case Kind::kDropFile:
      out = patch;
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(c.file));
      return out;
    case Kind::kDropHunk:
      out = patch;
      out[c.file].hunks.erase(out[c.file].hunks.begin() + static_cast<std::ptrdiff_t>(c.hunk));
      return out;
    case Kind::kDropLine:
      out = patch;
      drop_line(out[c.file].hunks[c.hunk], c.line);
      return out;
    case Kind::kSwapLines: {
      out = patch;
      std::vector<std::string>& lines = out[c.file].hunks[c.hunk].lines;
      std::swap(lines[c.line], lines[c.line + 1]);
      return out;
    }
    case Kind::kAlter:
      out = patch;
      out[c.file].hunks[c.hunk].lines[c.line] = c.text;
      return out;
  }
  return out;
}

std::string described(const PatchText& patch, const Change& c) {
  const PatchFile& file = patch[c.file];
  const std::string path = printable(file.path);
  if (c.kind == Kind::kDropFile) return path + ": left out";
  const std::string place = path + ":" + std::to_string(new_line(file, c.hunk, c.line)) + ": ";
  switch (c.kind) {
    case Kind::kDropHunk:
      return place + "this hunk is left out";
    case Kind::kOnlyHunk:
      return place + "nothing but this hunk";
    case Kind::kDropLine:
      return place + "the line is left out";
    case Kind::kSwapLines:
      return place + "exchanged with the line after it";
    case Kind::kAlter:
      return place + c.what;
    case Kind::kDropFile:
      break;
  }
  return path;
}

// Every mutant is a copy of the whole patch: of one so large that making all would take minutes,
// those that come first are considered.
constexpr std::size_t kBytesConsidered = std::size_t{256} << 20;

}  // namespace

std::vector<AlteredLine> altered_lines(std::string_view line) {
  std::vector<AlteredLine> out;
  const auto take = [&](std::optional<AlteredLine> one) {
    if (one) out.push_back(*std::move(one));
  };
  take(other_number(line));
  take(other_comparison(line));
  take(other_word(line, "true", "false"));
  take(other_word(line, "and", "or"));
  take(other_word(line, "&&", "||"));
  return out;
}

std::vector<Mutant> mutants_of(const PatchText& patch, std::uint32_t seed, std::uint32_t most) {
  const std::string whole = render_patch(patch);
  std::vector<Change> changes = changes_of(patch);
  const std::size_t considered =
      std::max<std::size_t>(1'000, kBytesConsidered / std::max<std::size_t>(1, whole.size()));
  if (considered < changes.size()) changes.resize(considered);
  std::set<Digest> seen{sha256(whole), sha256("")};
  std::vector<std::size_t> distinct;  // of changes
  for (std::size_t i = 0; i < changes.size(); ++i)
    if (seen.insert(sha256(render_patch(made(patch, changes[i])))).second) distinct.push_back(i);
  std::vector<std::uint32_t> chosen =
      NumpyRandom(seed).permutation(static_cast<std::uint32_t>(distinct.size()));
  if (most < chosen.size()) chosen.resize(most);
  std::ranges::sort(chosen);
  std::vector<Mutant> out;
  for (const std::uint32_t n : chosen) {
    const Change& change = changes[distinct[n]];
    out.push_back({"mutant-" + std::to_string(n + 1), render_patch(made(patch, change)),
                   described(patch, change)});
  }
  return out;
}

}  // namespace proctor
