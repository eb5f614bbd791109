#pragma once
// A dataset file (JSON lines) record by record, in memory of one line, and its records as YAML.
// The caller reads the file and feeds pieces of any size; lines end as in Python's text mode
// (\n, \r\n or \r).  A line that is wrong is reported and left out; it never stops the next.
// Pure; not thread-safe.  Source: CVDP 1.1, 1.2.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/result.h"
#include "coordinator/cvdp/dataset/record.h"
#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cvdp {
// Pieces of a file as lines.
class LineFeed {
 public:
  struct Line {
    std::uint64_t number = 0;  // from 1
    std::string_view text;     // valid during the call; empty when `too_long`
    bool too_long = false;
  };
  using Take = std::function<void(const Line&)>;
  explicit LineFeed(std::size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}
  void feed(std::string_view piece, const Take& take);
  // The last line, when no line end closes it.
  void finish(const Take& take);

 private:
  void keep(std::string_view part);
  void end_line(std::string_view last_part, const Take& take);
  std::size_t line_bytes_max_;
  std::string kept_;
  bool too_long_ = false;
  bool after_cr_ = false;
  std::uint64_t number_ = 0;
};

struct DatasetBounds {
  std::size_t line_bytes_max = std::size_t{256} << 20;
  std::size_t records_max = 5'000'000;
};

struct DatasetSummary {
  std::uint64_t lines = 0;
  std::uint64_t records = 0;  // without an error
  std::uint64_t errors = 0;
  std::uint64_t warnings = 0;
  std::uint64_t agentic = 0;
  std::uint64_t heavy = 0;
  std::uint64_t redacted = 0;
  std::uint64_t comprehension = 0;
  std::map<std::string, std::map<std::string, std::uint64_t>> cells;  // category, difficulty
};

class DatasetReader {
 public:
  // `record` gets every record without an error, in the file's order, also one whose id comes
  // again; `finding` everything there is to say.
  DatasetReader(std::function<void(Record)> record, std::function<void(const Finding&)> finding,
                const DatasetBounds& bounds = {});
  void feed(std::string_view piece);
  // Must be called once, after the last piece.
  void finish();
  const DatasetSummary& summary() const { return summary_; }

 private:
  void line(const LineFeed::Line& line);
  void tell(const Finding& finding);
  void seen(const Record& record, std::vector<Finding>& findings);
  std::function<void(Record)> record_;
  std::function<void(const Finding&)> finding_;
  DatasetBounds bounds_;
  LineFeed lines_;
  DatasetSummary summary_;
  std::unordered_map<std::string, std::uint64_t> ids_;    // never iterated; id -> line
  std::unordered_map<std::string, std::string> folders_;  // never iterated; folder -> id
};

// Records as YAML that people read and edit, one document each: texts of several lines are blocks.
// Every record comes back as it was, which is looked at when it is written.
// Pure; any thread.  Source: CVDP 9.8.

// With "---" in front.  kInvalid: it has what YAML 1.1 reads otherwise (1e5 is a text there).
Result<std::string> record_yaml(const Value& record);

// The documents of a file, and the line each begins at.  No block of ours has "---" at the
// beginning of a line.
struct YamlDocument {
  std::uint64_t line = 1;
  std::string_view text;
};
std::vector<YamlDocument> split_documents(std::string_view text);
}  // namespace proctor::cvdp
