#include "common/pilot/patch_text.h"

#include <algorithm>
#include <optional>

#include "common/base/parse.h"

namespace proctor {
namespace {

struct Counts {
  std::uint64_t old_start = 0, old_lines = 1, new_lines = 1;
  std::string section;
};

// "@@ -1,2 +1,3 @@ void f()"; a count that is not there is 1.
std::optional<Counts> hunk_header(std::string_view line) {
  Counts out;
  std::uint64_t new_start = 0;
  if (!take_word(line, "@@ -") || !take_number(line, out.old_start)) return std::nullopt;
  if (take_word(line, ",") && !take_number(line, out.old_lines)) return std::nullopt;
  if (!take_word(line, " +") || !take_number(line, new_start)) return std::nullopt;
  if (take_word(line, ",") && !take_number(line, out.new_lines)) return std::nullopt;
  if (!take_word(line, " @@")) return std::nullopt;
  out.section = line;
  return out;
}

// As git writes a path with unusual bytes: "b/\303\244".
std::string unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"') return std::string(text);
  std::string out;
  for (std::size_t i = 1; i < text.size() && text[i] != '"'; ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    const char c = text[++i];
    if ('0' <= c && c <= '3' && i + 2 < text.size()) {
      const int byte = (c - '0') * 64 + (text[i + 1] - '0') * 8 + (text[i + 2] - '0');
      out.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      out.push_back(c == 't' ? '\t' : c == 'n' ? '\n' : c);
    }
  }
  return out;
}

// Without "a/" or "b/", and without the time that diff(1) puts behind a tab.  Empty: no file.
std::string path_in(std::string_view text) {
  if (!text.starts_with("\"")) text = text.substr(0, text.find('\t'));
  std::string path = unquoted(text);
  if (path == "/dev/null") return "";
  if (path.starts_with("a/") || path.starts_with("b/")) path.erase(0, 2);
  return path;
}

// "diff --git a/X b/X": both halves are one path where nothing else in the header says it.
std::string path_in_git_line(std::string_view both) {
  if (both.starts_with("\"")) return path_in(both);
  const std::size_t half = both.size() / 2;
  return half < both.size() && both[half] == ' ' ? path_in(both.substr(0, half)) : "";
}

class PatchParser {
 public:
  void take(std::string_view line) {
    if (0 < old_left_ || 0 < new_left_) {
      if (in_hunk(line)) return;
      old_left_ = new_left_ = 0;  // shorter than its header says: the diff will not apply
    }
    if (line.starts_with("\\") && !out_.empty() && !out_.back().hunks.empty()) {
      out_.back().hunks.back().lines.emplace_back(line);
      return;
    }
    outside(line);
  }
  PatchText finish() { return std::move(out_); }

 private:
  bool in_hunk(std::string_view line) {
    const char mark = line.empty() ? ' ' : line.front();
    if (mark != ' ' && mark != '+' && mark != '-' && mark != '\\') return false;
    out_.back().hunks.back().lines.emplace_back(line.empty() ? " " : line);
    if (mark == ' ' || mark == '-') old_left_ -= std::min<std::uint64_t>(1, old_left_);
    if (mark == ' ' || mark == '+') new_left_ -= std::min<std::uint64_t>(1, new_left_);
    return true;
  }

  void outside(std::string_view line) {
    std::string_view rest = line;
    if (take_word(rest, "diff --git ")) {
      begin_file(line);
      out_.back().path = path_in_git_line(rest);
      git_ = true;
      return;
    }
    if (const auto counts = hunk_header(line); counts && !out_.empty()) {
      out_.back().hunks.push_back({counts->old_start, counts->section, {}});
      old_left_ = counts->old_lines;
      new_left_ = counts->new_lines;
      return;
    }
    if (line.starts_with("--- ") && (out_.empty() || !out_.back().hunks.empty())) {
      begin_file(line);
      git_ = false;
      out_.back().path = path_in(rest.substr(4));
      return;
    }
    if (out_.empty() || !out_.back().hunks.empty()) return;  // what mail puts around a diff
    in_header(line);
  }

  void in_header(std::string_view line) {
    PatchFile& file = out_.back();
    file.header.append(line).push_back('\n');
    std::string_view rest = line;
    if (take_word(rest, "--- ") || take_word(rest, "+++ ")) {
      if (std::string path = path_in(rest); !path.empty()) file.path = std::move(path);
      return;
    }
    if (!git_) return;
    if (take_word(rest, "rename to ") || take_word(rest, "copy to ")) {
      file.path = unquoted(rest);
      file.stands_alone = true;
    }
    file.stands_alone |= line.starts_with("new mode ") || line.starts_with("GIT binary patch") ||
                         line.starts_with("Binary files ");
  }

  void begin_file(std::string_view line) {
    out_.emplace_back();
    out_.back().header.append(line).push_back('\n');
  }

  PatchText out_;
  std::uint64_t old_left_ = 0, new_left_ = 0;
  bool git_ = false;
};

bool changes(const PatchHunk& hunk) {
  return std::ranges::any_of(
      hunk.lines, [](const std::string& line) { return line[0] == '+' || line[0] == '-'; });
}

struct Sizes {
  std::uint64_t old_lines = 0, new_lines = 0;
};
Sizes sizes_of(const PatchHunk& hunk) {
  Sizes out;
  for (const std::string& line : hunk.lines) {
    out.old_lines += line[0] == ' ' || line[0] == '-' ? 1U : 0U;
    out.new_lines += line[0] == ' ' || line[0] == '+' ? 1U : 0U;
  }
  return out;
}

// Where a hunk begins in the new file, when those before it made that `added` lines longer.  A side
// without a line names the one before it.
std::uint64_t new_start(const PatchHunk& hunk, const Sizes& sizes, std::int64_t added) {
  std::int64_t at = static_cast<std::int64_t>(hunk.old_start) + added;
  if (sizes.old_lines == 0) ++at;
  if (sizes.new_lines == 0) --at;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, at));
}

std::int64_t growth(const Sizes& sizes) {
  return static_cast<std::int64_t>(sizes.new_lines) - static_cast<std::int64_t>(sizes.old_lines);
}

}  // namespace

PatchText parse_patch(std::string_view diff) {
  PatchParser parser;
  while (!diff.empty()) parser.take(take_until(diff, '\n'));
  PatchText out = parser.finish();
  for (PatchFile& file : out)
    if (file.hunks.empty()) file.stands_alone = true;
  return out;
}

std::string render_patch(const PatchText& patch) {
  std::string out;
  for (const PatchFile& file : patch) {
    std::string body;
    std::int64_t added = 0;
    for (const PatchHunk& hunk : file.hunks) {
      if (!changes(hunk)) continue;
      const Sizes sizes = sizes_of(hunk);
      body += "@@ -" + std::to_string(hunk.old_start) + "," + std::to_string(sizes.old_lines) +
              " +" + std::to_string(new_start(hunk, sizes, added)) + "," +
              std::to_string(sizes.new_lines) + " @@" + hunk.section + "\n";
      for (const std::string& line : hunk.lines) body.append(line).push_back('\n');
      added += growth(sizes);
    }
    if (!body.empty() || file.stands_alone) out.append(file.header).append(body);
  }
  return out;
}

std::uint64_t new_line(const PatchFile& file, std::size_t hunk, std::size_t line) {
  std::int64_t added = 0;
  for (std::size_t h = 0; h < hunk; ++h) added += growth(sizes_of(file.hunks[h]));
  const PatchHunk& here = file.hunks[hunk];
  std::uint64_t at = new_start(here, sizes_of(here), added);
  for (std::size_t i = 0; i < line; ++i)
    at += here.lines[i][0] == ' ' || here.lines[i][0] == '+' ? 1U : 0U;
  return at;
}

}  // namespace proctor
