#include "coordinator/aggregate/warnings.h"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <tuple>
#include <utility>

#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/caps.h"
#include "coordinator/aggregate/format.h"

namespace proctor {
std::vector<std::string> recording_warnings(std::span<const RunRecord> runs) {
  struct Count {
    std::uint64_t runs = 0, recorded = 0, calls = 0;
  };
  std::map<std::string_view, Count> methods;
  for (const RunRecord& run : runs) {
    if (run.state != RunRecord::State::kEnded) continue;
    Count& count = methods[run.method];
    ++count.runs;
    if (run.model_use.replayed == 0) continue;
    ++count.recorded;
    count.calls += run.model_use.replayed;
  }
  std::vector<std::string> out;
  for (const auto& [method, count] : methods)
    if (0 < count.recorded)
      out.push_back(fmt::format(
          "{} of {} runs of {} were answered by a recording (a cassette, {} calls) and not by a "
          "model: what they cost is not what the models cost, and their answers are of the day of "
          "the recording",
          count.recorded, count.runs, printable(method), count.calls));
  return out;
}

namespace {
using namespace aggregate;
using Baseline = RunRecord::Baseline;

constexpr std::size_t kShown = 10, kWhyBytes = 1'000, kValueBytes = 80;
constexpr std::uint64_t kEarlyMs = 2'000;

// Times of day and durations differ between two runs that end for one cause.
std::string without_times(const std::string& why) {
  std::string out;
  for (std::size_t i = 0; i < why.size(); ++i) {
    const std::size_t end = why.find_first_not_of("0123456789", i);
    const bool number = end != i && end != std::string::npos && why.compare(end, 3, " ms") == 0;
    out += number ? '#' : why[i];
    if (number) i = end - 1;
  }
  return out;
}

bool is_ended(const RunRecord& run) {
  return run.state == RunRecord::State::kEnded;
}

void section(std::string& out, const char* title, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  out += "\n" + std::string(title) + "\n\n";
  for (std::size_t i = 0; i < std::min(kShown, sentences.size()); ++i)
    append_wrapped(out, "  ", printable(sentences[i], kWhyBytes));
  if (kShown < sentences.size())
    out += "  and " + std::to_string(sentences.size() - kShown) + " more: see runs.csv\n";
}

std::string of_runs(std::uint64_t n, std::uint64_t all) {
  return std::to_string(n) + " of " + counted(all, "run");
}
}  // namespace

std::map<std::string_view, std::set<std::string_view>> classes_by_task(
    std::span<const RunRecord> runs) {
  std::map<std::string_view, std::set<std::string_view>> out;
  for (const RunRecord& run : runs)
    if (is_ended(run) && !run.configuration.empty()) out[run.task].insert(run.configuration);
  return out;
}

std::string configuration_difference(const std::set<std::string_view>& classes,
                                     const Configurations& known) {
  std::map<std::string, std::set<std::string>> values;  // by part
  std::vector<const std::map<std::string, std::string>*> read;
  for (const std::string_view one : classes)
    if (const auto parts = known.find(std::string(one)); parts != known.end()) {
      read.push_back(&parts->second);
      for (const auto& [name, value] : parts->second) values[name].insert(value);
    }
  // A part that only some of them have is a difference, too.
  for (auto& [name, seen] : values)
    if (std::ranges::any_of(read, [&](const auto* parts) { return !parts->contains(name); }))
      seen.insert("none");
  std::string out;
  for (const auto& [name, seen] : values) {
    if (seen.size() < 2) continue;
    std::string all;
    for (const std::string& value : seen)
      all += (all.empty() ? "" : ", ") + (value.empty() ? "\"\"" : printable(value, kValueBytes));
    out += (out.empty() ? "" : ", ") + printable(name) + " (" + all + ")";
  }
  return out.empty() ? "parts that are not known here" : out;
}

std::string configuration_warning(std::span<const RunRecord> runs, const Configurations& known) {
  std::vector<std::string> tasks;
  std::set<std::string_view> classes;
  const auto by_task = classes_by_task(runs);
  for (const auto& [task, its] : by_task) {
    if (its.size() < 2) continue;
    tasks.emplace_back(task);
    classes.insert(its.begin(), its.end());
  }
  if (tasks.empty()) return "";
  const std::size_t mixed = tasks.size();
  tasks.resize(std::min(kShown, mixed));
  return fmt::format(
      "{} of {} have runs of several configuration classes ({}{}), so that a difference between "
      "these may be one of what they ran in: {} (proctor list --where configuration=CLASS)",
      mixed, counted(by_task.size(), "task"), listed_names(tasks), kShown < mixed ? ", ..." : "",
      configuration_difference(classes, known));
}

std::string configuration_line(std::span<const RunRecord> runs) {
  std::map<std::string_view, std::uint64_t> counts;
  for (const RunRecord& run : runs)
    if (is_ended(run) && !run.configuration.empty()) ++counts[run.configuration];
  if (counts.empty()) return "";
  std::vector<std::string> classes;
  for (const auto& [name, n] : counts | std::views::take(kShown))
    classes.push_back(printable(name) + " " + counted(n, "run"));
  return fmt::format("{} configuration class{}: {}{}", counts.size(),
                     counts.size() == 1 ? "" : "es", fmt::join(classes, ", "),
                     kShown < counts.size() ? ", ..." : "");
}

namespace {
std::string not_replayable(std::span<const RunRecord> runs) {
  std::uint64_t ended = 0, networked = 0, lost = 0, unknown = 0;
  for (const RunRecord& run : runs) {
    if (!is_ended(run)) continue;
    ++ended;
    if (run.networked)
      ++networked;
    else if (run.report == Digest())
      ++lost;
    else if (run.configuration.empty())
      ++unknown;
  }
  if (ended == 0) return "";
  return fmt::format(
      "{} of {} that ended are not replayable: {} had the network in a phase, {} left no "
      "evidence.{} Where the agent alone had it, proctor replay judges the patch again all the "
      "same.",
      networked + lost, counted(ended, "run"), networked, lost,
      unknown == 0 ? "" : fmt::format(" Of {} more an older worker did not say it.", unknown));
}

// " (2026-11-01 to 2026-11-30)": when the first and the last of them began; empty: not known.
std::string days_of(std::span<const RunRecord> runs) {
  std::int64_t first = 0, last = 0;
  for (const RunRecord& run : runs) {
    if (run.started_ms <= 0) continue;
    first = first == 0 ? run.started_ms : std::min(first, run.started_ms);
    last = std::max(last, run.started_ms);
  }
  constexpr std::size_t kDateBytes = 10;
  const auto date = [](std::int64_t ms) { return to_rfc3339(WallTime(ms)).substr(0, kDateBytes); };
  return first == 0 ? "" : fmt::format(" ({} to {})", date(first), date(last));
}
}  // namespace

std::vector<std::string> report_limits(const CampaignReport& report) {
  std::vector<std::string> out = {
      std::string(kCapsArePolicy),
      "Its scope is acceptance suites that run on one machine, each on a pinned snapshot of one "
      "repository, in sandboxes of the classes that its runs name, with the models as they "
      "answered then. Services in a cloud, changes to several repositories at once, other "
      "languages, other models and other days are outside of it.",
      fmt::format("These of its numbers rest on assumptions that were not measured: amounts on the "
                  "price table, {}intervals and tests on tasks (or repositories, where these are "
                  "the unit) that are independent of each other, and a power study on an "
                  "intra-task correlation.",
                  report.projection ? "the projection on its inputs, " : "")};
  for (std::string line : {not_replayable(report.runs), configuration_line(report.runs)})
    if (!line.empty()) out.push_back(std::move(line));
  out.push_back(
      "Results have a shelf life: what lock files and images pin, and what models "
      "answer, is of the days when the runs began" +
      days_of(report.runs) + ", which each manifest.json names.");
  return out;
}

std::vector<EndCause> end_causes(const CampaignReport& report) {
  std::map<std::tuple<RunOutcome, std::string, std::string>, EndCause> by_cause;
  for (const RunRecord& run : report.runs) {
    const bool invalid = run.outcome == RunOutcome::kInvalid;
    if (!is_ended(run) || (!invalid && run.outcome != RunOutcome::kAcceptanceError)) continue;
    // What an acceptance error's rationale says is how its agent ended.
    const std::string why = invalid ? run.rationale : std::string();
    EndCause& cause = by_cause[{run.outcome, run.method, without_times(why)}];
    if (cause.runs++ == 0) cause = {run.outcome, run.method, why, run.name, 1};
  }
  std::vector<EndCause> out;
  for (auto& [key, cause] : by_cause) out.push_back(std::move(cause));
  std::ranges::stable_sort(out, std::greater(), &EndCause::runs);
  return out;
}

std::string broken_task_word(const RunRecord& run) {
  if (!is_ended(run) || !run.is_control() || run.outcome == RunOutcome::kInvalid) return "";
  const bool is_noop = run.baseline == Baseline::kNoop;
  if (0 < run.passes)
    return fmt::format(
        "its acceptance passed {} with {} and then did not, so its checks measure chance: mend "
        "what they wait for, draw or share (proctor screen counts how often)",
        counted(run.passes, "time"), is_noop ? "nothing changed" : "its own reference patch");
  if (is_noop != (run.outcome == RunOutcome::kSuccess)) return "";
  if (is_noop)
    return "its checks pass with nothing changed, so they tell no solution from none: add a check "
           "that fails without the fix";
  const bool fails = run.outcome == RunOutcome::kFailure;
  return fmt::format(
      "its checks {} with its own reference patch, so no agent can pass: mend the checks{}",
      fails ? "fail" : "cannot be completed", fails ? " or the patch" : "");
}

std::vector<std::string> broken_tasks(std::span<const RunRecord> runs) {
  struct Seen {
    std::uint64_t bad = 0, ended = 0;
    const RunRecord* first = nullptr;
  };
  std::map<std::pair<std::string, std::string>, Seen> seen;  // by task and method
  for (const RunRecord& run : runs) {
    if (!run.is_control() || !is_ended(run)) continue;
    Seen& s = seen[{run.task, run.method}];
    ++s.ended;
    const bool bad = !broken_task_word(run).empty();
    // One that shows the task to be flaky says most.
    if (bad && (s.bad++ == 0 || s.first->passes < run.passes)) s.first = &run;
  }
  std::vector<std::string> out;
  for (const auto& [key, s] : seen) {
    if (s.first == nullptr) continue;
    out.push_back(fmt::format("task {} is {}: {} ended with {} in {} ({}): {}", key.first,
                              s.first->passes == 0 ? "broken" : "flaky", key.second,
                              to_string(s.first->outcome), of_runs(s.bad, s.ended), s.first->name,
                              broken_task_word(*s.first)));
  }
  return out;
}

std::vector<std::string> unsatisfied_methods(const CampaignReport& report) {
  std::vector<std::string> out;
  for (const ReportRow& row : report.rows)
    if (row.key.empty() && row.satisfied < row.success)
      out.push_back(fmt::format("{}: {} of {} successes did not pass a gate beside their checks",
                                row.method, row.success - row.satisfied, row.success));
  return out;
}

std::string why_worthless(std::span<const RunRecord> runs) {
  const auto is_judged = [](const RunRecord& run) {
    return is_ended(run) &&
           (run.outcome == RunOutcome::kSuccess || run.outcome == RunOutcome::kFailure);
  };
  if (std::ranges::any_of(runs, is_ended) && std::ranges::none_of(runs, is_judged))
    return "no run came to a verdict, so nothing was measured";
  const std::vector<std::string> broken = broken_tasks(runs);
  return broken.empty() ? "" : "a control came out wrong: " + broken.front();
}

std::vector<EarlyEnd> early_ends(const std::vector<RunRecord>& runs) {
  std::map<std::string, std::optional<EarlyEnd>> by_method;  // nothing: one of them is not so
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    if (!is_ended(run) || run.outcome == RunOutcome::kInvalid || run.is_control()) continue;
    const bool early = run.outcome != RunOutcome::kSuccess && run.agent_exit.value_or(0) != 0 &&
                       run.agent_ms < kEarlyMs;
    const auto [it, is_first] =
        by_method.try_emplace(run.method, EarlyEnd{run.method, 0, run.agent_exit.value_or(0), i});
    std::optional<EarlyEnd>& all = it->second;
    if (!early || (all && all->exit_code != *run.agent_exit)) all.reset();
    if (all) ++all->runs;
  }
  std::vector<EarlyEnd> out;
  for (auto& [method, early] : by_method)
    if (early) out.push_back(*std::move(early));
  return out;
}

std::string early_end_text(const EarlyEnd& early, const std::vector<RunRecord>& runs) {
  const RunRecord& first = runs[early.first];
  return of_runs(early.runs, early.runs) + " of " + early.method + " ended within " +
         std::to_string(kEarlyMs / 1'000) + " s with exit code " + std::to_string(early.exit_code) +
         ", and none succeeded" +
         (first.last_words.empty() ? " (" : ": " + first.last_words + " (") + first.name + ")";
}

void append_early_ends(std::string& out, const CampaignReport& report) {
  std::vector<std::string> methods;
  for (const EarlyEnd& early : early_ends(report.runs))
    methods.push_back(early_end_text(early, report.runs));
  section(out, "Agents that ended as soon as they had begun (is that what was to be measured?)",
          methods);
}

std::string end_cause_text(const EndCause& c, const std::string& why) {
  return std::to_string(c.runs) + " " + std::string(to_string(c.outcome)) + " of " + c.method +
         ": " + (why.empty() ? "a check could not be completed" : why) + " (" + c.first + ")";
}

void append_end_causes(std::string& out, const CampaignReport& report) {
  std::vector<std::string> causes;
  for (const EndCause& c : end_causes(report)) causes.push_back(end_cause_text(c, c.why));
  section(out, "Runs that came to no verdict, by cause (the most frequent first)", causes);
}

void append_broken_tasks(std::string& out, const CampaignReport& report) {
  section(out, "Broken tasks (what they say of agents is worth nothing)",
          broken_tasks(report.runs));
}
}  // namespace proctor
