#include "worker/tools/text_lines.h"

#include <algorithm>

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

ShownStream head_and_tail(std::string_view bytes, std::size_t bytes_max) {
  if (bytes.size() <= bytes_max) return {as_text(bytes), 0};
  const std::size_t half = bytes_max / 2;
  std::string_view head = bytes.substr(0, half), tail = bytes.substr(bytes.size() - half);
  // Whole lines, where there are any.
  if (const std::size_t end = head.rfind('\n'); end != std::string_view::npos)
    head = head.substr(0, end + 1);
  else
    head = head.substr(0, whole(head));
  if (const std::size_t begin = tail.find('\n'); begin + 1 < tail.size())
    tail.remove_prefix(begin + 1);
  ShownStream out;
  out.left_out = bytes.size() - head.size() - tail.size();
  out.text = as_text(head);
  if (!out.text.ends_with('\n')) out.text += '\n';
  out.text += "[" + std::to_string(out.left_out) + " bytes left out]\n";
  out.text += as_text(tail);
  return out;
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

}  // namespace proctor
