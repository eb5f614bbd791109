#pragma once
// Which runs are behind a number: every count of the tables is a set of runs, named by a filter
// that `proctor list` reads (run_filter.h), with its size and a digest of its runs and their
// reports.  Pure.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
// What a row counts: a bit for each of the states that a planned run can be in, one of which it is
// in; and below them bits for what an ended one is beside that.
enum RunClass : std::uint16_t {
  kClassSuccess = 1,
  kClassFailure = 2,
  kClassError = 4,
  kClassInvalid = 8,
  kClassParked = 16,
  kClassOpen = 32,
  kClassCancelled = 64,
  kClassRemoved = 128,
  kClassSatisfied = 256,    // a success that passed every gate
  kClassUnsatisfied = 512,  // a success that failed one
  kClassViolating = 1024,   // broke a constraint, whatever its outcome
};
inline constexpr std::uint16_t kClassScorable = kClassSuccess | kClassFailure | kClassError;
inline constexpr std::uint16_t kClassPlanned = 255;
std::uint16_t class_of(const RunRecord& run);
// "success": what a count of these is called in report.json.  Requires: one of a set's.
std::string_view class_word(std::uint16_t classes);
// And back; 0: none is called so.
std::uint16_t class_named(std::string_view word);

struct RunSet {
  std::size_t row = 0;        // position in CampaignReport::rows
  std::uint16_t classes = 0;  // of its runs
  std::string where;          // the filter
  std::uint64_t runs = 0;     // how many
  Digest digest;              // SHA-256 over set_line() of each, in the plan's order
  std::vector<std::uint32_t>
      members;  // positions in CampaignReport::runs; the first of a large set
};

struct RunSets {
  std::vector<RunSet> sets;  // by row, then by class; empty ones are left out
  // Position of the set; nothing: it is empty, or of a row that has none.
  std::optional<std::size_t> find(std::size_t row, std::uint16_t classes) const;
};

// A set names at most so many of its runs; rows beyond the first so many have no sets.
inline constexpr std::size_t kSetMembers = 5'000, kSetRows = 400;
RunSets run_sets(const CampaignReport& report);
// "set-1" is the first: its name on the page and in report.json.
std::string set_name(std::size_t position);

// "json-lib/noop/r1 12ab...\n"; "-" where the run has no report.
void append_set_line(std::string& out, const RunRecord& run);
}  // namespace proctor
