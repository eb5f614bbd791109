#include "coordinator/aggregate/run_sets.h"

#include <algorithm>
#include <array>

#include "coordinator/aggregate/run_filter.h"

namespace proctor {
namespace {
// Of rows of a stratum only what their rates are made of.
constexpr std::array<std::uint16_t, 13> kOfMethod{
    kClassPlanned,   kClassScorable,    kClassSuccess,  kClassFailure,   kClassError,
    kClassInvalid,   kClassParked,      kClassOpen,     kClassCancelled, kClassRemoved,
    kClassSatisfied, kClassUnsatisfied, kClassViolating};
constexpr std::array<std::uint16_t, 2> kOfStratum{kClassScorable, kClassSuccess};

std::string classes_words(std::uint16_t classes) {
  switch (classes) {
    case kClassScorable:
      return " outcome=success,failure,acceptance_error";
    case kClassSuccess:
      return " outcome=success";
    case kClassFailure:
      return " outcome=failure";
    case kClassError:
      return " outcome=acceptance_error";
    case kClassInvalid:
      return " outcome=invalid";
    case kClassParked:
      return " state=parked";
    case kClassOpen:
      return " state=planned,running";
    case kClassCancelled:
      return " state=cancelled";
    case kClassRemoved:
      return " state=removed";
    case kClassSatisfied:
      return " satisfied=yes";
    case kClassUnsatisfied:
      return " outcome=success satisfied=no";
    case kClassViolating:
      return " state=ended violations>0";
    default:
      return "";
  }
}

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
  const auto add = [&](std::uint16_t classes) {
    RunSet set;
    set.row = position;
    set.classes = classes;
    set.where = "method=" + filter_value(row.method);
    if (!row.key.empty()) {
      // The key of a stage is a word of the language itself, not a stratum that one hides.
      const bool is_stage = row.key == "stage";
      set.where += " " + (is_stage ? row.key : filter_key(row.key)) + "=" + filter_value(row.value);
    }
    set.where += classes_words(classes);
    sets.push_back(std::move(set));
    digests.emplace_back();
  };
  if (row.key.empty()) {
    for (const std::uint16_t c : kOfMethod) add(c);
  } else {
    for (const std::uint16_t c : kOfStratum) add(c);
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
  switch (classes) {
    case kClassPlanned:
      return "planned";
    case kClassScorable:
      return "scorable";
    case kClassSuccess:
      return "success";
    case kClassFailure:
      return "failure";
    case kClassError:
      return "acceptance_error";
    case kClassInvalid:
      return "invalid";
    case kClassParked:
      return "parked";
    case kClassOpen:
      return "open";
    case kClassCancelled:
      return "cancelled";
    case kClassRemoved:
      return "removed";
    case kClassSatisfied:
      return "satisfied";
    case kClassUnsatisfied:
      return "unsatisfied";
    case kClassViolating:
      return "violating";
    default:
      return "";
  }
}

std::string set_name(std::size_t position) {
  return "set-" + std::to_string(position + 1);
}

std::uint16_t class_of(const RunRecord& run) {
  switch (run.state) {
    case RunRecord::State::kPlanned:
    case RunRecord::State::kRunning:
      return kClassOpen;
    case RunRecord::State::kParked:
      return kClassParked;
    case RunRecord::State::kCancelled:
      return kClassCancelled;
    case RunRecord::State::kRemoved:
      return kClassRemoved;
    case RunRecord::State::kEnded:
      break;
  }
  const std::uint16_t broke = run.violations == 0 ? 0 : kClassViolating;
  switch (run.outcome) {
    case RunOutcome::kSuccess:
      return kClassSuccess | (run.satisfied() ? kClassSatisfied : kClassUnsatisfied) | broke;
    case RunOutcome::kFailure:
      return kClassFailure | broke;
    case RunOutcome::kAcceptanceError:
      return kClassError | broke;
    case RunOutcome::kInvalid:
      break;
  }
  return kClassInvalid | broke;
}

void append_set_line(std::string& out, const RunRecord& run) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += run.name;
  out += ' ';
  if (run.report == Digest()) {
    out += '-';
  } else {
    for (const std::uint8_t byte : run.report.bytes()) {
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    }
  }
  out += '\n';
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
