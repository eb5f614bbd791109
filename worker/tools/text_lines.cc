#include "worker/tools/text_lines.h"

#include <algorithm>
#include <array>
#include <optional>

#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {
constexpr std::size_t kLinesNamed = 10, kLineBytes = 2'000;

// How many bytes of `bytes` are whole characters, when it was cut at its end.
std::size_t whole(std::string_view bytes) {
  constexpr unsigned kMask = 0xC0, kFollows = 0x80, kCharacterMax = 4;
  std::size_t n = bytes.size();
  for (std::size_t back = 1; back <= std::min<std::size_t>(kCharacterMax, n); ++back) {
    const auto c = static_cast<unsigned char>(bytes[n - back]);
    if ((c & kMask) == kFollows) continue;
    const std::size_t length = c < kFollows ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    return back < length ? n - back : n;
  }
  return n;
}

std::string named(const std::vector<std::uint64_t>& lines) {
  std::string out;
  for (std::size_t i = 0; i < std::min(lines.size(), kLinesNamed); ++i) {
    if (0 < i) out += ", ";
    out += std::to_string(lines[i]);
  }
  if (kLinesNamed < lines.size()) out += ", ...";
  return out;
}
}  // namespace

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    out.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return out;
}

std::string_view bare(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  return line;
}

bool is_text(std::string_view bytes) {
  return bytes.find('\0') == std::string_view::npos && is_utf8(bytes);
}

std::string as_text(std::string_view bytes) {
  if (is_text(bytes)) return std::string(bytes);
  // What begins like a character and is none becomes a mark, byte by byte.
  constexpr std::string_view kMark = "\xEF\xBF\xBD";
  constexpr std::size_t kCharacterMax = 4;
  std::string out;
  while (!bytes.empty()) {
    std::size_t size = 1;
    while (size < std::min(kCharacterMax, bytes.size()) && !is_utf8(bytes.substr(0, size))) ++size;
    if (bytes.front() == '\0' || !is_utf8(bytes.substr(0, size))) {
      out += kMark;
      size = 1;
    } else {
      out += bytes.substr(0, size);
    }
    bytes.remove_prefix(size);
  }
  return out;
}

std::string head_of(std::string_view bytes, std::size_t bytes_max) {
  if (bytes.size() <= bytes_max) return as_text(bytes);
  const std::string_view head = bytes.substr(0, bytes_max);
  return as_text(head.substr(0, whole(head)));
}

NumberedLines number_lines(std::string_view text, std::uint64_t offset, std::uint64_t limit,
                           std::size_t bytes_max) {
  NumberedLines out;
  bool full = false;
  for (const std::string_view line : lines_of(text)) {
    ++out.lines;
    if (out.lines < offset || limit <= out.shown || full) continue;
    std::string told = std::to_string(out.lines) + "\t" + head_of(bare(line), kLineBytes);
    if (kLineBytes < bare(line).size()) told += " [...]";
    told += '\n';
    full = bytes_max < out.text.size() + told.size();
    if (full) continue;
    out.text += told;
    ++out.shown;
  }
  return out;
}

std::string head_and_tail(std::string_view bytes, std::size_t bytes_max) {
  if (bytes.size() <= bytes_max) return as_text(bytes);
  const std::size_t half = bytes_max / 2;
  std::string_view head = bytes.substr(0, half), tail = bytes.substr(bytes.size() - half);
  // Whole lines, where there are any.
  if (const std::size_t end = head.rfind('\n'); end != std::string_view::npos)
    head = head.substr(0, end + 1);
  else
    head = head.substr(0, whole(head));
  if (const std::size_t begin = tail.find('\n'); begin + 1 < tail.size())
    tail.remove_prefix(begin + 1);
  std::string out = as_text(head);
  if (!out.ends_with('\n')) out += '\n';
  out += "[" + std::to_string(bytes.size() - head.size() - tail.size()) + " bytes left out]\n";
  return out + as_text(tail);
}

Result<EditedText> edit_text(std::string_view old, const EditFile& edit) {
  EditedText out;
  std::uint64_t line = 1;
  std::size_t from = 0, counted = 0;
  for (;;) {
    const std::size_t at = old.find(edit.old_text, from);
    if (at == std::string_view::npos) break;
    line +=
        static_cast<std::uint64_t>(std::count(old.begin() + static_cast<std::ptrdiff_t>(counted),
                                              old.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    counted = at;
    out.lines.push_back(line);
    if (out.lines.size() <= edit.count) {
      out.text += old.substr(from, at - from);
      out.text += edit.new_text;
      if (kEditedMax < out.text.size())
        return Error{Errc::kInvalid, "the file would have more than 16 MiB"};
    }
    from = at + edit.old_text.size();
  }
  if (out.lines.empty())
    return Error{Errc::kInvalid,
                 "old_text is not there: read the file again, white space counts as well"};
  if (out.lines.size() != edit.count)
    return Error{Errc::kInvalid, "old_text is there " + std::to_string(out.lines.size()) +
                                     " times and not " + std::to_string(edit.count) +
                                     ", at lines " + named(out.lines) +
                                     ": say more of what is around it, or count"};
  out.text += old.substr(from);
  if (kEditedMax < out.text.size())
    return Error{Errc::kInvalid, "the file would have more than 16 MiB"};
  return out;
}

namespace {
constexpr std::uint64_t kLineMost = 100'000'000;
constexpr std::size_t kComparedMost = 20'000'000;

Error at_line(std::size_t line, std::string_view what) {
  return {Errc::kInvalid, "line " + std::to_string(line) + " of the patch: " + std::string(what)};
}

// "12" or "12,3".
bool take_range(std::string_view& text, std::uint64_t& begin, std::uint64_t& lines) {
  const auto take = [&text](std::uint64_t& out) {
    return take_number(text, out) && out <= kLineMost;
  };
  lines = 1;
  return take(begin) && (!take_word(text, ",") || take(lines));
}

bool read_hunk_head(std::string_view line, DiffHunk& out) {
  return take_word(line, "@@ -") && take_range(line, out.old_begin, out.old_lines) &&
         take_word(line, " +") && take_range(line, out.new_begin, out.new_lines) &&
         take_word(line, " @@");
}

class DiffReader {
 public:
  explicit DiffReader(std::string_view diff) : lines_(lines_of(diff)) {}

  Result<std::vector<DiffFile>> read() {
    while (i_ < lines_.size()) {
      const std::string_view line = bare(lines_[i_]);
      if (line.starts_with("--- ")) {
        PROCTOR_CHECK_OK(file());
        continue;
      }
      if (line.starts_with("@@ -")) return at_line(i_ + 1, "a hunk of no file: --- and +++ first");
      PROCTOR_CHECK_OK(other(line));
      ++i_;
    }
    PROCTOR_CHECK_OK(end_of_head());
    if (files_.empty())
      return Error{Errc::kInvalid, "it is no unified diff: there is no line that begins with ---"};
    return std::move(files_);
  }

 private:
  // A line between two files.
  Status other(std::string_view line) {
    struct Refused {
      std::string_view front, why;
    };
    constexpr std::array<Refused, 7> kRefused{
        {{"rename from ", "a rename: write the new file and remove the old one"},
         {"copy from ", "a copy: write the new file"},
         {"GIT binary patch", "a binary patch"},
         {"Binary files ", "a binary patch"},
         {"old mode ", "a change of a mode: use the shell"},
         {"new file mode 12", "a link: use the shell"},
         {"new file mode 16", "a submodule"}}};
    for (const Refused& no : kRefused)
      if (line.starts_with(no.front)) return at_line(i_ + 1, no.why);
    if (line.starts_with("diff --git ")) PROCTOR_CHECK_OK(end_of_head());
    if (line.starts_with("new file mode ")) {
      head_at_ = i_ + 1;
      executable_ = line.ends_with("755");
    }
    if (line.starts_with("deleted file mode ")) head_at_ = i_ + 1;
    return ok_status();
  }
  // An empty file has no hunk, so nothing names it in a form that can be relied on.
  Status end_of_head() {
    if (head_at_ != 0) return at_line(head_at_, "an empty file: use write_file or the shell");
    return ok_status();
  }

  Result<std::string> path(std::string_view line, bool& prefixed, char prefix) const {
    std::string_view said = line.substr(0, line.find('\t'));
    while (said.ends_with('\r') || said.ends_with(' ')) said.remove_suffix(1);
    if (said == "/dev/null") return std::string();
    if (said.starts_with('"')) return at_line(i_ + 1, "a path in quotes");
    const std::string front{prefix, '/'};
    prefixed = take_word(said, front);
    auto out = tool_path(said);
    if (!out.ok()) return at_line(i_ + 1, "the path " + out.error().detail);
    if (out->empty()) return at_line(i_ + 1, "no path");
    return out;
  }

  Status file() {
    if (files_.size() == kDiffFilesMax) return at_line(i_ + 1, "more files than are taken");
    DiffFile out;
    out.at = i_ + 1;
    bool from_prefixed = true, to_prefixed = true;
    const std::string_view from_line = bare(lines_[i_]).substr(4);
    PROCTOR_TRY(out.from, path(from_line, from_prefixed, 'a'));
    if (++i_ == lines_.size() || !lines_[i_].starts_with("+++ "))
      return at_line(i_ + 1, "+++ must follow ---");
    const std::string_view to_line = bare(lines_[i_]).substr(4);
    PROCTOR_TRY(out.to, path(to_line, to_prefixed, 'b'));
    // A folder may be called a or b: both sides have the prefix of a diff or none has.
    if (from_prefixed != to_prefixed) {
      bool none = false;
      PROCTOR_TRY(out.from, path(from_line, none, '\0'));
      PROCTOR_TRY(out.to, path(to_line, none, '\0'));
    }
    if (out.from.empty() && out.to.empty()) return at_line(i_ + 1, "no file on either side");
    if (!out.from.empty() && !out.to.empty() && out.from != out.to)
      return at_line(i_ + 1, "two names of one file: a rename is not taken");
    for (const DiffFile& other : files_)
      if (other.path() == out.path()) return at_line(out.at, "a file for the second time");
    ++i_;
    out.executable = out.from.empty() && executable_;
    executable_ = false;
    head_at_ = 0;
    while (i_ < lines_.size() && lines_[i_].starts_with("@@ -")) PROCTOR_CHECK_OK(hunk(out));
    if (out.hunks.empty()) return at_line(i_ + 1, "no hunk of the file above");
    files_.push_back(std::move(out));
    return ok_status();
  }

  Status hunk(DiffFile& file) {
    if (++hunks_ > kDiffHunksMax) return at_line(i_ + 1, "more hunks than are taken");
    DiffHunk out;
    out.at = i_ + 1;
    if (!read_hunk_head(lines_[i_], out)) return at_line(i_ + 1, "a hunk is @@ -1,2 +1,3 @@");
    ++i_;
    std::uint64_t old_left = out.old_lines, new_left = out.new_lines;
    while (0 < old_left || 0 < new_left) {
      if (i_ == lines_.size()) return short_of(out, old_left, new_left);
      const std::string_view line = lines_[i_];
      // A context line that is empty, as editors leave it.
      const bool empty = bare(line).empty() || bare(line) == "\r";
      const char kind = empty ? ' ' : line.front();
      if (kind == '\\') {
        PROCTOR_CHECK_OK(no_end(out));
        continue;
      }
      const bool old_side = kind == ' ' || kind == '-', new_side = kind == ' ' || kind == '+';
      if (!old_side && !new_side) return short_of(out, old_left, new_left);
      if ((old_side && old_left == 0) || (new_side && new_left == 0))
        return short_of(out, old_left, new_left);
      old_left -= old_side ? 1 : 0;
      new_left -= new_side ? 1 : 0;
      std::string text(empty ? line : line.substr(1));
      if (!text.ends_with('\n')) text += '\n';  // the last line of the patch itself
      out.lines.push_back({kind, std::move(text)});
      ++i_;
    }
    while (i_ < lines_.size() && lines_[i_].starts_with('\\')) PROCTOR_CHECK_OK(no_end(out));
    if (out.lines.empty()) return at_line(out.at, "a hunk without lines");
    file.hunks.push_back(std::move(out));
    return ok_status();
  }

  Error short_of(const DiffHunk& hunk, std::uint64_t old_left, std::uint64_t new_left) const {
    return at_line(i_ + 1, "the hunk of line " + std::to_string(hunk.at) +
                               " promises other numbers of lines than it has (" +
                               std::to_string(hunk.old_lines - old_left) + " old and " +
                               std::to_string(hunk.new_lines - new_left) + " new ones so far)");
  }

  // "\ No newline at end of file", of the line above.
  Status no_end(DiffHunk& hunk) {
    if (hunk.lines.empty() || !hunk.lines.back().text.ends_with('\n'))
      return at_line(i_ + 1, "it speaks of no line");
    hunk.lines.back().text.pop_back();
    ++i_;
    return ok_status();
  }

  const std::vector<std::string_view> lines_;
  std::size_t i_ = 0, hunks_ = 0, head_at_ = 0;
  bool executable_ = false;
  std::vector<DiffFile> files_;
};

class Hunks {
 public:
  Hunks(const DiffFile& file, std::string_view old) : file_(file), old_(lines_of(old)) {}

  Result<std::string> apply() {
    std::string out;
    std::size_t done = 0;  // lines of the old text
    for (std::size_t h = 0; h < file_.hunks.size(); ++h) {
      const DiffHunk& hunk = file_.hunks[h];
      std::vector<std::string_view> before;
      for (const DiffLine& line : hunk.lines)
        if (line.kind != '+') before.emplace_back(line.text);
      // A hunk that only adds stands behind the line that it names.
      const std::uint64_t named = before.empty() ? hunk.old_begin + 1 : hunk.old_begin;
      const std::size_t wanted = static_cast<std::size_t>(0 < named ? named - 1 : 0);
      PROCTOR_TRY(const auto place, find(before, done, wanted));
      if (!place) return misfit(h, before, std::max(wanted, done));
      for (; done < *place; ++done) out += old_[done];
      for (const DiffLine& line : hunk.lines) {
        if (line.kind != '-') out += line.text;
        done += line.kind == '+' ? 0 : 1;
      }
    }
    for (; done < old_.size(); ++done) out += old_[done];
    if (file_.to.empty() && !out.empty())
      return Error{Errc::kInvalid,
                   "the patch removes " + printable(file_.from) + ", but not all of its lines"};
    return out;
  }

 private:
  bool fits(const std::vector<std::string_view>& before, std::size_t at) {
    if (old_.size() < at || old_.size() - at < before.size()) return false;
    for (std::size_t i = 0; i < before.size(); ++i) {
      ++compared_;
      if (old_[at + i] != before[i]) return false;
    }
    return true;
  }

  // The nearest place from `done` on.
  Result<std::optional<std::size_t>> find(const std::vector<std::string_view>& before,
                                          std::size_t done, std::size_t wanted) {
    if (before.empty()) {
      const bool there = done <= wanted && wanted <= old_.size();
      return there ? std::optional(wanted) : std::nullopt;
    }
    wanted = std::min(wanted, old_.size());
    for (std::size_t away = 0; away <= old_.size(); ++away) {
      if (kComparedMost < ++compared_)
        return Error{Errc::kInvalid, "the patch could stand at too many places: use edit_file"};
      if (done + away <= wanted && fits(before, wanted - away)) return std::optional(wanted - away);
      if (0 < away && done <= wanted + away && fits(before, wanted + away))
        return std::optional(wanted + away);
    }
    return std::optional<std::size_t>();
  }

  Error misfit(std::size_t hunk, const std::vector<std::string_view>& before,
               std::size_t at) const {
    std::string text = "hunk " + std::to_string(hunk + 1) + " (line " +
                       std::to_string(file_.hunks[hunk].at) + " of the patch) does not fit " +
                       printable(file_.path());
    for (std::size_t i = 0; i < before.size(); ++i) {
      const bool past = old_.size() <= at + i;
      if (!past && old_[at + i] == before[i]) continue;
      text += ": line " + std::to_string(at + i + 1) + " should be \"" +
              printable(bare(before[i])) + "\" and is ";
      text += past ? "not there" : "\"" + printable(bare(old_[at + i])) + "\"";
      break;
    }
    return {Errc::kInvalid, text};
  }

  const DiffFile& file_;
  const std::vector<std::string_view> old_;
  std::size_t compared_ = 0;
};
}  // namespace

Result<std::vector<DiffFile>> read_unified_diff(std::string_view diff) {
  return DiffReader(diff).read();
}

Result<std::string> apply_hunks(const DiffFile& file, std::string_view old) {
  return Hunks(file, old).apply();
}
}  // namespace proctor
