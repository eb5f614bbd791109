// What a model asks of a tool: what is taken has a path that stays in the workspace, and lines,
// streams and edits of whatever bytes are text and bounded.
#include <algorithm>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/line_pattern.h"
#include "common/base/text.h"
#include "tests/fuzz/fuzz.h"
#include "worker/tools/text_lines.h"
#include "worker/tools/tool_list.h"

namespace proctor::fuzz::tool_arguments {

void check_path(const std::string& path) {
  PROCTOR_ASSERT(path.empty() || is_safe_relative(path));
  PROCTOR_ASSERT(path != ".git" && !path.starts_with(".git/") &&
                 path.find("/.git/") == std::string::npos && !path.ends_with("/.git"));
  PROCTOR_ASSERT(tool_path(path).value() == path);
}

void check_arguments(const ToolKind& kind, std::string_view bytes) {
  const auto json = parse_json(bytes);
  if (!json.ok()) return;
  const auto read = read_tool_arguments(kind, *json);
  if (!read.ok()) {
    PROCTOR_ASSERT(!read.error().detail.empty() && is_utf8(read.error().detail));
    return;
  }
  if (const auto* list = std::get_if<ListDir>(&*read)) check_path(list->path);
  if (const auto* file = std::get_if<ReadFile>(&*read)) check_path(file->path);
  if (const auto* search = std::get_if<Search>(&*read)) check_path(search->path);
  if (const auto* write = std::get_if<WriteFile>(&*read)) check_path(write->path);
  if (const auto* edit = std::get_if<EditFile>(&*read)) check_path(edit->path);
}

void check_texts(std::string_view bytes) {
  constexpr std::size_t kMost = 300, kMark = 64;
  PROCTOR_ASSERT(is_text(as_text(bytes)));
  const NumberedLines lines = number_lines(bytes, 2, 5, kMost);
  PROCTOR_ASSERT(is_text(lines.text) && lines.text.size() <= kMost && lines.shown <= 5);
  const std::string shown = head_and_tail(bytes, kMost);
  // A byte that is no text becomes a mark of three.
  PROCTOR_ASSERT(is_text(shown) && shown.size() <= 3 * kMost + kMark);
}

// A plain text is found where its escaped form matches.
void check_pattern(std::string_view bytes) {
  const std::string_view text = take_part(bytes, '\n'), line = take_part(bytes, '\n');
  if (auto pattern = LinePattern::compile(text); pattern.ok()) {
    const bool once = pattern->matches(line);
    PROCTOR_ASSERT(once == pattern->matches(line));
  }
  std::string escaped;
  for (const char c : text) {
    const bool plain = ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') ||
                       c == '_' || (c & 0x80) != 0;
    if (!plain) escaped += '\\';
    escaped += c;
  }
  constexpr std::size_t kMost = 3'000;  // well below the limit of steps
  auto pattern = LinePattern::compile(escaped);
  PROCTOR_ASSERT(pattern.ok() || kMost < text.size() || !is_utf8(text));
  if (!pattern.ok()) return;
  LinePattern plain = LinePattern::literal(text);
  PROCTOR_ASSERT(pattern->matches(line) == plain.matches(line));
}

void target(std::string_view bytes) {
  static const Json kList = tool_list_json();
  const Json& told = kList.at(take_byte(bytes) % kList.size());
  const ToolKind& kind = *find_tool(told.at("name").get<std::string>());
  check_arguments(kind, bytes);
  check_texts(bytes);
  check_pattern(bytes);
  const std::string_view old_text = take_part(bytes, '\n'), new_text = take_part(bytes, '\n');
  if (old_text.empty()) return;
  const auto edited = edit_text(
      bytes, {"f", std::string(old_text), std::string(new_text), 1 + kind.what.size() % 3});
  if (edited.ok()) PROCTOR_ASSERT(edited->text.size() <= kEditedMax && !edited->lines.empty());
}

}  // namespace proctor::fuzz::tool_arguments
