// A million results of three methods: 2,000 joint replicates of them over 40 strata, drawn and
// summed on two threads; and all tables and comparisons of the same runs, and of smaller campaigns
// in which some outcomes are not known.  Prints `figure NAME VALUE UNIT` lines for scripts/bench.
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "common/stats/resample.h"
#include "coordinator/aggregate/analysis.h"

namespace {

using namespace proctor;

constexpr std::size_t kTasks = 66'667, kRuns = 5, kStrata = 40;
constexpr std::uint32_t kDraws = 2'000;
const char* const kMethods[] = {"agent-a", "agent-b", "noop"};

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double cpu_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

// Of each method: successes, scorable runs, the most that could have succeeded, and its cost in two
// limbs of 15 bits; and one column for tasks.
ResampleTable table() {
  ResampleTable out;
  for (std::size_t s = 0; s < kStrata; ++s) out.stratum_begin.push_back(s * kTasks / kStrata);
  PhiloxWords words(1, Stream::kExamples, 0);
  for (std::size_t c = 0; c < std::size(kMethods) * 6; ++c) {
    const bool limb = c % 6 >= 4;
    out.columns.emplace_back();
    for (std::size_t i = 0; i < kTasks; ++i)
      out.columns.back().push_back(
          static_cast<std::int16_t>(limb ? words.next() & 0x7FFFU : words.next() % (kRuns + 1)));
  }
  return out;
}

void draw(const ResampleTable& data, unsigned threads, ResampledSums& sums) {
  constexpr std::size_t kAtOnce = 8;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t at = next.fetch_add(kAtOnce); at < kDraws; at = next.fetch_add(kAtOnce))
      resample(data, at, std::min<std::size_t>(kAtOnce, kDraws - at), sums);
  };
  std::vector<std::jthread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  work();
}

// `unknown`: so many of 100 runs end in acceptance errors, and as many are invalid.
ReportInput runs_of(std::size_t tasks, std::uint64_t unknown) {
  ReportInput input;
  input.campaign = "bench";
  input.strata_keys = {"language"};
  PhiloxWords words(2, Stream::kExamples, 0);
  for (std::size_t i = 0; i < tasks; ++i)
    for (const char* method : kMethods)
      for (std::size_t r = 0; r < kRuns; ++r) {
        RunRecord run;
        run.run = RunId(static_cast<std::uint32_t>(input.runs.size()));
        run.task = "task-" + std::to_string(i);
        run.method = method;
        run.strata = {"language-" + std::to_string(i % kStrata)};
        run.state = RunRecord::State::kEnded;
        const std::uint64_t fate = words.next() % 100;
        run.outcome = fate < unknown          ? RunOutcome::kAcceptanceError
                      : fate < 2 * unknown    ? RunOutcome::kInvalid
                      : words.next() % 2 == 0 ? RunOutcome::kSuccess
                                              : RunOutcome::kFailure;
        run.wall_ms = 1 + words.next() % 100'000;
        input.runs.push_back(std::move(run));
      }
  input.contrasts = {{"agent-a", "noop"}, {"agent-b", "noop"}, {"agent-a", "agent-b"}};
  return input;
}

// What would turn the verdicts of many tasks, where the sign flips of each question are exact: a
// tenth of the runs ended in errors, and none is invalid.
void turn_verdicts(std::size_t tasks, const char* name) {
  constexpr std::uint64_t kErrors = 10;
  ReportInput input = runs_of(tasks, kErrors);
  for (RunRecord& run : input.runs)
    if (run.outcome == RunOutcome::kInvalid) run.outcome = RunOutcome::kFailure;
  const TaskCells cells = task_cells(input.runs);
  const auto start = std::chrono::steady_clock::now();
  const Analysis analysis = analyse(cells, AnalysisPlan{}, true, input.contrasts, 0);
  const double ms = ms_since(start);
  for (const Contrast& c : analysis.contrasts)
    std::printf("%s - %s: %s p, %llu unknown outcomes, turned by %llu\n", c.a.c_str(), c.b.c_str(),
                c.flips->exact ? "exact" : "normal",
                static_cast<unsigned long long>(c.tipping->unknown),
                static_cast<unsigned long long>(c.tipping->turned.value_or(0)));
  std::printf("figure %s %.0f ms\n", name, ms);
}

// All comparisons where some outcomes are not known, with what would turn each verdict, adjusted by
// Holm and by max-t: under these names.
void analyse_with_unknowns(std::size_t tasks, const char* holm, const char* max_t) {
  constexpr std::uint64_t kUnknown = 3;
  const ReportInput input = runs_of(tasks, kUnknown);
  const TaskCells cells = task_cells(input.runs);
  for (const auto rule : {AnalysisPlan::Multiplicity::kHolm, AnalysisPlan::Multiplicity::kMaxT}) {
    AnalysisPlan plan;
    plan.multiplicity = rule;
    const auto start = std::chrono::steady_clock::now();
    const Analysis analysis = analyse(cells, plan, true, input.contrasts, 0);
    const double ms = ms_since(start);
    std::printf("%zu runs of %zu tasks: adjusted by %s; %s\n", input.runs.size(), tasks,
                words(analysis.adjustment).c_str(),
                analysis.contrasts.front().tipping->tried ? "what would turn a verdict was tried"
                                                          : "turning a verdict was not tried");
    std::printf("figure %s %.0f ms\n", rule == AnalysisPlan::Multiplicity::kHolm ? holm : max_t,
                ms);
  }
}

}  // namespace

int main() {
  const ResampleTable data = table();
  ResampledSums sums(kDraws, kStrata, data.columns.size());
  double cpu = cpu_ms();
  auto start = std::chrono::steady_clock::now();
  draw(data, 2, sums);
  std::printf("figure stats.resample_1m_ms %.0f ms\n", ms_since(start));
  std::printf("figure stats.resample_1m_cpu_ms %.0f ms\n", cpu_ms() - cpu);

  analyse_with_unknowns(667, "stats.analysis_10k_holm_ms", "stats.analysis_10k_max_t_ms");
  analyse_with_unknowns(6'667, "stats.analysis_100k_holm_ms", "stats.analysis_100k_max_t_ms");

  turn_verdicts(5'000, "stats.turned_5k_tasks_ms");

  ReportInput input = runs_of(kTasks, 0);
  cpu = cpu_ms();
  start = std::chrono::steady_clock::now();
  const TaskCells cells = task_cells(input.runs);
  const double counted = ms_since(start);
  const Analysis analysis = analyse(cells, AnalysisPlan{}, false, input.contrasts, 0);
  std::printf("cells %.0f ms, rates and %zu contrasts %.0f ms\n", counted,
              analysis.contrasts.size(), ms_since(start) - counted);
  std::printf("figure stats.contrasts_1m_ms %.0f ms\n", ms_since(start));
  start = std::chrono::steady_clock::now();
  const CampaignReport report = build_report(std::move(input));
  std::printf("figure stats.tables_1m_ms %.0f ms\n", ms_since(start));
  return report.rows.empty() ? 1 : 0;
}
