#include "coordinator/aggregate/leaderboard.h"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "common/base/text.h"
#include "common/stats/power.h"
#include "common/stats/resample.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"

namespace proctor {
namespace {
constexpr std::uint32_t kBoardDraws = 2'000;
// Pairs x draws x tasks beyond which replicates would take minutes.
constexpr double kBoardWork = 2e9;

// The counted tasks of a campaign with their contracts.
using Tasks = std::map<std::string, Digest>;

Tasks counted_tasks(const Registration& r, const std::vector<std::string>& wanted) {
  Tasks out;
  for (const auto& [task, digest] : r.contracts)
    if (!is_removed(r, task) && (wanted.empty() || std::ranges::find(wanted, task) != wanted.end()))
      out.emplace(task, digest);
  return out;
}

Digest digest_of(const Tasks& tasks) {
  std::string lines;
  for (const auto& [task, contract] : tasks) lines += task + " " + contract.hex() + "\n";
  return sha256(lines);
}

std::string caps_words(const Registration& r) {
  std::string out;
  for (const auto& [name, value] : r.caps)
    out += (out.empty() ? "" : ", ") + (name == "micro_usd"
                                            ? "usd " + format_usd(MicroUsd::from_micros(value))
                                            : name + " " + std::to_string(value));
  const auto run = r.envelopes.find("run");
  if (run != r.envelopes.end())
    out += (out.empty() ? "" : ", ") + ("a run " + format_usd(MicroUsd::from_micros(run->second)));
  return out;
}

// A row while its table is made: its cells by counted task.
struct BoardEntry {
  BoardRow row;
  std::vector<TaskCell> cells;
  bool is_control = false;
};

void count_runs(BoardEntry& entry, const CampaignReport& report, const Tasks& tasks) {
  std::int64_t micros = 0, of_ended = 0;
  std::uint64_t ended = 0, successes = 0;
  for (const RunRecord& run : report.runs) {
    if (run.method != entry.row.method || !tasks.contains(run.task)) continue;
    micros += run.cost.total().micros();
    if (run.state != RunRecord::State::kEnded) {
      const bool open =
          run.state == RunRecord::State::kPlanned || run.state == RunRecord::State::kRunning;
      ++(open ? entry.row.open : entry.row.not_run);
      continue;
    }
    ++ended;
    of_ended += run.cost.total().micros();
    successes += run.outcome == RunOutcome::kSuccess ? 1 : 0;
    entry.row.satisfied += run.satisfied() ? 1 : 0;
    entry.row.acceptance_error += run.outcome == RunOutcome::kAcceptanceError ? 1 : 0;
    entry.row.invalid += run.outcome == RunOutcome::kInvalid ? 1 : 0;
    // Of what was invalid before it began there may be none (docs/run-directory.md).
    if (run.report == Digest() && run.outcome != RunOutcome::kInvalid) ++entry.row.without_evidence;
  }
  const auto dollars = [](std::int64_t sum, std::uint64_t n) {
    return static_cast<double>(sum) / 1e6 / static_cast<double>(n);
  };
  if (0 < ended) entry.row.cost_of_run = dollars(of_ended, ended);
  if (0 < successes) entry.row.cost_of_success = dollars(micros, successes);
}

BoardEntry entry_of(const BoardCampaign& c, const TaskCells& cells, std::size_t method,
                    const Tasks& tasks, const AnalysisPlan& plan) {
  BoardEntry out;
  const Registration& r = c.registration;
  out.row.campaign = c.report.campaign;
  out.row.folder = c.folder;
  out.row.method = cells.methods[method];
  out.is_control = is_control(c.report, out.row.method);
  out.row.prices = r.cost_model_version + " " + r.cost_model.short_hex();
  out.row.caps = caps_words(r);
  out.row.tool_version = r.tool_version;
  out.row.registered_ms = r.at.raw();
  out.row.journal_head = c.report.journal_head;
  std::vector<Cluster> scorable;
  std::vector<PartlyKnown> known;
  for (const auto& [task, contract] : tasks) {
    const TaskCell cell = cells.cell(task, method);
    out.cells.push_back(cell);
    if (const PartlyKnown attempted = cell.known(true); 0 < attempted.runs)
      known.push_back(attempted);
    if (cell.scorable == 0) continue;
    scorable.push_back(cell.rate());
    out.row.runs += cell.scorable;
  }
  out.row.tasks = scorable.size();
  out.row.rate = rate_over_tasks(scorable, plan);
  out.row.bounds = bounds_of_rate(known, plan.alpha.real());
  count_runs(out, c.report, tasks);
  return out;
}

// Of row i less row j, over the tasks that both have.
struct Pair {
  std::size_t i = 0, j = 0;
  std::vector<std::pair<std::size_t, double>> differences;  // task, its difference
};

std::vector<Pair> pairs_of(std::span<const BoardEntry> entries) {
  std::vector<Pair> out;
  for (std::size_t i = 0; i < entries.size(); ++i)
    for (std::size_t j = i + 1; j < entries.size(); ++j) {
      Pair pair{i, j, {}};
      for (std::size_t t = 0; t < entries[i].cells.size(); ++t) {
        const TaskCell &a = entries[i].cells[t], &b = entries[j].cells[t];
        if (0 < a.scorable && 0 < b.scorable)
          pair.differences.emplace_back(t, rate_difference({a.rate(), b.rate()}));
      }
      out.push_back(std::move(pair));
    }
  return out;
}

std::vector<double> values_of(const Pair& pair) {
  std::vector<double> out;
  for (const auto& [task, d] : pair.differences) out.push_back(d);
  return out;
}

// Weighted means of the pairs in each replicate, all under the same weights.
std::vector<double> replicates_of(const std::vector<Pair>& pairs, std::size_t tasks,
                                  const std::vector<double>& means) {
  std::vector<std::int16_t> weights(tasks);
  std::vector<double> out;
  out.reserve(pairs.size() * kBoardDraws);
  for (std::uint32_t b = 0; b < kBoardDraws; ++b) {
    draw_weights(weights, b);
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      double sum = 0, weight = 0;
      for (const auto& [task, d] : pairs[p].differences) {
        sum += weights[task] * d;
        weight += weights[task];
      }
      // A draw without any of its tasks says nothing about the pair.
      out.push_back(0 < weight ? sum / weight : means[p]);
    }
  }
  return out;
}

// Where all tasks differ alike there is no spread and no interval, and signs alone tell how sure
// that is: an interval without width where their exact p does at `level`.
std::optional<Interval> by_signs(const Pair& pair, double level) {
  const std::vector<double> values = values_of(pair);
  if (values.empty() || values.front() == 0 || level < least_flip_p(values.size()))
    return std::nullopt;
  const auto differs = [&](double d) { return d != values.front(); };
  if (std::ranges::any_of(values, differs)) return std::nullopt;
  return Interval{values.front(), values.front()};
}

// Requires: no entry is a control.
void rank(BoardTable& table, std::span<BoardEntry> entries, double alpha) {
  const std::size_t n = entries.size(), tasks = table.tasks.size();
  const std::vector<Pair> pairs = pairs_of(entries);
  std::vector<std::optional<Interval>> intervals(n * n);
  const auto put = [&](const Pair& p, std::optional<Interval> interval) {
    if (!interval) interval = by_signs(p, alpha / static_cast<double>(pairs.size()));
    if (!interval) return;
    intervals[p.i * n + p.j] = interval;
    intervals[p.j * n + p.i] = Interval{-interval->high, -interval->low};
  };
  const double work = static_cast<double>(pairs.size()) * kBoardDraws * static_cast<double>(tasks);
  if (pairs.empty()) {
    table.rank_rule = "one agent: there is no rank";
  } else if (tasks < kMaxTTasks || kMostTasks < tasks || kBoardWork < work) {
    table.rank_rule = fmt::format(
        "two rows are told apart where Student's t over their common tasks does so at {:.2g} "
        "(alpha "
        "over {} pairs)",
        alpha / static_cast<double>(pairs.size()), pairs.size());
    for (const Pair& p : pairs)
      put(p, mean_difference(values_of(p), alpha / static_cast<double>(pairs.size()))
                 .estimate.interval);
  } else {
    table.rank_rule = fmt::format(
        "two rows are told apart by simultaneous intervals of all {} differences (max-t, {} joint "
        "replicates of tasks)",
        pairs.size(), kBoardDraws);
    std::vector<double> means, errors;
    for (const Pair& p : pairs) {
      const Estimate e = mean_difference(values_of(p), alpha).estimate;
      means.push_back(e.value.value_or(0));
      errors.push_back(e.standard_error.value_or(0));
    }
    const MaxT family = max_t(means, errors, replicates_of(pairs, tasks, means), tasks, alpha);
    for (std::size_t p = 0; p < pairs.size(); ++p) put(pairs[p], family.intervals[p]);
  }
  if (!pairs.empty())
    table.rank_rule += ", and where all tasks differ alike by the exact p of sign flips";
  const std::vector<RankSet> ranks = rank_sets(intervals, n);
  for (std::size_t i = 0; i < n; ++i) entries[i].row.ranks = ranks[i];
}

// Caps, prices and versions that differ within a table: what a reader must know before it compares.
void tell_board_differences(BoardTable& table) {
  const auto differ = [&](const char* what, const std::string BoardRow::*member) {
    std::set<std::string> values;
    for (const BoardRow& row : table.rows) values.insert(row.*member);
    if (values.size() < 2) return;
    std::string said = std::string(what) + " differ:";
    for (const std::string& v : values) said += " (" + printable(v.empty() ? "none" : v) + ")";
    table.differences.push_back(said);
  };
  differ("caps of a run", &BoardRow::caps);
  differ("price tables, so costs do not compare,", &BoardRow::prices);
  differ("versions of proctor", &BoardRow::tool_version);
  for (const BoardRow& row : table.rows)
    if (0 < row.not_run)
      table.differences.push_back(fmt::format("{} of {}: {} parked, cancelled or removed",
                                              printable(row.method), printable(row.campaign),
                                              counted(row.not_run, "run")));
}
}  // namespace

Leaderboard make_leaderboard(const std::vector<BoardCampaign>& campaigns,
                             const std::vector<std::string>& tasks) {
  Leaderboard out;
  AnalysisPlan plan;
  out.alpha = plan.alpha.real();
  std::map<Digest, std::pair<Tasks, std::vector<BoardEntry>>> tables;
  for (const BoardCampaign& c : campaigns) {
    const Tasks of_this = counted_tasks(c.registration, tasks);
    if (of_this.empty()) continue;
    auto& [named, entries] = tables[digest_of(of_this)];
    named = of_this;
    const TaskCells cells = task_cells(c.report.runs);
    for (std::size_t m = 0; m < cells.methods.size(); ++m)
      entries.push_back(entry_of(c, cells, m, of_this, plan));
  }
  for (auto& [digest, of] : tables) {
    BoardTable table;
    table.tasks_digest = digest;
    for (const auto& [task, contract] : of.first) table.tasks.push_back(task);
    const auto controls =
        std::ranges::stable_partition(of.second, std::not_fn(&BoardEntry::is_control));
    rank(table, {of.second.begin(), controls.begin()}, out.alpha);
    for (BoardEntry& e : of.second) table.rows.push_back(std::move(e.row));
    std::ranges::stable_sort(table.rows, {}, [](const BoardRow& r) {
      const RankSet ranks = r.ranks.value_or(RankSet{});
      return std::tuple(!r.ranks, ranks.best, ranks.worst, r.method, r.campaign);
    });
    tell_board_differences(table);
    out.tables.push_back(std::move(table));
  }
  std::ranges::stable_sort(out.tables, [](const BoardTable& a, const BoardTable& b) {
    if (a.rows.size() != b.rows.size()) return b.rows.size() < a.rows.size();
    return a.rows.front().campaign < b.rows.front().campaign;
  });
  return out;
}

// A leaderboard on a terminal, as JSON and as CSV.

namespace {
using namespace aggregate;

constexpr std::size_t kTasksNamed = 5;
}  // namespace

std::string render_leaderboard_text(const Leaderboard& board) {
  std::string out;
  for (const BoardTable& t : board.tables) {
    out += fmt::format("{}{} with equal contracts ({}):", out.empty() ? "" : "\n",
                       counted(t.tasks.size(), "task"), t.tasks_digest.short_hex());
    for (std::size_t i = 0; i < std::min(kTasksNamed, t.tasks.size()); ++i)
      out += " " + printable(t.tasks[i]);
    out += kTasksNamed < t.tasks.size() ? " ...\n\n" : "\n\n";
    table_of(board_columns(), kBoardWords, t.rows, [](const BoardRow& r) {
      return r.ranks ? "agents" : "controls";
    }).append_to(out);
    out += "  Ranks are sets: " + t.rank_rule + ".\n";
    for (const std::string& d : t.differences) out += "  ! " + d + "\n";
    for (const BoardRow& r : t.rows)
      if (!r.verified())
        out += "  * unverified, for reports of its runs are missing: " + printable(r.method) +
               " of " + printable(r.campaign) + "\n";
  }
  if (1 < board.tables.size())
    out +=
        "\nTables are apart because the contracts of their tasks differ: what was asked is not "
        "the same.\nTasks that they share may be chosen with --tasks.\n";
  return out;
}

std::string render_leaderboard_json(const Leaderboard& board) {
  const auto table = [](const BoardTable& t) {
    return filled(R"({"tasks_sha256":$,"tasks":$,"rank_rule":$,"differences":$,"rows":@})",
                  {t.tasks_digest.hex(), t.tasks, t.rank_rule, t.differences,
                   listed_rows(board_columns(), t.rows)});
  };
  return filled(R"({"schema_version":1,"alpha":$,"tables":@})",
                {board.alpha, listed(board.tables, table)}) +
         "\n";
}

std::string render_leaderboard_csv(const Leaderboard& board) {
  std::string out = "table," + board_columns().csv_header();
  for (const BoardTable& t : board.tables)
    for (const BoardRow& r : t.rows) {
      out += t.tasks_digest.short_hex() + ",";
      board_columns().append_csv(out, r);
    }
  return out;
}
}  // namespace proctor
