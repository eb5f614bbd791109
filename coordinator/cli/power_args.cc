#include "coordinator/cli/power_args.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/base/money.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/fields.h"

namespace proctor::cli {
namespace {

constexpr std::uint64_t kMostRuns = 1'000, kMostSimulated = 1'000'000;
constexpr std::size_t kMostBudgets = 64, kMostLooksAsked = 20;
constexpr std::int64_t kMostMoney = kLedgerMax.micros();

Error wrong(const char* option, std::string_view found, const std::string& expected) {
  return Error{Errc::kInvalid, fmt::format("{}: found {}, expected {}", option,
                                           found.empty() ? "nothing" : printable(found), expected)};
}

// ".85", "0.85": digits with a point, at most eighteen of them.
Result<double> decimal(const char* option, std::string_view text) {
  constexpr std::size_t kMostDigits = 18;
  const auto digits = std::ranges::count_if(text, [](char c) { return '0' <= c && c <= '9'; });
  const bool plain = text.find_first_not_of("0123456789.") == std::string_view::npos &&
                     std::ranges::count(text, '.') <= 1 && 0 < digits &&
                     static_cast<std::size_t>(digits) <= kMostDigits;
  double value = 0;
  const std::string zero = text.starts_with('.') ? "0" : "";
  const std::string whole = zero + std::string(text);
  if (plain) {
    const auto [end, ec] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
    if (ec == std::errc() && end == whole.data() + whole.size()) return value;
  }
  return wrong(option, text, "a decimal number of at most 18 digits, like 0.25");
}

Result<double> within(const char* option, std::string_view text, double low, double high) {
  PROCTOR_TRY(const double value, decimal(option, text));
  if (value < low || high < value)
    return wrong(option, text, twelve_digits(low) + " to " + twelve_digits(high));
  return value;
}

Result<std::uint64_t> count(const char* option, std::string_view text, std::uint64_t low,
                            std::uint64_t high) {
  const auto value = whole_number<std::uint64_t>(text);
  if (!value || *value < low || high < *value)
    return wrong(option, text, fmt::format("{} to {}", low, high));
  return *value;
}

struct Range {
  double low = 0, high = 0;
};
Result<Range> range(const char* option, std::string_view text) {
  const std::vector<std::string_view> ends = split(text, ':');
  if (2 < ends.size()) return wrong(option, text, "a number, or two with a colon: 0.15:0.85");
  Range out;
  PROCTOR_TRY(out.low, within(option, ends.front(), 0, 1));
  PROCTOR_TRY(out.high, within(option, ends.back(), 0, 1));
  if (out.high < out.low) return wrong(option, text, "the lower end first");
  return out;
}

// Millionths of an amount.
Result<std::int64_t> money(const char* option, std::string_view text) {
  const std::string whole = (text.starts_with('.') ? "0" : "") + std::string(text);
  const Result<std::uint64_t> micros =
      parse_decimal(whole, 6, static_cast<std::uint64_t>(kMostMoney));
  if (!micros.ok()) return wrong(option, text, "an amount of 0 or more, like 0.40");
  return static_cast<std::int64_t>(*micros);
}

Result<RunCosts> costs_of(const std::string& text) {
  RunCosts out;
  bool task = false, a = false, b = false;
  const std::string expected = "task=AMOUNT,a=AMOUNT,b=AMOUNT: of a task, and of a run of each";
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equal = part.find('=');
    const std::string_view name = part.substr(0, equal);
    if (equal == std::string::npos || (name != "task" && name != "a" && name != "b"))
      return wrong("--costs", part, expected);
    PROCTOR_TRY(const std::int64_t amount, money("--costs", part.substr(equal + 1)));
    (name == "task" ? out.task : name == "a" ? out.a : out.b) = amount;
    (name == "task" ? task : name == "a" ? a : b) = true;
  }
  if (!task || !a || !b) return wrong("--costs", text, expected);
  // What costs nothing has no best number of runs for a budget.
  if (out.task + out.a + out.b == 0) return wrong("--costs", text, "one amount above 0");
  // A plan of the most tasks and runs must still be countable.
  constexpr std::int64_t kMostEach = 1'000'000'000'000;
  if (kMostEach < std::max({out.task, out.a, out.b}))
    return wrong("--costs", text, "at most 1000000 each");
  return out;
}

Status read_curve(const PowerArgs& args, PowerInput& out) {
  if (args.costs.empty() != args.budgets.empty())
    return wrong(args.costs.empty() ? "--costs" : "--budgets", "",
                 "both --costs and --budgets, for a curve needs them");
  if (args.costs.empty()) {
    if (!args.tasks_max.empty())
      return wrong("--tasks-max", args.tasks_max, "it with --costs and --budgets only");
    return ok_status();
  }
  PROCTOR_TRY(out.costs, costs_of(args.costs));
  const std::vector<std::string_view> budgets = split(args.budgets, ',');
  if (kMostBudgets < budgets.size())
    return wrong("--budgets", std::to_string(budgets.size()) + " of them", "at most 64");
  for (const std::string_view budget : budgets) {
    PROCTOR_TRY(const std::int64_t amount, money("--budgets", budget));
    out.budgets.push_back(amount);
  }
  std::ranges::sort(out.budgets);
  out.tasks_max = out.tasks.value_or(kMostTasksAsked);
  if (!args.tasks_max.empty()) {
    PROCTOR_TRY(out.tasks_max, count("--tasks-max", args.tasks_max, 2, kMostTasksAsked));
  }
  return ok_status();
}

// After which runs: those that were typed, or so many, evenly spread with the last at the end.
Result<std::vector<std::uint32_t>> looks_of(const PowerArgs& args, std::uint32_t runs) {
  std::vector<std::uint32_t> out;
  if (!args.after.empty()) {
    for (const std::string_view part : split(args.after, ',')) {
      PROCTOR_TRY(const std::uint64_t k, count("--after", part, 1, runs));
      if (!out.empty() && k <= out.back()) return wrong("--after", args.after, "ascending numbers");
      out.push_back(static_cast<std::uint32_t>(k));
    }
    if (out.back() != runs)
      return wrong("--after", args.after, fmt::format("the last look after all {} runs", runs));
  } else {
    PROCTOR_TRY(const std::uint64_t looks,
                count("--looks", args.looks, 1, std::min<std::uint64_t>(kMostLooksAsked, runs)));
    for (std::uint64_t i = 1; i <= looks; ++i)
      out.push_back(static_cast<std::uint32_t>(i * runs / looks));
  }
  if (kMostLooksAsked < out.size()) return wrong("--after", args.after, "at most 20 looks");
  return out;
}

Status read_looks(const PowerArgs& args, PowerInput& out) {
  if (!args.looks.empty() && !args.after.empty())
    return wrong("--looks", args.looks, "either it or --after");
  if (args.looks.empty() && args.after.empty()) {
    if (!args.spend.empty()) return wrong("--spend", args.spend, "it with --looks or --after only");
    return ok_status();
  }
  PlannedLooks& looks = out.looks.emplace();
  PROCTOR_TRY(looks.after, looks_of(args, out.runs));
  if (args.spend == "pocock")
    looks.spend = Spending::kPocock;
  else if (!args.spend.empty() && args.spend != "obrien_fleming")
    return wrong("--spend", args.spend, "obrien_fleming or pocock");
  return ok_status();
}

// What no two methods can be.
Status check_rates(const PowerArgs& args, PowerInput& in) {
  if (1 <= in.p + in.effect)
    return wrong("--effect", twelve_digits(in.effect),
                 fmt::format("below {} ({} + {} is no rate)", twelve_digits(1 - in.p),
                             twelve_digits(in.p), twelve_digits(in.effect)));
  PROCTOR_TRY(const Range r, range("--r", args.r.empty() ? "0.5" : args.r));
  const double most = most_correlation(in.p + in.effect, in.p);
  in.r = r.low;
  // The default yields to what can be; what was typed does not.
  if (args.r.empty()) in.r = std::min(in.r, most);
  if (!args.r.empty() && most < r.high)
    return wrong(
        "--r", twelve_digits(r.high),
        fmt::format("at most {} (no two methods with rates {} and {} can be that alike)",
                    twelve_digits(most), twelve_digits(in.p + in.effect), twelve_digits(in.p)));
  return ok_status();
}

Status read_test(const PowerArgs& args, PowerInput& out) {
  if (args.test == "mcnemar") {
    out.test = PowerInput::Test::kMcNemar;
    if (out.runs != 1)
      return wrong("--k", std::to_string(out.runs), "1: McNemar's test is of one run");
    if (out.looks || !args.from.empty())
      return wrong("--test", args.test, "paired where there are looks, or an earlier stage");
  } else if (!args.test.empty() && args.test != "paired") {
    return wrong("--test", args.test, "paired or mcnemar");
  }
  return ok_status();
}

// From here on numbers of tasks are numbers of repositories.
Status read_repositories(const PowerArgs& args, std::optional<std::uint64_t> of, PowerInput& out) {
  if (!args.repositories.empty() && out.tasks) {
    PROCTOR_TRY(of, count("--repositories", args.repositories, 1, *out.tasks));
  }
  if (!of && args.repositories.empty() && args.spread.empty()) return ok_status();
  if (!of || out.test == PowerInput::Test::kMcNemar || !out.budgets.empty() ||
      !args.simulate.empty())
    return Error{Errc::kInvalid,
                 "--repositories (with --n), --spread, or a CAMPAIGN whose unit is the repository: "
                 "--test mcnemar, --budgets and --simulate are of tasks"};
  of = std::min(*of, *out.tasks);
  out.repositories = {static_cast<double>(*out.tasks) / static_cast<double>(*of)};
  if (!args.spread.empty()) {
    PROCTOR_TRY(out.repositories->spread, within("--spread", args.spread, 0, 1));
  }
  out.tasks = of;
  return ok_status();
}

}  // namespace

Result<PowerInput> power_input(const PowerArgs& args, const PowerDefaults& defaults) {
  constexpr double kLeast = 1e-6, kMost = 1 - 1e-6;
  PowerInput out;
  out.effect = defaults.effect.value_or(out.effect);
  out.alpha = defaults.alpha.value_or(out.alpha);
  out.tasks = defaults.tasks;
  out.runs = defaults.runs.value_or(out.runs);
  if (!args.p.empty()) {
    PROCTOR_TRY(out.p, within("--p", args.p, kLeast, kMost));
  }
  if (!args.effect.empty()) {
    PROCTOR_TRY(out.effect, within("--effect", args.effect, kLeast, kMost));
  }
  if (!args.alpha.empty()) {
    PROCTOR_TRY(out.alpha, within("--alpha", args.alpha, kLeast, 0.2));
  }
  if (!args.power.empty()) {
    PROCTOR_TRY(out.power, within("--power", args.power, 0.5, 0.99));
  }
  if (!args.tasks.empty()) {
    PROCTOR_TRY(out.tasks, count("--n", args.tasks, 2, kMostTasksAsked));
  }
  if (!args.runs.empty()) {
    PROCTOR_TRY(const std::uint64_t runs, count("--k", args.runs, 1, kMostRuns));
    out.runs = static_cast<std::uint32_t>(runs);
  }
  PROCTOR_TRY(const Range rho, range("--rho", args.rho.empty() ? "0.5" : args.rho));
  out.rho_low = rho.low;
  out.rho_high = rho.high;
  out.exact = args.exact;
  PROCTOR_CHECK_OK(check_rates(args, out));
  PROCTOR_CHECK_OK(read_looks(args, out));
  PROCTOR_CHECK_OK(read_test(args, out));
  PROCTOR_CHECK_OK(read_curve(args, out));
  PROCTOR_CHECK_OK(read_repositories(args, defaults.repositories, out));
  return out;
}

Result<std::uint64_t> campaigns_to_simulate(const PowerArgs& args) {
  if (args.simulate.empty()) return std::uint64_t{0};
  return count("--simulate", args.simulate, 1, kMostSimulated);
}

}  // namespace proctor::cli
