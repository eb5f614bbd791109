#include "coordinator/cvdp/dataset/dataset.h"

#include <cstring>

#include "common/base/text.h"

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
  if (line.too_long)
    return wrong("longer than " + std::to_string(bounds_.line_bytes_max) + " bytes");
  if (line.text.find_first_not_of(" \t") == std::string_view::npos)
    return wrong("a blank line (upstream aborts the whole run)");
  if (bounds_.records_max < ids_.size())
    return wrong("more than " + std::to_string(bounds_.records_max) + " records");
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
    findings.push_back({Finding::Weight::kWarning, record.line, "id",
                        "\"" + id + "\" is also on line " + std::to_string(it->second) +
                            ": the later record counts, as upstream"});
    it->second = record.line;
    return;
  }
  const std::string folder = record.id.repository + "/" + std::to_string(record.id.issue);
  const auto [other, own] = folders_.emplace(folder, id);
  if (!own)
    findings.push_back({Finding::Weight::kError, record.line, "id",
                        "\"" + id + "\" shares the folder " + folder + " with \"" + other->second +
                            "\" (upstream writes the one over the other)"});
}

}  // namespace proctor::cvdp
