#pragma once
// A small language that says which runs are meant: "method=my-agent outcome=failure cost>0.50".
// One for `proctor list`, the sets of a report and operators' acts.  Comparisons beside each other
// hold together; `or`, `not` and brackets combine; `a=b,c` is either; `*` in a value stands for
// anything; a value with blanks stands in double quotes.  Of a list (tag) a value is one of it.
// Pure; a filter that was made cannot fail.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
// What a campaign's runs are called: a value that none of them has is mostly a typing mistake.
struct FilterNames {
  std::span<const std::string> keys;  // of strata, in the order of RunRecord::strata
  std::span<const RunRecord> runs;
};

class RunFilter {
 public:
  struct Node;
  // kInvalid: what is wrong, where, and the nearest word that is known.  An empty text is all runs.
  static Result<RunFilter> parse(std::string_view expression, const FilterNames& names);
  bool matches(const RunRecord& run) const;

 private:
  explicit RunFilter(std::shared_ptr<const Node> root) : root_(std::move(root)) {}
  std::shared_ptr<const Node> root_;  // nothing: all runs
};

// A value, or the key of a stratum, as the language has it: in quotes where it needs them; a key
// that a word of the language hides is "stratum.KEY".
std::string filter_value(std::string_view value);
std::string filter_key(std::string_view key);
// The words and what they mean, for --help and docs.
const std::vector<Definition>& filter_words();
}  // namespace proctor
