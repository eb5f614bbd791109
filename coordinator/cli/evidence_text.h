#pragma once
// Evidence of an attempt as text: its calls of models and its checks.
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/json_fields.h"
#include "common/trace/model_calls.h"
#include "common/trace/run_report.h"

namespace proctor {
// Calls of models and what tripped, as `explain --json` has them.
void fields(auto& v, Is<UnlistedRefusals> auto& u) {
  v("refused", u.all);
  v("wrong_tokens", u.wrong_tokens);
  v("unknown_routes", u.unknown_routes);
}
void fields(auto& v, Is<TracedCall> auto& c) {
  v("life", c.life);
  v("call", c.number);
  v("request", c.request);
  v("response", c.response);
  v("refused", c.refused);
}
void fields(auto& v, Is<TracedTrip> auto& t) {
  v("event", t.seq);
  v("breaker", t.code);
  v("action", t.action);
  v("why", t.why);
}
}  // namespace proctor

namespace proctor::cli {
// Calls of models as a table, for `explain --calls` and `cassette`.  Pure.

// One line a call; what agents and providers said is escaped.
std::string calls_text(const TracedModels& told);
std::string cassette_list(const std::vector<CassetteCall>& calls);

// The evidence of one attempt for people: which checks did not pass and what they wrote last, and
// whether its patch was judged again.  Reads the run directory alone; what is not there is left
// out.

// The last lines of a file, equal ones once, each behind `indent`; empty: nothing is in it.
std::string last_lines_of(const fs::path& file, const std::string& indent);
// The checks that its report has; without a report there are none.
std::vector<CheckReport> checks_in(const fs::path& attempt);
// A paragraph for each check that did not pass.
std::string failing_checks(const fs::path& attempt);
// "check tests: stopped at its time limit": the first that could not be completed; empty: none.
std::string unfinished_check(const fs::path& attempt);
// "judged again from the same patch, 2 times, the last time because of WHY"; empty: it was not.
Result<std::string> judged_again(const fs::path& attempt);
// How many runs of acceptance passed before the last one, by the events; 0: none, or they cannot be
// read.
std::uint64_t passes_before(const fs::path& attempt);
}  // namespace proctor::cli
