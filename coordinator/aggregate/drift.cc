#include "coordinator/aggregate/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "common/base/text.h"
#include "coordinator/aggregate/analysis_json.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
namespace {

// Numbers for names, in the order of the names.
class NameCodes {
 public:
  void add(const std::string& name) { codes_.emplace(name, 0); }
  void number() {
    std::uint32_t next = 0;
    for (auto& [name, code] : codes_) {
      code = next++;
      found_.emplace(name, code);
    }
  }
  std::uint32_t of(const std::string& name) const { return found_.at(name); }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, code] : codes_) out.emplace_back(name);
    return out;
  }
  std::size_t size() const { return codes_.size(); }

 private:
  std::map<std::string_view, std::uint32_t> codes_;
  std::unordered_map<std::string_view, std::uint32_t> found_;
};

bool tells(const RunRecord& run) {
  return run.state == RunRecord::State::kEnded && run.outcome != RunOutcome::kInvalid &&
         0 < run.started_ms;
}

std::string why_unknown(Why why) {
  return why == Why::kNoVariance ? "runs of each task and method came out alike"
                                 : std::string(words(why));
}

}  // namespace

Drift drift_of(const CampaignReport& report) {
  Drift out;
  NameCodes tasks, methods, workers;
  for (const RunRecord& run : report.runs) {
    if (!tells(run)) continue;
    tasks.add(run.task);
    methods.add(run.method);
    workers.add(run.worker);
    out.first_ms = out.runs == 0 ? run.started_ms : std::min(out.first_ms, run.started_ms);
    out.last_ms = std::max(out.last_ms, run.started_ms);
    ++out.runs;
  }
  tasks.number();
  methods.number();
  workers.number();
  out.workers = workers.names();
  const double span = static_cast<double>(std::max<std::int64_t>(1, out.last_ms - out.first_ms));
  std::vector<TimedOutcome> timed;
  std::vector<std::vector<TimedOutcome>> by_method(methods.size());
  std::vector<GroupedOutcome> grouped;
  for (const RunRecord& run : report.runs) {
    if (!tells(run)) continue;
    const std::uint32_t method = methods.of(run.method);
    const auto stratum = static_cast<std::uint32_t>(tasks.of(run.task) * methods.size() + method);
    const bool success = run.outcome == RunOutcome::kSuccess;
    timed.push_back({stratum, success, static_cast<double>(run.started_ms - out.first_ms) / span});
    by_method[method].push_back(timed.back());
    grouped.push_back({stratum, success, workers.of(run.worker)});
  }
  out.trends.push_back({"", stratified_trend(timed)});
  const std::vector<std::string> names = methods.names();
  for (std::size_t m = 0; m < names.size(); ++m)
    out.trends.push_back({names[m], stratified_trend(by_method[m])});
  if (out.workers.size() <= kMostGroups)
    out.by_worker = stratified_association(grouped, out.workers.size());
  return out;
}

std::string trend_sentence(const Trend& trend) {
  if (!trend.test || !trend.slope) return "nothing is known of it (" + why_unknown(trend.why) + ")";
  return fmt::format("success changed by {:+.1f} points from the first start to the last (p {})",
                     *trend.slope * 100, aggregate::p_words(trend.test->p));
}

std::string worker_sentence(const Drift& drift) {
  if (drift.workers.size() < 2) return "one worker had all of these runs";
  if (kMostGroups < drift.workers.size())
    return fmt::format("{} workers had these runs, which are too many to tell apart",
                       drift.workers.size());
  if (!drift.by_worker.test)
    return fmt::format("of {} workers nothing is known ({})", drift.workers.size(),
                       why_unknown(drift.by_worker.why));
  return fmt::format("{} workers: p {} that it is the same whoever had the run",
                     drift.workers.size(), aggregate::p_words(drift.by_worker.test->p));
}

void append_drift(std::string& out, const Drift& drift) {
  if (drift.runs == 0) return;
  out += fmt::format("\nDrift (exploratory; within each task and method, {})\n\n",
                     counted(drift.runs, "run"));
  out += "  * over time: " + trend_sentence(drift.trends.front().trend) + "\n";
  out += "  * by worker: " + worker_sentence(drift) + "\n";
}

namespace aggregate {

Ordered drift_json(const Drift& drift) {
  const auto test_json = [](const std::optional<Significance>& test) {
    return test ? Ordered{{"chi_squared", test->statistic},
                          {"df", or_null(test->df)},
                          {"p", test->p}}
                : Ordered(nullptr);
  };
  const auto why_json = [](Why why) {
    return why == Why::kOk ? Ordered(nullptr) : Ordered(words(why));
  };
  Ordered trends = Ordered::array(), workers = Ordered::array();
  for (const MethodTrend& t : drift.trends)
    trends.push_back({{"method", t.method.empty() ? Ordered(nullptr) : Ordered(t.method)},
                      {"slope", or_null(t.trend.slope)},
                      {"strata", t.trend.strata},
                      {"test", test_json(t.trend.test)},
                      {"why", why_json(t.trend.why)}});
  for (std::size_t i = 0; i < drift.by_worker.groups.size(); ++i)
    workers.push_back({{"worker", drift.workers[i]},
                       {"runs", drift.by_worker.groups[i].runs},
                       {"successes", drift.by_worker.groups[i].successes},
                       {"expected", drift.by_worker.groups[i].expected}});
  return {{"runs", drift.runs},
          {"first_start_ms", drift.first_ms},
          {"last_start_ms", drift.last_ms},
          {"trends", std::move(trends)},
          {"workers", std::move(workers)},
          {"by_worker", test_json(drift.by_worker.test)},
          {"strata", drift.by_worker.strata},
          {"why", why_json(drift.by_worker.why)}};
}

}  // namespace aggregate
}  // namespace proctor
