#include <algorithm>
#include <array>
#include <charconv>
#include <regex>

#include "common/contract/document.h"
#include "coordinator/cvdp/pycompat/yaml.h"

namespace proctor::cvdp {
namespace {

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool matches(std::string_view text, const std::regex& pattern) {
  return std::regex_match(text.begin(), text.end(), pattern);
}

std::string without_underscores(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != '_') out += c;
  return out;
}

// 190:20:30 is a number of YAML 1.1, to the base of 60.
std::int64_t sexagesimal(std::string_view digits) {
  std::int64_t out = 0;
  std::int64_t part = 0;
  for (const char c : digits) {
    if (c == ':') {
      out = out * 60 + part;
      part = 0;
    } else {
      part = part * 10 + (c - '0');
    }
  }
  return out * 60 + part;
}

Value integer_of(std::string_view text) {
  std::string digits = without_underscores(text);
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  if (digits == "0") return Value(0);
  std::int64_t n = 0;
  if (digits.find(':') != std::string::npos) {
    n = sexagesimal(digits);
  } else if (digits[0] == '0') {
    const int base = digits[1] == 'b' ? 2 : digits[1] == 'x' ? 16 : 8;
    const char* const from = digits.data() + (base == 8 ? 1 : 2);
    std::from_chars(from, digits.data() + digits.size(), n, base);
  } else {
    return Number{(negative ? "-" : "") + digits, false};
  }
  return Value(negative ? -n : n);
}

Value real_number(std::string_view text) {
  std::string digits = without_underscores(text);
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  if (is_one_of(digits, {".inf", ".Inf", ".INF"}))
    return Number{negative ? "-Infinity" : "Infinity", true};
  if (is_one_of(digits, {".nan", ".NaN", ".NAN"})) return Number{"NaN", true};
  double d = 0;
  if (const std::size_t colon = digits.rfind(':'); colon != std::string::npos) {
    double tail = 0;
    std::from_chars(digits.data() + colon + 1, digits.data() + digits.size(), tail);
    d = static_cast<double>(sexagesimal(digits.substr(0, colon))) * 60 + tail;
  } else {
    if (digits[0] == '.') digits.insert(0, 1, '0');
    std::from_chars(digits.data(), digits.data() + digits.size(), d);
  }
  return real(negative ? -d : d);
}

Result<Value> value_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return Value();
    case Node::Kind::kScalar:
      return node.quoted ? Value(node.text) : plain_scalar(node.text);
    case Node::Kind::kSequence: {
      Array out;
      for (const Node& item : node.items) {
        PROCTOR_TRY(Value v, value_of(item));
        out.push_back(std::move(v));
      }
      return Value(std::move(out));
    }
    case Node::Kind::kMapping: {
      Object out;
      for (const Entry& e : node.entries) {
        PROCTOR_TRY(Value v, value_of(e.value));
        out.append(e.key, std::move(v));
      }
      return Value(std::move(out));
    }
  }
  return Value();
}

}  // namespace

Value plain_scalar(std::string_view text) {
  constexpr std::size_t kLongest = 200;  // no number worth the name is longer
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return Value();
  if (is_one_of(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (is_one_of(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}))
    return false;
  if (kLongest < text.size() || std::string_view("+-.0123456789").find(text[0]) == text.npos)
    return text;
  static const std::regex kWhole(
      "[-+]?(0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(:[0-5]?[0-9])+)");
  static const std::regex kReal(
      "[-+]?[0-9][0-9_]*\\.[0-9_]*([eE][-+][0-9]+)?|\\.[0-9][0-9_]*([eE][-+][0-9]+)?|"
      "[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\\.[0-9_]*|[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN)");
  static const std::regex kDate(
      "[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ "
      "\\t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}"
      "(\\.[0-9]*)?([ \\t]*(Z|[-+][0-9]{1,2}(:[0-9]{2})?))?");
  if (matches(text, kWhole)) return integer_of(text);
  if (matches(text, kReal)) return real_number(text);
  // A date stays as it is written.
  if (matches(text, kDate)) return Number{std::string(text), true};
  return text;
}

namespace {

Result<Value> read_within(std::string_view text, const std::string& file,
                          const DocumentBounds& bounds) {
  Diagnostics wrong;
  const std::optional<Document> document = read_document(text, Format::kYaml, file, wrong, bounds);
  if (!document || !wrong.empty()) {
    std::string why = wrong.text();
    while (why.ends_with('\n')) why.pop_back();
    return Error{Errc::kInvalid, why};
  }
  return value_of(document->root);
}

}  // namespace

Result<Value> read_yaml(std::string_view text, const std::string& file) {
  DocumentBounds bounds;
  bounds.nodes_max = 20'000;
  return read_within(text, file, bounds);
}

Result<Value> read_yaml(std::string_view text, const std::string& file, std::size_t bytes_max) {
  DocumentBounds bounds;
  bounds.bytes_max = bytes_max;
  bounds.depth_max = 100;
  bounds.nodes_max = 200'000;
  return read_within(text, file, bounds);
}

}  // namespace proctor::cvdp
