#include "coordinator/cvdp/pycompat/yaml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <regex>

#include "common/base/parse.h"
#include "common/contract/document.h"

namespace proctor::cvdp {
namespace {
constexpr std::array<std::string_view, 16> kKnown = {
    "BENCHMARK_PREFIX", "BENCHMARK_THREADS",     "CLONE_HTTP",
    "DEFAULT_MODEL",    "CVDP_HEAVY_REPOS_PATH", "DOCKER_QUOTA_THRESHOLD_MB",
    "DOCKER_TIMEOUT",   "DOCKER_TIMEOUT_AGENT",  "LICENSE_NETWORK",
    "LLM_RETRY_COUNT",  "MODEL_TIMEOUT",         "OPENAI_USER_KEY",
    "OSS_PNR_IMAGE",    "OSS_SIM_IMAGE",         "VERIF_EDA_IMAGE",
    "PROCTOR_MODELS",
};

std::string_view without_quotes(std::string_view value) {
  const bool quoted = 2 <= value.size() && value.front() == value.back() &&
                      (value.front() == '"' || value.front() == '\'');
  return quoted ? value.substr(1, value.size() - 2) : value;
}
}  // namespace

std::vector<std::pair<std::string, std::string>> read_dotenv(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  while (!text.empty()) {
    const std::string_view line = strip_text(take_until(text, '\n'));
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos) continue;
    const std::string_view key = strip_text(line.substr(0, equals));
    const std::string_view value = without_quotes(strip_text(line.substr(equals + 1)));
    const bool twice = std::ranges::any_of(out, [&](const auto& p) { return p.first == key; });
    if (!twice && std::ranges::find(kKnown, key) != kKnown.end() &&
        value.find('\0') == std::string_view::npos)
      out.emplace_back(key, value);
  }
  return out;
}

namespace {
bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Without "_" and the sign.
std::string bare_digits(std::string_view text, bool& negative) {
  std::string out(text);
  std::erase(out, '_');
  negative = out.starts_with('-');
  if (negative || out.starts_with('+')) out.erase(0, 1);
  return out;
}

// 190:20:30 is a number of YAML 1.1, to the base of 60.  nullopt: beyond 64 bits.
std::optional<std::int64_t> sexagesimal(std::string_view digits) {
  std::int64_t out = 0;
  for (const std::string_view part : split(digits, ':')) {
    const auto n = whole_number<std::int64_t>(part);
    if (!n || __builtin_mul_overflow(out, 60, &out) || __builtin_add_overflow(out, *n, &out))
      return std::nullopt;
  }
  return out;
}

Value integer_of(std::string_view text) {
  bool negative = false;
  const std::string digits = bare_digits(text, negative);
  if (digits == "0") return Value(0);
  std::int64_t n = 0;
  if (digits.find(':') != std::string::npos) {
    const auto seconds = sexagesimal(digits);
    if (!seconds) return Value(std::string(text));
    n = *seconds;
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
  bool negative = false;
  std::string digits = bare_digits(text, negative);
  if (is_one_of(digits, {".inf", ".Inf", ".INF"}))
    return Number{negative ? "-Infinity" : "Infinity", true};
  if (is_one_of(digits, {".nan", ".NaN", ".NAN"})) return Number{"NaN", true};
  double d = 0;
  if (const std::size_t colon = digits.rfind(':'); colon != std::string::npos) {
    double tail = 0;
    std::from_chars(digits.data() + colon + 1, digits.data() + digits.size(), tail);
    const auto minutes = sexagesimal(digits.substr(0, colon));
    if (!minutes) return Value(std::string(text));
    d = static_cast<double>(*minutes) * 60 + tail;
  } else {
    if (digits[0] == '.') digits.insert(0, 1, '0');
    std::from_chars(digits.data(), digits.data() + digits.size(), d);
  }
  return real(negative ? -d : d);
}

Value value_of(const Node& node) {
  if (node.kind == Node::Kind::kScalar)
    return node.quoted ? Value(node.text) : plain_scalar(node.text);
  if (node.kind == Node::Kind::kSequence) {
    Array out;
    for (const Node& item : node.items) out.push_back(value_of(item));
    return out;
  }
  if (node.kind != Node::Kind::kMapping) return Value();
  Object out;
  for (const Entry& e : node.entries) out.append(e.key, value_of(e.value));
  return out;
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
  const auto matches = [text](const std::regex& pattern) {
    return std::regex_match(text.begin(), text.end(), pattern);
  };
  if (matches(kWhole)) return integer_of(text);
  if (matches(kReal)) return real_number(text);
  // A date stays as it is written.
  if (matches(kDate)) return Number{std::string(text), true};
  return text;
}

Result<Value> read_yaml(std::string_view text, const std::string& file, std::size_t bytes_max) {
  DocumentBounds bounds;
  bounds.nodes_max = 20'000;
  if (bytes_max != 0) {
    bounds.bytes_max = bytes_max;
    bounds.depth_max = 100;
    bounds.nodes_max = 200'000;
  }
  Diagnostics wrong;
  const std::optional<Document> document = read_document(text, Format::kYaml, file, wrong, bounds);
  if (document && wrong.empty()) return value_of(document->root);
  std::string why = wrong.text();
  while (why.ends_with('\n')) why.pop_back();
  return Error{Errc::kInvalid, why};
}

// PyYAML's emitter, as far as dumping plain data in block style goes.

namespace {
constexpr std::size_t kBestWidth = 80;

bool ends_a_line(char32_t c) {
  return c == '\n' || c == 0x85 || c == 0x2028 || c == 0x2029;
}
bool is_blank_or_end(char32_t c) {
  return c == 0 || c == ' ' || c == '\t' || c == '\r' || ends_a_line(c);
}

std::u32string code_points(std::string_view text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();) out += next_code_point(text, at);
  return out;
}

// How a text may be written.
struct ScalarForms {
  bool plain = true;
  bool single = true;
  bool several_lines = false;
};

bool is_indicator(const std::u32string& s, std::size_t i) {
  const bool blank_follows = i + 1 >= s.size() || is_blank_or_end(s[i + 1]);
  if (s[i] == ':' && blank_follows) return true;
  if (i == 0) {
    static constexpr std::u32string_view kFirst = U"#,[]{}&*!|>'\"%@`";
    return kFirst.find(s[0]) != std::u32string_view::npos ||
           ((s[0] == '?' || s[0] == '-') && blank_follows);
  }
  return s[i] == '#' && is_blank_or_end(s[i - 1]);
}

ScalarForms forms_of(const std::u32string& s) {
  ScalarForms out;
  if (s.empty()) return out;
  bool special = false;
  bool indicator = s.starts_with(U"---") || s.starts_with(U"...");
  bool break_then_space = false;
  bool space_then_break = false;
  for (std::size_t i = 0; i < s.size(); ++i) {
    indicator = indicator || is_indicator(s, i);
    out.several_lines = out.several_lines || ends_a_line(s[i]);
    special = special || !(s[i] == '\n' || (0x20 <= s[i] && s[i] <= 0x7E));
    if (0 < i && s[i] == ' ' && ends_a_line(s[i - 1])) break_then_space = true;
    if (0 < i && s[i - 1] == ' ' && ends_a_line(s[i])) space_then_break = true;
  }
  const auto edge = [](char32_t c) { return c == ' ' || ends_a_line(c); };
  if (edge(s.front()) || edge(s.back()) || out.several_lines || indicator) out.plain = false;
  if (break_then_space) out.plain = out.single = false;
  if (space_then_break || special) out.plain = out.single = false;
  return out;
}

class YamlText {
 public:
  std::string document(const Value& value) {
    node(value, -1, Place::kTop);
    if (!out_.ends_with('\n')) out_ += '\n';
    return out_;
  }

 private:
  enum class Place { kTop, kKey, kItem };  // behind what the value stands

  void node(const Value& value, int indent, Place place) {
    if (const Object* o = value.object(); o != nullptr && !o->empty())
      return mapping(*o, indent + 2 < 2 ? 0 : indent + 2, place);
    if (const Array* a = value.array(); a != nullptr && !a->empty())
      return sequence(*a, place == Place::kKey ? indent : indent + 2 < 2 ? 0 : indent + 2, place);
    if (place != Place::kTop) put(" ");
    scalar(value, indent < 0 ? 2 : indent + 2, false);
  }

  void mapping(const Object& o, int indent, Place place) {
    std::vector<const Member*> sorted;
    for (const Member& m : o) sorted.push_back(&m);
    std::sort(sorted.begin(), sorted.end(),
              [](const Member* a, const Member* b) { return a->key < b->key; });
    bool first = true;
    for (const Member* m : sorted) {
      lead(indent, first, place);
      scalar(Value(m->key), indent, true);
      put(":");
      node(m->value, indent, Place::kKey);
      first = false;
    }
  }

  void sequence(const Array& a, int indent, Place place) {
    bool first = true;
    for (const Value& item : a) {
      lead(indent, first, place);
      put("-");
      node(item, indent, Place::kItem);
      first = false;
    }
  }

  // The first entry of a collection inside an item stands behind its dash.
  void lead(int indent, bool first, Place place) {
    if (first && place == Place::kItem) return put(" ");
    if (!(first && place == Place::kTop)) new_line(indent);
  }
  void new_line(int indent) {
    out_ += '\n';
    column_ = 0;
    put(std::string(static_cast<std::size_t>(indent), ' '));
  }
  void put(std::string_view ascii) {
    out_ += ascii;
    column_ += ascii.size();
  }

  void scalar(const Value& value, int indent, bool is_key) {
    if (value.is_null()) return put("null");
    if (const bool* b = value.boolean()) return put(*b ? "true" : "false");
    if (const Object* o = value.object(); o != nullptr) return put("{}");
    if (value.array() != nullptr) return put("[]");
    if (const Number* n = value.number()) return put(number(*n));
    const std::u32string s = code_points(*value.string());
    const ScalarForms forms = forms_of(s);
    // A key may have been any scalar; as text it is plain where it can be.
    const bool special = *value.string() == "=" || *value.string() == "<<";
    const bool is_text =
        !special && (plain_scalar(*value.string()).string() != nullptr || (is_key && !s.empty()));
    if (is_text && forms.plain && !(is_key && forms.several_lines))
      return plain(s, indent, !is_key);
    if (forms.single && !(is_key && forms.several_lines)) return single(s, indent, !is_key);
    quoted(s, indent, !is_key);
  }

  static std::string number(const Number& n) {
    if (n.text == "NaN") return ".nan";
    if (n.text == "Infinity") return ".inf";
    if (n.text == "-Infinity") return "-.inf";
    const std::size_t e = n.text.find('e');
    if (!n.real || e == std::string::npos || n.text.find('.') != std::string::npos) return n.text;
    return n.text.substr(0, e) + ".0" + n.text.substr(e);
  }

  void put(const std::u32string& s, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) append_utf8(out_, s[i]);
    column_ += to - from;
  }

  // Words one blank apart may be parted by a new line once the line is full.
  void plain(const std::u32string& s, int indent, bool split) {
    std::size_t start = 0;
    for (std::size_t end = 0; end <= s.size(); ++end) {
      const bool in_space = start < end && s[start] == ' ';
      const bool at_space = end < s.size() && s[end] == ' ';
      if (end < s.size() && in_space == at_space) continue;
      if (in_space && start + 1 == end && kBestWidth < column_ && split)
        new_line(indent);
      else
        put(s, start, end);
      start = end;
    }
  }

  void breaks(const std::u32string& s, std::size_t from, std::size_t to, int indent) {
    if (s[from] == '\n') out_ += '\n';
    for (std::size_t i = from; i < to; ++i) append_utf8(out_, s[i]);
    column_ = 0;
    put(std::string(static_cast<std::size_t>(indent), ' '));
  }

  void single(const std::u32string& s, int indent, bool split) {
    put("'");
    enum class Run { kLetters, kSpaces, kLineEnds };
    const auto run_of = [&](std::size_t i) {
      return s[i] == ' ' ? Run::kSpaces : ends_a_line(s[i]) ? Run::kLineEnds : Run::kLetters;
    };
    for (std::size_t start = 0; start < s.size();) {
      const Run run = run_of(start);
      std::size_t end = start + 1;
      while (end < s.size() && run_of(end) == run) ++end;
      if (run == Run::kLineEnds) {
        breaks(s, start, end, indent);
      } else if (run == Run::kSpaces) {
        if (start + 1 == end && kBestWidth < column_ && split && start != 0 && end != s.size())
          new_line(indent);
        else
          put(s, start, end);
      } else {
        for (std::size_t i = start; i < end; ++i) {
          if (s[i] == '\'') put("'");
          put(s, i, i + 1);
        }
      }
      start = end;
    }
    put("'");
  }

  static std::string escaped(char32_t c) {
    static constexpr std::u32string_view kFrom(U"\0\a\b\t\n\v\f\r\x1b\"\\\u0085\u00a0\u2028\u2029",
                                               15);
    static constexpr std::string_view kTo = "0abtnvfre\"\\N_LP";
    if (const std::size_t i = kFrom.find(c); i != kFrom.npos) return std::string("\\") + kTo[i];
    static constexpr std::string_view kHex = "0123456789ABCDEF";
    const auto n = static_cast<std::uint32_t>(c);
    const unsigned digits = n <= 0xFF ? 2 : n <= 0xFFFF ? 4 : 8;
    std::string out = digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
    for (unsigned i = digits; i-- > 0;) out += kHex[(n >> (4 * i)) & 15U];
    return out;
  }

  void quoted(const std::u32string& s, int indent, bool split) {
    put("\"");
    std::size_t start = 0;
    for (std::size_t end = 0; end <= s.size(); ++end) {
      const bool last = end == s.size();
      if (last || s[end] == '"' || s[end] == '\\' || s[end] < 0x20 || 0x7E < s[end]) {
        put(s, start, end);
        start = end;
        if (!last) {
          put(escaped(s[end]));
          start = end + 1;
        }
      }
      if (0 < end && end + 1 < s.size() && (s[end] == ' ' || end <= start) &&
          kBestWidth + start < column_ + end && split) {
        if (start < end) {
          put(s, start, end);
          start = end;
        }
        put("\\");
        new_line(indent);
        if (s[start] == ' ') put("\\");
      }
    }
    put("\"");
  }

  std::string out_;
  std::size_t column_ = 0;
};
}  // namespace

std::string write_yaml(const Value& value) {
  return YamlText().document(value);
}
}  // namespace proctor::cvdp
