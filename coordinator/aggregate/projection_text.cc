// A projection on a terminal, for programs and as the table that stays in the campaign's folder.
#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "common/base/csv.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/projection.h"
#include "coordinator/aggregate/text_table.h"

namespace proctor {
namespace {

using namespace aggregate;

constexpr unsigned kQuantityDigits = 6;

std::string run_name(const ProjectionInput& in, std::uint32_t run) {
  const ProjectionInput::Kind& kind = in.kinds[in.runs[run].kind];
  return kind.task + "/" + kind.method + "/r" + std::to_string(in.runs[run].replicate);
}

// "3.5" of 3'500'000.
std::string quantity(std::uint64_t micro_units) {
  std::string fraction = std::to_string(micro_units % 1'000'000);
  fraction.insert(0, kQuantityDigits - fraction.size(), '0');
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return std::to_string(micro_units / 1'000'000) + (fraction.empty() ? "" : "." + fraction);
}

std::string_view price_from(ExpectedAction::Price price) {
  switch (price) {
    case ExpectedAction::Price::kRow:
      return "row";
    case ExpectedAction::Price::kDefault:
      return "default_row";
    case ExpectedAction::Price::kNone:
      return "free";
  }
  return "row";
}

std::string percent_of(MicroUsd part, MicroUsd whole) {
  if (whole <= MicroUsd::zero()) return "all";
  const std::int64_t n = scaled(part.micros(), 1000, whole.micros());
  return std::to_string(n / 10) + "." + std::to_string(n % 10) + " %";
}

const EnvelopeProjection& fullest(const Projection& p) {
  // expected / cap compared without dividing: both are below 2^53.
  return *std::ranges::max_element(p.envelopes, [](const auto& a, const auto& b) {
    __extension__ typedef __int128 Product;
    return static_cast<Product>(a.expected->micros()) * b.cap.micros() <
           static_cast<Product>(b.expected->micros()) * a.cap.micros();
  });
}

std::string binding_text(const ProjectionInput& in, const Projection& p,
                         const std::optional<Binding>& binding, bool expected) {
  std::string out =
      expected ? "If runs cost what is expected, " : "If each run costs its whole cap, ";
  if (!binding) {
    out += "no envelope binds: every run can start";
    if (!expected) return out + ".\n";
    const EnvelopeProjection& e = fullest(p);
    return out + ". The fullest at the end is " + printable(e.name) + ", with " +
           percent_of(*e.expected, e.cap) + " of its cap.\n";
  }
  const EnvelopeProjection& e = p.envelopes[binding->scope];
  std::uint64_t parked = 0;
  for (const EnvelopeProjection& f : p.envelopes)
    parked += expected ? f.parked_expected : f.parked_at_caps;
  out += printable(e.name) + " binds first: " + printable(run_name(in, binding->run)) +
         ", number " + std::to_string(binding->run) + " of the plan, is parked short by " +
         format_usd(binding->short_by) + ", with " + counted(binding->ran_before, "run") +
         " paid for; " + std::to_string(parked) + " of " + counted(in.runs.size(), "run") +
         " are parked at the end";
  std::string where;
  for (const EnvelopeProjection& f : p.envelopes)
    if (const std::uint64_t n = expected ? f.parked_expected : f.parked_at_caps; 0 < n)
      where += (where.empty() ? " (" : ", ") + printable(f.name) + ": " + std::to_string(n);
  return out + where + ").\n";
}

// Which envelope lets the fewest runs in at once, of those that are asked by more.
std::string concurrency_text(const ProjectionInput& in, const Projection& p) {
  const std::uint64_t admitted = p.envelopes[0].at_once;
  std::string out = "At once: the campaign's own workers take " + std::to_string(in.slots) +
                    (in.slots == 1 ? " run, " : " runs, ") + "its money admits " +
                    std::to_string(admitted) + ".";
  if (admitted < std::min<std::uint64_t>(in.slots, in.runs.size()))
    out += " Workers will wait for money: lower the cap of a run, or give more.";
  return out + "\n";
}

std::string inputs_text(const ProjectionInput& in) {
  if (in.inputs.empty())
    return std::string("Expected cost: unknown, there is no ") + kCostInputsFile +
           " in the campaign's folder. What stands\nhere is the worst case. With that file "
           "(docs/file-formats.md) the expected cost stands beside it.\n";
  std::string out = "Expected use: " + std::string(kCostInputsFile) + " " + in.inputs;
  if (!in.registered) return out + ", which proctor plan --freeze will register.\n";
  return out + (in.inputs_registered
                    ? ", registered before the first run.\n"
                    : ", NOT registered: written after the registration, so no forecast.\n");
}

}  // namespace

std::string render_projection_text(const ProjectionInput& in, const Projection& p) {
  std::string out = "Campaign " + printable(in.campaign) +
                    ", a projection: " + counted(in.runs.size(), "run") +
                    ", none of this is spent.\n";
  out += "Prices: " + printable(in.prices) + "; amounts in " + money_word(in.abstract) +
         (in.abstract ? ", abstract ones of about a dollar.\n" : ".\n");
  out += inputs_text(in) + "\n";
  Table table({"envelope", "runs", "cap", "expected", "at caps", "at most", "at once"}, 1,
              Table::Rule::kNone);
  for (const EnvelopeProjection& e : p.envelopes)
    table.add({std::string(e.name == "global" ? 0 : 2, ' ') + printable(e.name),
               std::to_string(e.runs), format_usd(e.cap),
               e.expected ? format_usd(*e.expected) : "-", format_usd(e.at_caps),
               format_usd(e.at_most), std::to_string(e.at_once)});
  table.append_to(out);
  if (p.has_expected) {
    out += "\nExpected by category:";
    for (std::size_t c = 0; c < kCostCategories.size(); ++c)
      out += std::string(c == 0 ? " " : ", ") + kCostCategories[c] + " " +
             format_usd(p.by_category[c]);
    out += ".\n";
  }
  out += "\n";
  if (p.has_expected) out += binding_text(in, p, p.binds_expected, true);
  out += binding_text(in, p, p.binds_at_caps, false) + concurrency_text(in, p);
  constexpr std::size_t kShown = 10;
  for (std::size_t i = 0; i < p.above_cap.size() && i < kShown; ++i) {
    const ProjectionInput::Kind& k = in.kinds[p.above_cap[i]];
    out += "Note: a run of " + printable(k.task) + " under " + printable(k.method) +
           " is expected to cost " + format_usd(p.per_run[p.above_cap[i]]) +
           ", reviews and losses included, but its attempt may spend " + format_usd(k.ask) +
           ": it would be stopped by its cap.\n";
  }
  out +=
      "\nat caps: each run uses its whole cap, once.\nat most: what attempts can spend there "
      "whatever "
      "fails, up to " +
      std::to_string(in.attempts_max) +
      " of each run (beside what an operator cancels and\n         resumes); never above the cap." +
      (in.reviews_priced ? " Reviews may use what is left of it.\n" : "\n") +
      "at once: runs whose money can be set aside at the same time.\n"
      "Amounts are rounded up once, from exact sums.\n";
  return out;
}

namespace {

Ordered binding_json(const ProjectionInput& in, const Projection& p,
                     const std::optional<Binding>& b) {
  if (!b) return nullptr;
  return {{"envelope", p.envelopes[b->scope].name},
          {"run", run_name(in, b->run)},
          {"order", b->run},
          {"ran_before", b->ran_before},
          {"short_by", money_json(b->short_by)}};
}

}  // namespace

std::string render_projection_json(const ProjectionInput& in, const Projection& p) {
  Ordered out = {{"schema_version", 1},
                 {"campaign", in.campaign},
                 {"runs", in.runs.size()},
                 {"prices", in.prices},
                 {"abstract_units", in.abstract}};
  out["inputs"] = in.inputs.empty() ? Ordered(nullptr) : Ordered(in.inputs);
  out["inputs_registered"] = in.inputs_registered;
  Ordered envelopes = Ordered::array();
  for (const EnvelopeProjection& e : p.envelopes)
    envelopes.push_back(
        {{"name", e.name},
         {"runs", e.runs},
         {"cap", money_json(e.cap)},
         {"expected", money_or_null(e.expected)},
         {"at_caps", money_json(e.at_caps)},
         {"at_most", money_json(e.at_most)},
         {"at_once", e.at_once},
         {"parked",
          {{"expected", p.has_expected ? Ordered(e.parked_expected) : Ordered(nullptr)},
           {"at_caps", e.parked_at_caps}}}});
  out["envelopes"] = std::move(envelopes);
  Ordered categories = nullptr;
  if (p.has_expected) {
    categories = Ordered::object();
    for (std::size_t c = 0; c < kCostCategories.size(); ++c)
      categories[kCostCategories[c]] = money_json(p.by_category[c]);
  }
  out["expected_by_category"] = std::move(categories);
  out["binds_first"] = {{"expected", binding_json(in, p, p.binds_expected)},
                        {"at_caps", binding_json(in, p, p.binds_at_caps)}};
  out["slots"] = in.slots;
  out["attempts_max"] = in.attempts_max;
  Ordered above = Ordered::array();
  for (const std::uint32_t k : p.above_cap)
    above.push_back({{"task", in.kinds[k].task},
                     {"method", in.kinds[k].method},
                     {"expected", money_json(p.per_run[k])},
                     {"cap", money_json(in.kinds[k].ask)}});
  out["above_cap"] = std::move(above);
  return dumped(out) + "\n";
}

namespace {

// The columns of the table, in their order; a line has the cells it has, the others are empty.
constexpr std::array<const char*, 21> kColumns = {
    "level",         "name",        "stage",          "task",       "method",
    "action_type",   "unit",        "provider",       "model",      "category",
    "runs",          "per_run",     "unit_price_usd", "price_from", "expected_usd",
    "cap_usd",       "at_caps_usd", "at_most_usd",    "at_once",    "parked_expected",
    "parked_at_caps"};

void append_line(std::string& out, const std::map<std::string_view, std::string>& cells) {
  std::vector<std::string> record;
  for (const char* column : kColumns) {
    const auto cell = cells.find(column);
    record.push_back(cell == cells.end() ? "" : cell->second);
  }
  csv_append_record(out, record);
}

}  // namespace

std::string render_projection_csv(const ProjectionInput& in, const Projection& p) {
  std::string out;
  csv_append_record(out, {kColumns.begin(), kColumns.end()});
  for (const EnvelopeProjection& e : p.envelopes)
    append_line(out, {{"level", "envelope"},
                      {"name", e.name},
                      {"runs", std::to_string(e.runs)},
                      {"expected_usd", e.expected ? format_usd_exact(*e.expected) : ""},
                      {"cap_usd", format_usd_exact(e.cap)},
                      {"at_caps_usd", format_usd_exact(e.at_caps)},
                      {"at_most_usd", format_usd_exact(e.at_most)},
                      {"at_once", std::to_string(e.at_once)},
                      {"parked_expected", p.has_expected ? std::to_string(e.parked_expected) : ""},
                      {"parked_at_caps", std::to_string(e.parked_at_caps)}});
  if (!p.has_expected) return out;
  for (std::size_t c = 0; c < kCostCategories.size(); ++c)
    append_line(out, {{"level", "category"},
                      {"name", kCostCategories[c]},
                      {"category", kCostCategories[c]},
                      {"runs", std::to_string(in.runs.size())},
                      {"expected_usd", format_usd_exact(p.by_category[c])}});
  for (const ProjectionLine& l : p.lines) {
    const ProjectionInput::Kind& k = in.kinds[l.kind];
    append_line(out, {{"level", "action"},
                      {"name", k.task + "/" + k.method},
                      {"stage", k.stage},
                      {"task", k.task},
                      {"method", k.method},
                      {"action_type", l.action_type},
                      {"unit", l.unit},
                      {"provider", l.provider},
                      {"model", l.model},
                      {"category", kCostCategories[static_cast<std::size_t>(l.category)]},
                      {"runs", std::to_string(l.runs)},
                      {"per_run", quantity(l.micro_units)},
                      {"unit_price_usd", l.unit_price},
                      {"price_from", std::string(price_from(l.price))},
                      {"expected_usd", format_usd_exact(l.expected)}});
  }
  return out;
}

}  // namespace proctor
