// JUnit's XML: no schema of its makers exists, so what the common readers agree on.
#include <algorithm>
#include <map>

#include "common/base/system_clock.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/forms/forms.h"

namespace proctor {
namespace {

using aggregate::escaped;

constexpr std::size_t kJunitNameBytes = 400, kJunitLineBytes = 300, kJunitTextBytes = 2'000;

struct CaseCounts {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  std::uint64_t wall_ms = 0;
  void add(const CaseCounts& more) {
    tests += more.tests;
    failures += more.failures;
    errors += more.errors;
    skipped += more.skipped;
    wall_ms += more.wall_ms;
  }
};

std::string junit_seconds(std::uint64_t ms) {
  std::string fraction = std::to_string(1000 + ms % 1000);
  return std::to_string(ms / 1000) + "." + fraction.substr(1);
}

std::string attribute(std::string_view name, std::string_view outside, std::size_t bytes_max) {
  std::string out = " ";
  out += name;
  out += "=\"" + escaped(outside, bytes_max) + "\"";
  return out;
}

std::string case_counters(const CaseCounts& c) {
  return " tests=\"" + std::to_string(c.tests) + "\" failures=\"" + std::to_string(c.failures) +
         "\" errors=\"" + std::to_string(c.errors) + "\" skipped=\"" + std::to_string(c.skipped) +
         "\" time=\"" + junit_seconds(c.wall_ms) + "\"";
}

// "<failure type="agent_timeout" message="...">...</failure>"
std::string verdict(std::string_view element, std::string_view type, std::string_view why) {
  std::string out = "<";
  out += element;
  out +=
      attribute("type", type, kJunitNameBytes) + attribute("message", why, kJunitLineBytes) + ">";
  out += escaped(why, kJunitTextBytes) + "</";
  out += element;
  return out + ">";
}

std::string skipped(std::string_view why) {
  return "<skipped" + attribute("message", why, kJunitLineBytes) + "/>";
}

std::string why_not_ended(const RunRecord& run) {
  switch (run.state) {
    case RunRecord::State::kParked:
      return "parked: " + (run.parked_why.empty()
                               ? run.parked_scope + " is short by " + format_usd(run.short_by)
                               : run.parked_why);
    case RunRecord::State::kRunning:
      return "running";
    case RunRecord::State::kPlanned:
      return "not run yet";
    case RunRecord::State::kCancelled:
      return "cancelled by an operator";
    case RunRecord::State::kRemoved:
      return "removed: its task was taken out of the campaign";
    case RunRecord::State::kEnded:
      break;
  }
  return "";
}

// What stands inside the case of this run; empty: it passed.  CaseCounts it.
std::string verdict_of(const RunRecord& run, CaseCounts& counts) {
  if (run.state != RunRecord::State::kEnded) {
    ++counts.skipped;
    return skipped(why_not_ended(run));
  }
  const std::string_view outcome = to_string(run.outcome);
  if (run.outcome == RunOutcome::kSuccess && run.satisfied()) return "";
  if (run.outcome == RunOutcome::kSuccess) {
    ++counts.failures;
    return verdict("failure", "unsatisfied",
                   "its checks passed, but not all of its gates: " + run.unmet());
  }
  if (run.outcome == RunOutcome::kFailure) {
    ++counts.failures;
    const bool by_itself = run.termination == Termination::kCompleted;
    return verdict("failure", by_itself ? outcome : to_string(run.termination), run.rationale);
  }
  ++counts.errors;
  return verdict("error", outcome, run.rationale);
}

void append_case(std::string& out, std::string_view class_name, std::string_view name,
                 std::uint64_t wall_ms, const std::string& inside) {
  out += "    <testcase" + attribute("classname", class_name, kJunitNameBytes) +
         attribute("name", name, kJunitNameBytes) + " time=\"" + junit_seconds(wall_ms) + "\"";
  out += inside.empty() ? "/>\n" : ">" + inside + "</testcase>\n";
}

void append_run(std::string& out, const RunRecord& run, CaseCounts& counts) {
  ++counts.tests;
  counts.wall_ms += run.wall_ms;
  std::string inside = verdict_of(run, counts);
  if (run.report != Digest())
    inside += "<system-out>" + escaped(run.name, kJunitNameBytes) + " report " + run.report.hex() +
              "</system-out>";
  const std::size_t slash = run.name.rfind('/');
  append_case(out, run.method + "." + run.task,
              slash == std::string::npos ? run.name : run.name.substr(slash + 1), run.wall_ms,
              inside);
}

// All runs of one task of one method: the worst of them decides, and how many passed is said.
struct TaskCase {
  CaseCounts counts;  // of its runs
  std::size_t ended = 0;
};
void append_task(std::string& out, const std::string& method, const std::string& task,
                 const TaskCase& of, CaseCounts& counts) {
  ++counts.tests;
  counts.wall_ms += of.counts.wall_ms;
  const std::size_t passed = of.ended - of.counts.failures - of.counts.errors;
  const std::string said = std::to_string(passed) + " of " + std::to_string(of.ended) +
                           " ended runs passed, " + std::to_string(of.counts.failures) +
                           " failed, " + std::to_string(of.counts.errors) +
                           " ended in an error or invalid";
  std::string inside;
  if (0 < of.counts.failures) {
    ++counts.failures;
    inside = verdict("failure", "failure", said);
  } else if (0 < of.counts.errors) {
    ++counts.errors;
    inside = verdict("error", "acceptance_error or invalid", said);
  } else if (of.ended == 0) {
    ++counts.skipped;
    inside = skipped("none of its " + std::to_string(of.counts.skipped) + " runs has ended");
  }
  append_case(out, method, task, of.counts.wall_ms, inside);
}

void append_property(std::string& out, std::string_view name, std::string_view value) {
  out += "      <property" + attribute("name", name, kJunitNameBytes) +
         attribute("value", value, kJunitLineBytes) + "/>\n";
}

std::string suite_properties(const CampaignReport& report, const ReportRow& row,
                             std::size_t left_out) {
  std::string out = "    <properties>\n";
  append_property(out, "campaign", report.campaign);
  if (!report.journal_head.empty()) append_property(out, "journal_head", report.journal_head);
  append_property(out, "planned", std::to_string(row.planned));
  append_property(out, "success", std::to_string(row.success));
  append_property(out, "satisfied", std::to_string(row.satisfied));
  append_property(out, "failure", std::to_string(row.failure));
  append_property(out, "acceptance_error", std::to_string(row.acceptance_error));
  append_property(out, "invalid", std::to_string(row.invalid));
  if (0 < left_out) append_property(out, "cases_left_out", std::to_string(left_out));
  return out + "    </properties>\n";
}

// Of its cases at most `room` are written.
std::string junit_suite(const CampaignReport& report, const ReportRow& row, JunitCases by,
                        std::size_t& room, CaseCounts& counts) {
  std::string cases;
  std::size_t left_out = 0;
  std::int64_t started = 0;
  std::map<std::string_view, TaskCase> tasks;
  for (const std::uint32_t position : row.runs) {
    const RunRecord& run = report.runs[position];
    if (0 < run.started_ms && (started == 0 || run.started_ms < started)) started = run.started_ms;
    if (by == JunitCases::kTasks) {
      TaskCase& of = tasks[run.task];
      verdict_of(run, of.counts);
      of.counts.wall_ms += run.wall_ms;
      of.ended += run.state == RunRecord::State::kEnded ? 1 : 0;
    } else if (room == 0) {
      ++left_out;
    } else {
      --room;
      append_run(cases, run, counts);
    }
  }
  for (const auto& [task, of] : tasks) {
    if (room == 0) {
      ++left_out;
      continue;
    }
    --room;
    append_task(cases, row.method, std::string(task), of, counts);
  }
  std::string out =
      "  <testsuite" + attribute("name", row.method, kJunitNameBytes) + case_counters(counts);
  if (0 < started) out += attribute("timestamp", to_rfc3339(WallTime(started)), kJunitNameBytes);
  return out + ">\n" + suite_properties(report, row, left_out) + cases + "  </testsuite>\n";
}

}  // namespace

std::string render_junit(const CampaignReport& report, JunitCases cases) {
  if (kJunitCasesMax < report.runs.size()) cases = JunitCases::kTasks;
  std::string suites;
  CaseCounts all;
  std::size_t room = kJunitCasesMax;
  for (const ReportRow& row : report.rows) {
    if (!row.key.empty()) continue;
    CaseCounts counts;
    suites += junit_suite(report, row, cases, room, counts);
    all.add(counts);
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
         attribute("name", report.campaign, kJunitNameBytes) + case_counters(all) + ">\n" + suites +
         "</testsuites>\n";
}

}  // namespace proctor
