#include "common/contract/cost_inputs.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/contract/fields.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {
__extension__ typedef unsigned __int128 Wide;

constexpr unsigned kQuantityDigits = 6;
constexpr std::uint64_t kOneUnit = 1'000'000;
constexpr std::size_t kEntriesMax = 10'000;
constexpr std::size_t kActionsMax = 1'000;  // of one entry
constexpr TextRule kNameRule{limits::kNameBytes, "a name on one line, of at most 100 bytes",
                             is_one_line};
constexpr TextRule kNotesRule{kTextBytes, "a text"};

// Amounts in 1e-18 USD: millionths of a unit times 1e-12 USD.
Wide amount_of(const ExpectedAction& a) {
  return Wide{a.micro_units} * a.pico_usd;
}
constexpr Wide kMostPerRun = static_cast<Wide>(kLedgerMax.micros()) * 1'000'000'000'000;

const PriceRow* row_of(const CostModel& prices, std::string_view action, std::string_view unit) {
  const auto it = std::ranges::find_if(prices.rows, [&](const PriceRow& r) {
    return r.action_type == action && r.unit == unit && r.model.empty() && r.provider.empty();
  });
  return it == prices.rows.end() ? nullptr : &*it;
}

class InputsReader {
 public:
  InputsReader(const Document& document, const CostInputsContext& context, Diagnostics& out)
      : context_(context), problems_(document.file, out), root_(document.root) {}

  CostInputs read() {
    const Fields top(root_, "", kCostInputsKeys, problems_);
    std::string notes;
    top("notes", notes, kNotesRule);
    top.decimal("lost_attempts_per_run", out_.lost_micro, kQuantityDigits,
                context_.infrastructure_retries * kOneUnit);
    if (top.find("usage") == nullptr) top.missing("usage", "a list of at least one entry");
    top.each("usage", [&](const Node& item, const std::string& path) {
      if (kEntriesMax <= out_.usage.size()) {
        if (kEntriesMax == out_.usage.size())
          problems_.add(item.at, path, "more than 10000 entries", "at most that many");
        return;
      }
      read_entry(item, path);
    });
    if (context_.names_known && root_.kind == Node::Kind::kMapping) check_every_run(top);
    return std::move(out_);
  }

 private:
  std::string known_name(const Fields& f, std::string_view key,
                         const std::vector<std::string_view>& known) {
    const Node* node = f.find(key);
    if (node == nullptr) return "";
    std::string name;
    f(key, name, kIdRule);
    if (!context_.names_known || name.empty()) return name;
    if (std::ranges::find(known, name) == known.end())
      problems_.add(node->at, f.path(key), describe(*node),
                    "a " + std::string(key) + " of this campaign",
                    nearest_word(name, known).value_or(""));
    return name;
  }

  void read_entry(const Node& item, const std::string& path) {
    const Fields f(item, path, kExpectedUsageKeys, problems_);
    std::string notes;
    f("notes", notes, kNotesRule);
    const std::string task = known_name(f, "task", context_.tasks);
    const std::string method = known_name(f, "method", context_.methods);
    if (!out_.by_name.emplace(std::pair(task, method), out_.usage.size()).second)
      problems_.add(item.at, path,
                    "a second entry for " + (task.empty() ? "every task" : "the task " + task) +
                        (method.empty() ? "" : " under " + method),
                    "each task and method once");
    std::vector<ExpectedAction>& actions = out_.usage.emplace_back();
    if (f.find("actions") == nullptr) f.missing("actions", "a list of actions; it may be empty");
    std::map<std::array<std::string, 4>, Mark> seen;
    Wide total = 0;
    f.each("actions", [&](const Node& node, const std::string& where) {
      if (kActionsMax <= actions.size()) {
        if (kActionsMax == actions.size())
          problems_.add(node.at, where, "more than 1000 actions", "at most that many in an entry");
        return;
      }
      ExpectedAction a = read_action(node, where);
      const auto [it, added] =
          seen.emplace(std::array{a.action_type, a.unit, a.provider, a.model}, node.at);
      if (!added && !a.action_type.empty())
        problems_.add(
            node.at, where,
            a.action_type + "," + a.unit + " as in line " + std::to_string(it->second.line),
            "each action once in an entry");
      // Each is at most 1e36 and the sum stops at the first that is too large: 128 bits hold it.
      if (total <= kMostPerRun) total += amount_of(a);
      if (kMostPerRun < total && !too_large_) {
        too_large_ = true;
        problems_.add(node.at, where + ".per_run", "a run that costs more than 9007199254.740991",
                      "an amount that an envelope can hold");
      }
      actions.push_back(std::move(a));
    });
  }

  ExpectedAction read_action(const Node& node, const std::string& path) {
    const Fields f(node, path, kExpectedActionKeys, problems_);
    std::string notes;
    f("notes", notes, kNotesRule);
    const std::size_t before = problems_.count();
    ExpectedAction a;
    f("action_type", a.action_type, kWordRule, Need::kMust);
    f("unit", a.unit, kWordRule, Need::kMust);
    f("provider", a.provider, kNameRule);
    f("model", a.model, kNameRule);
    f.decimal("per_run", a.micro_units, kQuantityDigits, kUsageCountMax * kOneUnit,
              "how many units a run is expected to use, such as 3.5");
    if (problems_.count() == before) put_price(f, a);
    return a;
  }

  void put_price(const Fields& f, ExpectedAction& a) {
    const auto named = [&](CostCategory category, std::uint64_t pico) {
      a.category = category;
      a.pico_usd = pico;
      if (row_of(context_.prices, a.action_type, a.unit) == nullptr)
        a.price = ExpectedAction::Price::kNone;
    };
    const auto is = [&](std::string_view action, std::string_view unit) {
      return a.action_type == action && a.unit == unit;
    };
    if (a.action_type != "llm_request" && !(a.model.empty() && a.provider.empty()))
      return f.complain("model", "a model or provider of " + a.action_type,
                        "none: only llm_request has them");
    const CostModel& p = context_.prices;
    if (is("run", "run"))
      return f.complain("action_type", "\"run\"", "another action: each run counts once by itself");
    if (is("sandbox", "minute")) return named(CostCategory::kExecution, p.sandbox_minute);
    if (is("tool_call", "call")) return named(CostCategory::kExecution, p.tool_call);
    if (is("artifact_storage", "gigabyte"))
      return named(CostCategory::kOverhead, p.stored_gigabyte);
    if (is("dependency_install", "call") || is("acceptance_cycle", "call")) {
      const PriceRow* row = row_of(p, a.action_type, a.unit);
      return named(CostCategory::kExecution, row == nullptr ? 0 : row->pico_usd);
    }
    if (a.action_type == kHumanAction) return put_human_price(f, a);
    put_tariff(f, a);
  }

  void put_human_price(const Fields& f, ExpectedAction& a) {
    a.category = CostCategory::kHuman;
    if (a.unit != kHumanUnit)
      return f.complain("unit", "\"" + a.unit + "\"", "minute: reviews are booked in minutes");
    const Result<std::uint64_t> price = human_minute_price(context_.prices);
    if (!price.ok())
      return f.complain("action_type", "\"human\"",
                        "an action with a price: " + price.error().detail);
    a.pico_usd = *price;
  }

  void put_tariff(const Fields& f, ExpectedAction& a) {
    const bool model = a.action_type == "llm_request";
    if (model) a.category = CostCategory::kModel;
    constexpr std::array<std::string_view, 3> kModelUnits{"call", "input_token", "output_token"};
    if (model && std::ranges::find(kModelUnits, a.unit) == kModelUnits.end())
      return f.complain("unit", "\"" + printable(a.unit, 80) + "\"",
                        one_of(kModelUnits) + ": input and output may differ in price");
    const Result<Tariff> tariff =
        find_tariff(context_.prices, {a.action_type, a.provider, a.model, model ? "" : a.unit});
    if (!tariff.ok())
      return f.complain("action_type", "\"" + a.action_type + "\" in " + a.unit + "s",
                        "an action with a price: " + tariff.error().detail);
    a.pico_usd = !model                    ? tariff->unit
                 : a.unit == "call"        ? tariff->call
                 : a.unit == "input_token" ? tariff->input_token
                                           : tariff->output_token;
    if (tariff->defaulted) a.price = ExpectedAction::Price::kDefault;
    if (!tariff->defaulted && a.pico_usd == 0) a.price = ExpectedAction::Price::kNone;
  }

  // A projection that leaves out a run would be too low, and nobody would see it.
  void check_every_run(const Fields& top) {
    if (out_.by_name.contains({"", ""})) return;
    std::size_t missing = 0;
    std::string first;
    for (const std::string_view task : context_.tasks)
      for (const std::string_view method : context_.methods) {
        if (out_.find(std::string(task), std::string(method)) != nullptr) continue;
        if (missing++ == 0) first = std::string(task) + " under " + std::string(method);
      }
    if (missing == 0 || top.find("usage") == nullptr) return;
    top.complain("usage",
                 "no entry for " + first +
                     (missing == 1 ? "" : " and " + std::to_string(missing - 1) + " more"),
                 "an entry for every run; one without task and method holds for all the others");
  }

  const CostInputsContext& context_;
  Problems problems_;
  const Node& root_;
  CostInputs out_;
  bool too_large_ = false;
};
}  // namespace

const std::vector<ExpectedAction>* CostInputs::find(const std::string& task,
                                                    const std::string& method) const {
  for (const auto& key :
       {std::pair<std::string, std::string>{task, method}, {task, ""}, {"", method}, {"", ""}})
    if (const auto it = by_name.find(key); it != by_name.end()) return &usage[it->second];
  return nullptr;
}

CostInputs parse_cost_inputs(std::string_view json, const std::string& file,
                             const CostInputsContext& context, Diagnostics& out) {
  CostInputs inputs;
  if (const auto document = read_document(json, Format::kJson, file, out))
    inputs = InputsReader(*document, context, out).read();
  inputs.digest = sha256(json);
  return inputs;
}
}  // namespace proctor
