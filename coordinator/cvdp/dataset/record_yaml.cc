#include "coordinator/cvdp/dataset/record_yaml.h"

#include <algorithm>
#include <array>
#include <optional>

#include "common/base/parse.h"
#include "coordinator/cvdp/pycompat/yaml.h"

namespace proctor::cvdp {
namespace {

constexpr std::string_view kStep = "  ";

// What every reader of YAML shows as it is: no control, no line end of YAML 1.1, no half of a pair.
bool is_plain(char32_t c) {
  return (0x20 <= c && c < 0x7F) ||
         (0xA0 <= c && c != 0x2028 && c != 0x2029 && c != 0xFEFF && (c < 0xD800 || 0xDFFF < c));
}

// In double quotes.  Not as JSON, whose two halves of a character are two characters in YAML.
std::string in_quotes(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    const char32_t c = next_code_point(text, at);
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (is_plain(c)) {
      out += text.substr(from, at - from);
    } else {
      out += "\\u";
      for (int shift = 12; 0 <= shift; shift -= 4) out += kHex[(c >> shift) & 0xFU];
    }
  }
  return out + "\"";
}

// A key without quotes: a path or a name that cannot be anything but text.
std::string plain_key(const std::string& key) {
  const bool plain = !key.empty() && key.size() < 200 &&
                     (('a' <= key[0] && key[0] <= 'z') || ('A' <= key[0] && key[0] <= 'Z')) &&
                     std::ranges::all_of(key, [](char c) {
                       return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') ||
                              ('0' <= c && c <= '9') || c == '_' || c == '-' || c == '.' ||
                              c == '/';
                     });
  return plain && plain_scalar(key).string() != nullptr ? key : in_quotes(key);
}

// "|" and the text's lines; nothing: a block would not bring it back everywhere.
std::optional<std::string> block_of(const std::string& text, const std::string& indent) {
  const std::size_t first = text.find_first_not_of('\n');
  if (text.find('\n') == std::string::npos || first == std::string::npos) return std::nullopt;
  for (std::size_t at = 0; at < text.size();)
    if (const char32_t c = next_code_point(text, at); c != '\n' && c != '\t' && !is_plain(c))
      return std::nullopt;
  std::string out = "|";
  if (first != 0 || text[0] == ' ' || text[0] == '\t') out += std::to_string(kStep.size());
  if (!text.ends_with('\n'))
    out += '-';
  else if (text.ends_with("\n\n"))
    out += '+';
  out += '\n';
  const auto lines = [&text, &out](std::string_view in) {
    std::string all = out;
    for (std::string_view rest = text; !rest.empty(); all += '\n')
      if (const auto line = take_until(rest, '\n'); !line.empty()) all.append(in).append(line);
    return all;
  };
  const auto back = read_yaml("a: " + lines(kStep), "", kRecordBytes);
  const std::string* there = back.ok() ? text_at(*back, "a") : nullptr;
  return there != nullptr && *there == text ? std::optional(lines(indent)) : std::nullopt;
}

void put_node(std::string& out, const Value& value, const std::string& indent) {
  const std::string deeper = indent + std::string(kStep);
  if (const Object* object = value.object(); object != nullptr && !object->empty()) {
    out += '\n';
    for (const Member& m : *object) {
      out += indent + plain_key(m.key) + ":";
      put_node(out, m.value, deeper);
    }
  } else if (const Array* array = value.array(); array != nullptr && !array->empty()) {
    out += '\n';
    for (const Value& item : *array) {
      out += indent + "-";
      put_node(out, item, deeper);
    }
  } else if (const std::string* text = value.string()) {
    const std::optional<std::string> lines = block_of(*text, indent);
    out += lines ? " " + *lines : " " + in_quotes(*text) + "\n";
  } else {
    out += " " + write_json(value) + "\n";  // of these JSON is YAML
  }
}

}  // namespace

Result<std::string> record_yaml(const Value& record) {
  std::string out = "---";
  put_node(out, record, "");
  PROCTOR_TRY(const Value back, read_yaml(out, "its YAML", kRecordBytes));
  if (!(back == record))
    return Error{Errc::kInvalid, "has a number or a text that YAML would not bring back"};
  return out;
}

std::vector<YamlDocument> split_documents(std::string_view text) {
  std::vector<YamlDocument> out;
  std::uint64_t line = 1;
  YamlDocument now;
  const auto add = [&](std::size_t from, std::size_t end) {
    now.text = text.substr(from, end - from);
    if (now.text.find_first_not_of(" \t\r\n-") != std::string_view::npos) out.push_back(now);
  };
  std::size_t from = 0;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view here = text.substr(at, end - at);
    if (here == "---" || here == "---\r" || here.starts_with("--- ")) {
      add(from, at);
      from = at;
      now.line = line;
    }
    at = end + 1;
  }
  add(from, text.size());
  return out;
}

}  // namespace proctor::cvdp
