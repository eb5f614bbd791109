#include "coordinator/cvdp/dataset/dataset.h"

#include <algorithm>
#include <optional>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "coordinator/cvdp/pycompat/yaml.h"

namespace proctor::cvdp {
void LineFeed::keep(std::string_view part) {
  if (too_long_) return;
  if (line_bytes_max_ < kept_.size() + part.size()) {
    too_long_ = true;
    kept_.clear();
    return;
  }
  kept_ += part;
}

void LineFeed::end_line(std::string_view last_part, const Take& take) {
  Line line;
  line.number = ++number_;
  if (kept_.empty() && !too_long_ && last_part.size() <= line_bytes_max_) {
    line.text = last_part;
  } else {
    keep(last_part);
    line.text = kept_;
  }
  line.too_long = too_long_;
  take(line);
  kept_.clear();
  too_long_ = false;
}

void LineFeed::feed(std::string_view piece, const Take& take) {
  if (after_cr_ && !piece.empty()) {
    if (piece.front() == '\n') piece.remove_prefix(1);
    after_cr_ = false;
  }
  while (!piece.empty()) {
    const std::size_t newline = piece.find('\n');
    std::string_view stretch = piece.substr(0, newline);
    // Carriage returns are rare: one look for them per line.
    for (std::size_t cr = stretch.find('\r'); cr != std::string_view::npos;
         cr = stretch.find('\r')) {
      end_line(stretch.substr(0, cr), take);
      stretch.remove_prefix(cr + 1);
      after_cr_ = stretch.empty();
    }
    if (newline == std::string_view::npos) return keep(stretch);
    if (!after_cr_) end_line(stretch, take);
    after_cr_ = false;
    piece.remove_prefix(newline + 1);
  }
}

void LineFeed::finish(const Take& take) {
  if (!kept_.empty() || too_long_) end_line({}, take);
}

DatasetReader::DatasetReader(std::function<void(Record)> record,
                             std::function<void(const Finding&)> finding,
                             const DatasetBounds& bounds)
    : record_(std::move(record)),
      finding_(std::move(finding)),
      bounds_(bounds),
      lines_(bounds.line_bytes_max) {}

void DatasetReader::feed(std::string_view piece) {
  lines_.feed(piece, [this](const LineFeed::Line& l) { line(l); });
}

void DatasetReader::finish() {
  lines_.finish([this](const LineFeed::Line& l) { line(l); });
  if (summary_.lines == 0) tell({Finding::Weight::kError, 0, "", "the file holds no record"});
}

void DatasetReader::tell(const Finding& finding) {
  ++(finding.weight == Finding::Weight::kError ? summary_.errors : summary_.warnings);
  finding_(finding);
}

void DatasetReader::line(const LineFeed::Line& line) {
  ++summary_.lines;
  const auto wrong = [&](std::string text) {
    tell({Finding::Weight::kError, line.number, "", std::move(text)});
  };
  if (line.too_long) return wrong(fmt::format("longer than {} bytes", bounds_.line_bytes_max));
  if (line.text.find_first_not_of(" \t") == std::string_view::npos)
    return wrong("a blank line (upstream aborts the whole run)");
  if (bounds_.records_max < ids_.size())
    return wrong(fmt::format("more than {} records", bounds_.records_max));
  std::vector<std::string> repeated;
  Result<Value> value = read_json(line.text, {}, &repeated);
  if (!value.ok()) return wrong(value.error().detail);
  std::vector<Finding> findings;
  for (const std::string& key : repeated)
    findings.push_back({Finding::Weight::kWarning, line.number, printable(key),
                        "given twice in one mapping: upstream keeps the last"});
  Record record = check_record(std::move(*value), line.number, findings);
  seen(record, findings);
  bool usable = true;
  for (const Finding& f : findings) {
    usable = usable && f.weight == Finding::Weight::kWarning;
    tell(f);
  }
  if (!usable) return;
  ++summary_.records;
  summary_.agentic += record.shape == Shape::kAgentic ? 1U : 0U;
  summary_.heavy += record.id.heavy ? 1U : 0U;
  summary_.redacted += record.redacted ? 1U : 0U;
  summary_.comprehension += is_comprehension(category_number(record.category)) ? 1U : 0U;
  ++summary_.cells[record.category][record.difficulty];
  record_(std::move(record));
}

void DatasetReader::seen(const Record& record, std::vector<Finding>& findings) {
  const std::string& id = record.id.text;
  if (id.empty()) return;
  const auto [it, fresh] = ids_.emplace(id, record.line);
  if (!fresh) {
    findings.push_back(
        {Finding::Weight::kWarning, record.line, "id",
         fmt::format("\"{}\" is also on line {}: the later record counts, as upstream", id,
                     it->second)});
    it->second = record.line;
    return;
  }
  const std::string folder = fmt::format("{}/{}", record.id.repository, record.id.issue);
  const auto [other, own] = folders_.emplace(folder, id);
  if (!own)
    findings.push_back({Finding::Weight::kError, record.line, "id",
                        fmt::format("\"{}\" shares the folder {} with \"{}\" (upstream writes the "
                                    "one over the other)",
                                    id, folder, other->second)});
}

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
  const bool plain = !key.empty() && key.size() < 200 && !is_digit(key[0]) && key[0] != '_' &&
                     is_word_byte(key[0]) && std::ranges::all_of(key, [](char c) {
                       return is_word_byte(c) || c == '-' || c == '.' || c == '/';
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
