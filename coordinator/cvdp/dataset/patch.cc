#include "coordinator/cvdp/dataset/patch.h"

#include "common/base/parse.h"
#include "common/base/text.h"
#include "coordinator/cvdp/pycompat/python_diff.h"
#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cvdp {
namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r\x1c\x1d\x1e\x1f";

std::string_view stripped(std::string_view s) {
  const std::size_t from = s.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return {};
  return s.substr(from, s.find_last_not_of(kBlanks) - from + 1);
}

// The line of the new text at which a hunk begins, read as upstream reads it: signs deleted, "@" at
// both ends stripped, the heading cut off.
Result<std::int64_t> hunk_start(std::string_view header) {
  std::string bare;
  for (const char c : header)
    if (c != '-' && c != '+') bare += c;
  std::string_view rest = bare;
  while (!rest.empty() && rest.front() == '@') rest.remove_prefix(1);
  while (!rest.empty() && rest.back() == '@') rest.remove_suffix(1);
  rest = stripped(rest.substr(0, rest.find(" @")));
  const auto wrong = [&] {
    return Error{Errc::kInvalid, "\"" + printable(header, 60) + "\" is no hunk header"};
  };
  const std::size_t blank = rest.find_first_of(" \t");
  if (blank == std::string_view::npos) return wrong();
  std::string_view second = stripped(rest.substr(blank));
  second = second.substr(0, second.find_first_of(", \t"));
  const auto out = whole_number<std::int64_t>(second);
  constexpr std::int64_t kLinesMax = 1'000'000'000'000;
  if (!out || kLinesMax < *out || *out < -kLinesMax) return wrong();
  return *out;
}

std::string out_of_range(std::string_view what, std::int64_t index, std::size_t size) {
  return "Warning: Cannot " + std::string(what) + " line at index " + std::to_string(index) +
         ", out of range (max: " + std::to_string(size) + ")";
}

// The lines of a text with a cursor: edits near it are cheap however long the text is.
class Page {
 public:
  explicit Page(std::vector<std::string_view> lines) : after_(lines.rbegin(), lines.rend()) {}
  std::size_t size() const { return before_.size() + after_.size(); }
  // Hunks that jump to and fro in a long text: more work than any honest patch is.
  bool exhausted() const { return kMovesMax < moves_; }
  void erase(std::size_t at) {
    move_to(at);
    after_.pop_back();
  }
  void insert(std::size_t at, std::string_view line) {
    move_to(at);
    before_.push_back(line);
  }
  std::string text() {
    move_to(size());
    return join_lines(before_);
  }

 private:
  static constexpr std::uint64_t kMovesMax = 1'000'000'000;
  void move_to(std::size_t at) {
    moves_ += at < before_.size() ? before_.size() - at : at - before_.size();
    while (before_.size() < at) {
      before_.push_back(after_.back());
      after_.pop_back();
    }
    while (at < before_.size()) {
      after_.push_back(before_.back());
      before_.pop_back();
    }
  }
  std::vector<std::string_view> before_;
  std::vector<std::string_view> after_;  // the last line first
  std::uint64_t moves_ = 0;
};

}  // namespace

Result<std::string> create_patch(std::string_view before, std::string_view after,
                                 std::string_view path) {
  const auto new_lines = split_lines(after);
  if (!before.empty()) {
    const auto old_lines = split_lines(before);
    return unified_diff(old_lines, new_lines, path);
  }
  std::string out;
  out.reserve(after.size() + new_lines.size() + path.size() + 60);
  out += "--- /dev/null\n+++ ";
  out += path;
  out += "\n@@ -0,0 +1," + std::to_string(new_lines.size()) + " @@";
  for (const std::string_view line : new_lines) {
    out += "\n+";
    out += line;
  }
  return out;
}

Result<Applied> apply_patch(std::string_view text, std::string_view patch) {
  Applied out;
  Page page(split_at_newlines(text));
  std::int64_t i = 0;
  bool in_hunk = false;
  for (const std::string_view line : split_at_newlines(patch)) {
    ++i;
    if (page.exhausted()) return Error{Errc::kExhausted, "this patch takes too long to apply"};
    if (line.starts_with("@")) {
      PROCTOR_TRY(const std::int64_t start, hunk_start(line));
      i = start - 1;
      in_hunk = true;
    } else if (line.starts_with("---") || line.starts_with("+++")) {
      out.reads_headers_in_body = out.reads_headers_in_body || in_hunk;
    } else if (line.starts_with("\\")) {
      --i;
    } else if (line.starts_with("-")) {
      if (0 < i && i <= static_cast<std::int64_t>(page.size()))
        page.erase(static_cast<std::size_t>(--i));
      else
        out.warnings.push_back(out_of_range("delete", i - 1, page.size() - 1));
    } else if (line.starts_with("+")) {
      if (0 < i && i - 1 <= static_cast<std::int64_t>(page.size()))
        page.insert(static_cast<std::size_t>(i - 1), line.substr(1));
      else
        out.warnings.push_back(out_of_range("insert", i - 1, page.size()));
    }
  }
  out.text = page.text();
  return out;
}

}  // namespace proctor::cvdp
