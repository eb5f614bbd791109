#include "common/contract/document.h"

#include <algorithm>

#include "common/base/git_program.h"
#include "common/base/text.h"
#include "common/contract/tree_builder.h"

namespace proctor {
namespace {

Mark mark_of(std::string_view before) {
  Mark at;
  at.line += static_cast<std::uint32_t>(std::ranges::count(before, '\n'));
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  at.column += static_cast<std::uint32_t>(before.size() - line_begin);
  return at;
}

// Bytes that neither format may hold (RFC 8259 admits DEL).  A \x04 would even end the text
// silently: yaml-cpp uses it for the end of its stream.
bool is_forbidden(char c, Format format) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') ||
         (byte == 0x7F && format == Format::kYaml);
}

std::optional<SyntaxError> check_bytes(std::string_view text, Format format,
                                       const DocumentBounds& bounds) {
  if (bounds.bytes_max < text.size())
    return SyntaxError{
        {}, std::to_string(text.size()) + " bytes", "at most " + std::to_string(bounds.bytes_max)};
  const auto bad = std::ranges::find_if(text, [&](char c) { return is_forbidden(c, format); });
  if (bad != text.end()) {
    const auto at = static_cast<std::size_t>(bad - text.begin());
    return SyntaxError{mark_of(text.substr(0, at)), "the byte " + printable(text.substr(at, 1)),
                       "text without control characters"};
  }
  if (is_utf8(text)) return std::nullopt;
  // Name the first line that is broken: a sequence never spans a line feed.
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    if (!is_utf8(text.substr(begin, end - begin)))
      return SyntaxError{mark_of(text.substr(0, begin)), "bytes that are not UTF-8", "UTF-8 text"};
    begin = end;
  }
  return SyntaxError{{}, "bytes that are not UTF-8", "UTF-8 text"};
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  const auto it = std::ranges::find(entries, key, &Entry::key);
  return it == entries.end() ? nullptr : &it->value;
}

std::optional<Document> read_document(std::string_view text, Format format, std::string file,
                                      Diagnostics& out, const DocumentBounds& bounds) {
  const auto refuse = [&](SyntaxError r) {
    out.add({file, r.at, "", std::move(r.found), std::move(r.expected), ""});
    return std::nullopt;
  };
  if (auto r = check_bytes(text, format, bounds)) return refuse(*std::move(r));
  constexpr std::string_view kBom = "\xEF\xBB\xBF";
  if (text.starts_with(kBom)) text.remove_prefix(kBom.size());
  TreeBuilder builder(bounds, file, out);
  if (auto r = format == Format::kJson ? read_json(text, builder) : read_yaml(text, builder))
    return refuse(*std::move(r));
  return Document{std::move(file), builder.take()};
}

Format format_of(std::string_view file) {
  return file.ends_with(".json") ? Format::kJson : Format::kYaml;
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return "\"" + printable(redact_urls(node.text), 80) + "\"";
    case Node::Kind::kSequence:
      return "a list";
    case Node::Kind::kMapping:
      return "a mapping";
  }
  return "nothing";
}

}  // namespace proctor
