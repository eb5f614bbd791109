#include "common/contract/cross_rules.h"

#include <algorithm>
#include <set>

#include "common/base/text.h"
#include "common/contract/money_word.h"

namespace proctor {
namespace {

class CrossRules {
 public:
  CrossRules(const Campaign& campaign, const Told& told, Diagnostics& out)
      : c_(campaign), told_(told), out_(out) {}

  void check() {
    for (const auto& [name, usd] : c_.envelopes.methods) method(name, usd);
    for (const auto& [key, levels] : c_.envelopes.strata) stratum(key, levels);
    if (c_.envelopes.shared) shared(*c_.envelopes.shared);
    depth();
    if (c_.analysis) weights(*c_.analysis);
  }

 private:
  void complain(const std::string& field, std::string found, std::string expected,
                std::string suggestion = "") {
    const auto at = c_.origin.at.find(field);
    if (at != c_.origin.at.end() && told_.at(at->second)) return;
    out_.add({c_.origin.file, at == c_.origin.at.end() ? Mark{} : at->second, field,
              std::move(found), std::move(expected), std::move(suggestion)});
  }

  void unknown(const std::string& field, const std::string& what, const std::string& word,
               const std::string& expected, std::vector<std::string_view> known) {
    std::ranges::sort(known);
    complain(field, "the unknown " + what + " \"" + printable(word, 80) + "\"", expected,
             nearest_word(word, known).value_or(""));
  }

  static bool is_whole(const Contract& c) { return c.digest != Digest{}; }

  // Into the campaign's, and one run of each contract into it.
  template <class Governs>
  void amount(const std::string& field, const std::string& what, MicroUsd usd,
              const Governs& governs) {
    const std::string unit = " " + std::string(money_word(c_.cost_model));
    const std::string found = what + " of " + format_usd(usd) + unit;
    if (c_.envelopes.global < usd)
      return complain(field, found,
                      "at most the global envelope, " + format_usd(c_.envelopes.global) + unit);
    if (!told_.knows_run_caps()) return;
    const Contract* largest = nullptr;
    for (const Contract& contract : c_.contracts) {
      if (!is_whole(contract) || !governs(contract)) continue;
      if (largest == nullptr || c_.run_cap(*largest) < c_.run_cap(contract)) largest = &contract;
    }
    if (largest == nullptr || c_.run_cap(*largest) <= usd) return;
    complain(field, found,
             "at least " + format_usd(c_.run_cap(*largest)) + unit + ", the cap of one run of " +
                 largest->id);
  }

  void shared(const SharedEnvelope& shared) {
    if (c_.envelopes.global <= shared.cap) return;
    complain(
        "budget.shared.cap",
        "an envelope of all campaigns together of " + format_usd(shared.cap) + " USD",
        "at least the global envelope of this one, " + format_usd(c_.envelopes.global) + " USD");
  }

  void method(const std::string& name, MicroUsd usd) {
    const std::string field = "budget.methods." + name;
    if (c_.find_method(name) == nullptr) {
      if (!told_.knows_methods()) return;
      std::vector<std::string_view> names;
      for (const Method& m : c_.methods) names.push_back(m.name);
      return unknown(field, "method", name, "the name of a method", std::move(names));
    }
    amount(field, "a method envelope", usd, [](const Contract&) { return true; });
  }

  std::set<std::string_view> levels_of(const std::string& key) const {
    std::set<std::string_view> known;
    for (const Contract& contract : c_.contracts)
      if (const auto it = contract.strata.find(key); it != contract.strata.end())
        known.insert(it->second);
    return known;
  }

  // A contract with errors of its own, or that is not there, may have had the level.
  bool is_level(const std::string& field, const std::string& key, const std::string& level,
                const std::set<std::string_view>& known) {
    if (known.contains(level)) return true;
    if (told_.knows_contracts())
      unknown(field, "level", level, "a level of " + key + " that a contract has",
              {known.begin(), known.end()});
    return false;
  }

  // A level that no task has would leave every weighted estimate without a value.
  void weights(const AnalysisPlan& plan) {
    const std::set<std::string_view> known = levels_of(plan.weights_key);
    const std::string where = "analysis.weights." + plan.weights_key + ".";
    for (const auto& [level, share] : plan.weights)
      is_level(where + level, plan.weights_key, level, known);
  }

  void stratum(const std::string& key, const std::map<std::string, MicroUsd>& levels) {
    const std::string where = "budget.strata." + key;
    if (std::ranges::find(c_.strata, key) == c_.strata.end()) {
      // The contracts have it, and not one that the campaign has: that was told.
      if (!levels_of(key).empty() && std::ranges::any_of(c_.strata, [&](const std::string& other) {
            return levels_of(other).empty();
          }))
        return;
      return unknown(where, "stratum", key, "one of the campaign's strata",
                     {c_.strata.begin(), c_.strata.end()});
    }
    const std::set<std::string_view> known = levels_of(key);
    for (const auto& [level, usd] : levels) {
      const std::string field = where + "." + level;
      if (!is_level(field, key, level, known)) continue;
      amount(field, "a stratum envelope", usd, [&, &on = level](const Contract& contract) {
        const auto it = contract.strata.find(key);
        return it != contract.strata.end() && it->second == on;
      });
    }
  }

  // One error, of the contract with most envelopes around it.
  void depth() {
    constexpr std::size_t kTree = 3;  // global, stage, task
    const std::size_t of_method =
        (c_.envelopes.methods.empty() ? 0 : 1) + (c_.envelopes.shared ? 1 : 0);
    const Contract* deepest = nullptr;
    std::size_t most = 0;
    for (const Contract& contract : c_.contracts) {
      std::size_t n = kTree + of_method;
      for (const auto& [key, levels] : c_.envelopes.strata) {
        const auto it = contract.strata.find(key);
        n += it != contract.strata.end() && levels.contains(it->second) ? 1 : 0;
      }
      if (most < n) {
        most = n;
        deepest = &contract;
      }
    }
    if (most <= kEnvelopesOfRunMax) return;
    complain(
        "budget.strata",
        std::to_string(most) + " envelopes around a run of " + deepest->id +
            " (global, stage, task, " + (c_.envelopes.methods.empty() ? "" : "method, ") +
            (c_.envelopes.shared ? "shared, " : "") + std::to_string(most - kTree - of_method) +
            " strata)",
        "at most " + std::to_string(kEnvelopesOfRunMax) + ", which is what one reservation holds");
  }

  const Campaign& c_;
  const Told& told_;
  Diagnostics& out_;
};

}  // namespace

void check_cross_envelopes(const Campaign& campaign, const Told& told, Diagnostics& out) {
  CrossRules(campaign, told, out).check();
}

}  // namespace proctor
