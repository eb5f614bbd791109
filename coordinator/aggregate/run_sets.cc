#include "coordinator/aggregate/run_sets.h"

#include <algorithm>
#include <array>

#include "coordinator/aggregate/run_filter.h"

namespace proctor {
namespace {
// The counts of a method, in the order of their sets: the name of the count in report.json and
// the filter of its runs.
struct Count {
  std::uint16_t classes;
  std::string_view word;
  std::string_view where;
  bool of_stratum = false;  // rows of a stratum have it too: what their rates are made of
};
constexpr std::array<Count, 13> kCounts{{
    {kClassPlanned, "planned", ""},
    {kClassScorable, "scorable", " outcome=success,failure,acceptance_error", true},
    {kClassSuccess, "success", " outcome=success", true},
    {kClassFailure, "failure", " outcome=failure"},
    {kClassError, "acceptance_error", " outcome=acceptance_error"},
    {kClassInvalid, "invalid", " outcome=invalid"},
    {kClassParked, "parked", " state=parked"},
    {kClassOpen, "open", " state=planned,running"},
    {kClassCancelled, "cancelled", " state=cancelled"},
    {kClassRemoved, "removed", " state=removed"},
    {kClassSatisfied, "satisfied", " satisfied=yes"},
    {kClassUnsatisfied, "unsatisfied", " outcome=success satisfied=no"},
    {kClassViolating, "violating", " state=ended violations>0"},
}};

// A digest that is fed in larger pieces than lines.
class Growing {
 public:
  void add(const std::string& line) {
    buffer_ += line;
    constexpr std::size_t kPiece = std::size_t{1} << 16U;
    if (kPiece < buffer_.size()) flush();
  }
  Digest finish() {
    flush();
    return sha_.finish();
  }

 private:
  void flush() {
    sha_.update(buffer_);
    buffer_.clear();
  }
  std::string buffer_;
  Sha256 sha_;
};

void append_sets(std::vector<RunSet>& out, const CampaignReport& report, std::size_t position) {
  const ReportRow& row = report.rows[position];
  std::vector<RunSet> sets;
  std::vector<Growing> digests;
  for (const Count& count : kCounts) {
    if (!row.key.empty() && !count.of_stratum) continue;
    RunSet set;
    set.row = position;
    set.classes = count.classes;
    set.where = "method=" + filter_value(row.method);
    if (!row.key.empty()) {
      // The key of a stage is a word of the language itself, not a stratum that one hides.
      const bool is_stage = row.key == "stage";
      set.where += " " + (is_stage ? row.key : filter_key(row.key)) + "=" + filter_value(row.value);
    }
    set.where += count.where;
    sets.push_back(std::move(set));
    digests.emplace_back();
  }
  std::string line;
  for (const std::uint32_t at : row.runs) {
    const std::uint16_t mine = class_of(report.runs[at]);
    line.clear();
    append_set_line(line, report.runs[at]);
    for (std::size_t s = 0; s < sets.size(); ++s) {
      if ((sets[s].classes & mine) == 0) continue;
      ++sets[s].runs;
      digests[s].add(line);
      if (sets[s].members.size() < kSetMembers) sets[s].members.push_back(at);
    }
  }
  for (std::size_t s = 0; s < sets.size(); ++s) {
    if (sets[s].runs == 0) continue;
    sets[s].digest = digests[s].finish();
    out.push_back(std::move(sets[s]));
  }
}
}  // namespace

std::string_view class_word(std::uint16_t classes) {
  return std::ranges::find(kCounts, classes, &Count::classes)->word;
}

std::uint16_t class_named(std::string_view word) {
  const auto* const it = std::ranges::find(kCounts, word, &Count::word);
  return it == kCounts.end() ? 0 : it->classes;
}

std::string set_name(std::size_t position) {
  return "set-" + std::to_string(position + 1);
}

std::uint16_t class_of(const RunRecord& run) {
  constexpr std::array<std::uint16_t, 6> kStates{kClassOpen, kClassOpen,      kClassParked,
                                                 0,          kClassCancelled, kClassRemoved};
  constexpr std::array<std::uint16_t, 4> kOutcomes{kClassSuccess, kClassFailure, kClassError,
                                                   kClassInvalid};
  if (run.state != RunRecord::State::kEnded) return kStates.at(static_cast<std::size_t>(run.state));
  std::uint16_t out = kOutcomes.at(static_cast<std::size_t>(run.outcome));
  if (run.outcome == RunOutcome::kSuccess)
    out |= run.satisfied() ? kClassSatisfied : kClassUnsatisfied;
  return run.violations == 0 ? out : out | kClassViolating;
}

void append_set_line(std::string& out, const RunRecord& run) {
  out += run.name + " " + (run.report == Digest() ? "-" : run.report.hex()) + "\n";
}

std::optional<std::size_t> RunSets::find(std::size_t row, std::uint16_t classes) const {
  const auto it = std::ranges::find_if(
      sets, [&](const RunSet& s) { return s.row == row && s.classes == classes; });
  if (it == sets.end()) return std::nullopt;
  return static_cast<std::size_t>(it - sets.begin());
}

RunSets run_sets(const CampaignReport& report) {
  RunSets out;
  for (std::size_t i = 0; i < std::min(report.rows.size(), kSetRows); ++i)
    append_sets(out.sets, report, i);
  return out;
}
}  // namespace proctor
