#pragma once
// Failure modes: labels with evidence, never a score (R147-R153; EVIDENCE 8.3).  The table is
// schemas/failure_mode_taxonomy.jsonl, too.  The mapping reads typed signs of events and no prose.
// Pure; any thread.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/fields.h"
#include "common/contract/rubric.h"
#include "common/score/gates.h"

namespace proctor {
struct FailureMode {
  std::string_view id;                     // "patch.does_not_apply"
  std::vector<Gate> gates;                 // that it can explain; empty: the run as a whole
  std::vector<std::string_view> evidence;  // signs, any of which asserts it
  Attribution attribution = Attribution::kAgent;
  Severity severity = Severity::kNone;
  bool format = false;  // the tag says in which form the evidence came (R152)
  std::string_view sentence;
};
const std::vector<FailureMode>& failure_modes();
const FailureMode* find_failure_mode(std::string_view id);

// The signs that a run's events show, by the words of the table ("check_failed:build"); each with
// the events that show it, rising.
struct Sign {
  std::vector<std::uint64_t> events{};
  std::string
      format{};  // the first one's: "code", "text", "tool call", "executed"; empty: it has none
};
using Signs = std::map<std::string, Sign, std::less<>>;

// A line by which a known tool says why a build failed, in the tool's own words (fragments.cc).
// The candidate's code can write such a line: it decides no gate, and its modes are `unclear`.
struct Fragment {
  std::string extractor{};  // its sign is "fragment:missing_dependency"
  std::uint64_t line = 0;   // from 1
  std::string text{};       // printable, FragmentFinder::kTextBytes at most
};
// Those of one run: so many of each extractor, that many of one hide none of the other.
class FragmentFinder {
 public:
  static constexpr std::size_t kMost = 10, kTextBytes = 200, kReadBytes = std::size_t{256} << 10;
  // In the last kReadBytes that a program wrote.
  std::vector<Fragment> find(std::string_view output);

 private:
  std::map<std::string_view, std::size_t> told_;
};

// A check that did not pass, for the campaign's own rules.
struct FailedCheck {
  std::string id;
  int exit_code = 0;
  std::uint64_t event = 0;
};

struct Tag {
  std::string id{};
  std::string gate{};                     // that it explains; empty: the run as a whole
  std::vector<std::uint64_t> evidence{};  // events of the trace; never empty
  std::string format{};
  friend bool operator==(const Tag&, const Tag&) = default;
};
void fields(auto& v, Is<Tag> auto& t) {
  v("id", t.id);
  v("gate", t.gate);
  v("evidence", t.evidence);
  v("format", t.format, kOptional);
}

// For each gate that fails or errs, and for the run, every mode with a sign, in the order of the
// table and then of the campaign's own.  A gate with an error has evaluation.error first, and a
// mode of the agent's beside it only where its sign is of the patch or of the agent (R153).
std::vector<Tag> tags_of(const GateVector& gates, const Signs& signs,
                         std::span<const FailedCheck> failed, std::span<const TagRule> own);

// "a,b": AttemptFacts::tags, each id once.
std::string tags_text(std::span<const Tag> tags);
}  // namespace proctor
