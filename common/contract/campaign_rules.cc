#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/campaign.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/cost_inputs.h"
#include "common/contract/cost_model.h"
#include "common/contract/document.h"
#include "common/contract/fields.h"
#include "common/contract/rubric.h"

namespace proctor {
namespace {
bool is_of(std::string_view field, std::string_view section) {
  return field.starts_with(section) &&
         (field.size() == section.size() || field[section.size()] == '.' ||
          field[section.size()] == '[');
}

// Complaints from before the parts of a campaign are held against each other, so that one
// mistake is told once: a value that could not be read has a default by then, and a name that could
// not is unknown, and neither is what its author wrote.  Pure.
struct Told {
  Told(const Campaign& campaign, const Diagnostics& before) {
    const auto folder = std::filesystem::path(campaign.origin.file).parent_path();
    const std::string prices = (folder / kCostModelFile).string();
    const std::string inputs = (folder / kCostInputsFile).string();
    knows_contracts = before.count() == before.kept().size() && !campaign.contracts.empty();
    for (const Diagnostic& d : before.kept()) {
      if (d.file == prices) {
        knows_prices = false;
      } else if (d.file == campaign.origin.file) {
        places.emplace(d.at.line, d.at.column);
        knows_contracts = knows_contracts && !is_of(d.field, "contracts");
        for (const char* section : {"budget", "caps", "task_caps", "stages"})
          knows_run_caps = knows_run_caps && !is_of(d.field, section) && d.suggestion != section;
      } else if (d.file != inputs) {
        knows_contracts = false;
      }
    }
    knows_methods =
        !campaign.methods.empty() &&
        std::ranges::none_of(campaign.methods, [](const auto& m) { return m.digest == Digest{}; });
  }
  // Was something at this place of the campaign's own file?
  bool at(Mark place) const { return places.contains({place.line, place.column}); }

  std::set<std::pair<std::uint32_t, std::uint32_t>> places;
  // Are all contracts, all methods there and whole: is what none of them has unknown?
  bool knows_contracts = true, knows_methods = true;
  // Of runs: their envelope and caps, and with the price table what they may cost.
  bool knows_run_caps = true, knows_prices = true;
};

// Rules that bind the parts of a campaign together, and facts from outside its folder.

bool is_whole(const Contract& c) {
  return c.digest != Digest{};
}

// As far as is known before the draw.
bool may_have(const Stage& stage, const Contract& contract) {
  const std::vector<std::string>& tasks = stage.draw.tasks;
  return tasks.empty() || std::ranges::binary_search(tasks, contract.id);
}

// The first of the fields that the file has, so that a default is blamed on what contradicts it.
struct Place {
  std::string field;
  Mark at;
};
Place place_of(const Origin& origin, std::initializer_list<std::string> fields) {
  for (const std::string& f : fields)
    if (const auto it = origin.at.find(f); it != origin.at.end()) return {f, it->second};
  return {*fields.begin(), {}};
}

class Rules {
 public:
  Rules(const Campaign& campaign, const Told& told, Diagnostics& out)
      : c_(campaign), told_(told), out_(out) {}

  void check() {
    ids();
    size();
    envelopes();
    if (told_.knows_contracts) {
      task_names();
      stage_tasks();
    }
    strata();
    for (const Contract& contract : c_.contracts) {
      if (!is_whole(contract)) continue;
      if (!told_of_strata_) strata(contract);
      using Kind = Method::Kind;
      needs(contract, Kind::kReference, "reference_patch", contract.reference_patch, "applies");
      needs(contract, Kind::kSingleShot, "single_shot", contract.single_shot, "answers");
      caps(contract);
      isolation(contract);
      for (const Method& method : c_.methods) environment(contract, method);
    }
    for (const auto& [name, usd] : c_.envelopes.methods) method(name, usd);
    for (const auto& [key, levels] : c_.envelopes.strata) stratum(key, levels);
    if (c_.envelopes.shared) shared(*c_.envelopes.shared);
    depth();
    if (c_.analysis) weights(*c_.analysis);
  }

 private:
  // Of a contract's own word its file was told already.
  void isolation(const Contract& contract) {
    if (c_.isolation != Isolation::kUserspace) return;
    if (contract.environment.build)
      complain(c_.origin, {"policy.isolation"},
               "userspace, and the image of contract " + contract.id +
                   " is built from a Dockerfile by a Docker Engine",
               "kernel, or each image by its digest: proctor images build NAME FOLDER --import "
               "makes it and prints that");
    if (!contract.environment.image.empty()) return;
    complain(c_.origin, {"policy.isolation"},
             "userspace, and contract " + contract.id + " names no image",
             "kernel, or an environment.image by digest in each contract, which workers with runsc "
             "run");
  }

  // A method's own beside a contract's: each place in the sandbox shows one folder.
  void environment(const Contract& contract, const Method& method) {
    for (const Toolchain& mine : method.environment.toolchains)
      for (const Toolchain& theirs : contract.environment.toolchains)
        if (mine.at == theirs.at && mine.path != theirs.path)
          complain(c_.origin, {"methods"},
                   "method " + method.name + " shows " + mine.path + " at " + mine.at +
                       ", where contract " + contract.id + " shows " + theirs.path,
                   "another `at` for the method's");
  }

  void complain(const Origin& origin, std::initializer_list<std::string> fields, std::string found,
                std::string expected, std::string suggestion = "") {
    Place place = place_of(origin, fields);
    // One mistake, one error: what was wrong there was told, and what is held against now is not
    // what its author wrote.
    if (&origin == &c_.origin && origin.at.contains(place.field) && told_.at(place.at)) return;
    out_.add({origin.file, place.at, std::move(place.field), std::move(found), std::move(expected),
              std::move(suggestion)});
  }

  void unknown(const std::string& field, const std::string& what, const std::string& word,
               const std::string& expected, std::vector<std::string_view> known) {
    std::ranges::sort(known);
    complain(c_.origin, {field}, "the unknown " + what + " \"" + printable(word, 80) + "\"",
             expected, nearest_word(word, known).value_or(""));
  }

  void ids() {
    std::map<std::string, const Contract*> first;
    for (const Contract& contract : c_.contracts) {
      ids_.insert(contract.id);
      if (contract.id.empty()) continue;
      const auto [it, added] = first.emplace(contract.id, &contract);
      if (!added)
        complain(contract.origin, {"id"}, "\"" + contract.id + "\"",
                 "an id of its own: " + it->second->origin.file + " has the same");
    }
  }

  void size() {
    std::uint64_t rows = c_.contracts.size();  // each factor is bounded: no overflow before 2^64
    rows *= std::max<std::size_t>(c_.methods.size(), 1);
    if (limits::kPlanRows < rows || limits::kPlanRows < c_.run_count())
      complain(
          c_.origin, {"replicates", "contracts"},
          "contracts x methods x replicates x stages above " + std::to_string(limits::kPlanRows),
          "at most that many runs");
  }

  std::string unit() const { return " " + std::string(money_word(c_.cost_model)); }

  struct Amount {
    std::string name;  // of the envelope, in words
    MicroUsd usd;
  };
  void nest(const Origin& origin, std::initializer_list<std::string> fields, const Amount& inner,
            const Amount& outer) {
    if (inner.usd <= outer.usd) return;
    complain(origin, fields, inner.name + " of " + format_usd(inner.usd) + unit(),
             "at most " + outer.name + ", " + format_usd(outer.usd) + unit());
  }

  // Nothing: one of them holds as much as the campaign.
  std::optional<MicroUsd> stages_together() const {
    MicroUsd sum;
    for (const Stage& stage : c_.stages) {
      if (!stage.usd) return std::nullopt;
      sum = std::min(sum + *stage.usd, kLedgerMax);
    }
    return sum;
  }

  void envelopes() {
    const Envelopes& e = c_.envelopes;
    const Amount global{"the global envelope", e.global};
    for (const auto& [name, usd] : e.stage)
      nest(c_.origin, {"stages." + name}, {"a stage envelope", usd}, global);
    // A task runs in every stage: what it may spend is bound by all of them together.
    const std::optional<MicroUsd> stages = stages_together();
    const auto check_task = [&](const std::string& field, MicroUsd usd) {
      const Amount task{"a task envelope", usd};
      nest(c_.origin, {field}, task, global);
      if (stages && *stages < e.global)
        nest(c_.origin, {field}, task,
             {e.stage.size() == 1 ? "the envelope of stage " + e.stage.begin()->first
                                  : "the envelopes of all stages together",
              *stages});
    };
    if (e.task) check_task("budget.task", *e.task);
    for (const auto& [id, usd] : e.tasks) check_task("budget.tasks." + id, usd);
    const Amount run{"a run envelope", e.run};
    if (e.task) nest(c_.origin, {"budget.run", "budget.task"}, run, {"the task envelope", *e.task});
    nest(c_.origin, {"budget.run", "budget.global"}, run, global);
    for (const auto& [name, stage] : e.stage)
      nest(c_.origin, {"budget.run", "stages." + name}, run,
           {"the envelope of stage " + name, stage});
    const auto check_cap = [&](const std::string& field, const Caps& caps) {
      if (caps.usd && told_.knows_run_caps)
        nest(c_.origin, {field}, {"a run cap", *caps.usd}, {"the run envelope", e.run});
    };
    check_cap("caps.usd", c_.caps);
    for (const Stage& s : c_.stages) check_cap("stages." + s.name + ".caps.usd", s.caps);
    for (const auto& [id, caps] : c_.task_caps) check_cap("task_caps." + id + ".usd", caps);
  }

  bool is_task(const std::string& field, const std::string& id) {
    if (ids_.contains(id)) return true;
    unknown(field, "task", id, "the id of a contract", {ids_.begin(), ids_.end()});
    return false;
  }

  void task_names() {
    for (const auto& [id, usd] : c_.envelopes.tasks) is_task("budget.tasks." + id, id);
    for (const auto& [id, caps] : c_.task_caps) is_task("task_caps." + id, id);
  }

  // Every task is in a stage, whatever the plan draws: one that may stand nowhere would be
  // registered and never run.
  void stage_tasks() {
    std::set<std::string_view> placed;
    bool all_known = true;
    for (const Stage& stage : c_.stages)
      for (const std::string& id : stage.draw.tasks) {
        placed.insert(id);
        if (!is_task("stages." + stage.name + ".tasks", id)) all_known = false;
      }
    if (!all_known) return;
    const auto has_all = [](const Stage& s) { return s.draw.has_every_task(); };
    if (std::ranges::any_of(c_.stages, has_all)) return;
    for (const auto& [values, tasks] : tasks_by_stratum(c_))
      for (const Stage& stage : c_.stages)
        if (stage.draw.per_stratum && tasks.size() <= *stage.draw.per_stratum)
          for (const Contract* contract : tasks) placed.insert(contract->id);
    for (const std::string_view id : ids_) {
      if (placed.contains(id)) continue;
      complain(c_.origin, {"stages." + c_.stages.back().name + ".tasks", "stages"},
               "task " + printable(id, 80) + " in no stage for certain",
               "every task in one of them: a stage without `tasks` has all");
      return;
    }
  }

  // A key that no contract has is one mistake of the campaign's, not one of each contract.
  void strata() {
    if (!told_.knows_contracts || c_.contracts.size() < 2 || !c_.origin.at.contains("strata"))
      return;
    std::set<std::string_view> of_contracts;
    for (const Contract& contract : c_.contracts)
      for (const auto& [name, value] : contract.strata) of_contracts.insert(name);
    const std::vector<std::string_view> names(of_contracts.begin(), of_contracts.end());
    for (const std::string& key : c_.strata) {
      if (of_contracts.contains(key)) continue;
      told_of_strata_ = true;
      complain(c_.origin, {"strata"}, "\"" + key + "\", which no contract has",
               "keys of which every contract has a value", nearest_word(key, names).value_or(""));
    }
  }

  void strata(const Contract& contract) {
    for (const std::string& key : c_.strata) {
      if (contract.strata.contains(key)) continue;
      std::vector<std::string_view> names;
      for (const auto& [name, value] : contract.strata) names.push_back(name);
      complain(contract.origin, {"strata", "type"}, "no stratum \"" + key + "\"",
               "a value for every stratum of the campaign", nearest_word(key, names).value_or(""));
    }
  }

  void needs(const Contract& contract, Method::Kind kind, const std::string& key,
             const std::string& given, const std::string& does) {
    for (const Method& m : c_.methods)
      if (m.kind == kind && given.empty())
        complain(contract.origin, {key, "id"}, "no " + key,
                 "one, because the method " + m.name + " " + does + " it");
  }

  void caps(const Contract& contract) {
    if (!told_.knows_run_caps) return;
    const std::size_t before = out_.count();
    if (contract.caps.usd)
      nest(contract.origin, {"caps.usd"}, {"a run cap", *contract.caps.usd},
           {"the run envelope", c_.envelopes.run});
    const MicroUsd cap = c_.run_cap(contract);
    if (c_.envelopes.tasks.contains(contract.id))
      nest(c_.origin, {"budget.tasks." + contract.id}, {"a run cap", cap},
           {"the task envelope", c_.task_envelope(contract.id)});
    if (out_.count() != before || !told_.knows_prices) return;
    const CapRules rules = c_.cap_rules();
    for (const Stage& stage : c_.stages)
      if (may_have(stage, contract) &&
          !suffices(contract, effective_caps(rules, stage.name, contract)))
        return;
  }

  // Once for each contract: the first stage that does not suffice.
  bool suffices(const Contract& contract, const EffectiveCaps& all) {
    const auto least_of = [&](const Usage& u) { return price(c_.cost_model, u).total(); };
    const std::uint32_t rerun = contract.rerun_in(c_.rerun);
    Usage most = worst_case(contract, Method{}, *all.caps.wall, rerun);
    for (const Method& method : c_.methods) {
      const Usage of_it = worst_case(contract, method, *all.caps.wall, rerun);
      if (least_of(most) < least_of(of_it)) most = of_it;
    }
    const MicroUsd least = least_of(most);
    const MicroUsd cap = *all.caps.usd;
    if (least <= cap) return true;
    const std::chrono::milliseconds time(
        static_cast<std::int64_t>(most.setup_ms + most.agent_ms + most.acceptance_ms));
    complain(
        contract.origin, {"caps.usd", "id"}, "a run cap of " + format_usd(cap) + unit(),
        "at least " + format_usd(least) + unit() + ", the price of one run at its time limits (" +
            format_duration(time) + " for setup twice, agent and checks" +
            (rerun == 0
                 ? ")"
                 : "; acceptance.rerun repeats setup and checks " + counted(rerun, "time") + ")"));
    return false;
  }

  // Envelopes that lie across the tree (budget.methods, budget.strata): they name what the campaign
  // has, fit into the global one, hold one run at least, and no run needs room in more envelopes
  // than one reservation holds.

  // Into the campaign's, and one run of each contract into it.
  template <class Governs>
  void amount(const std::string& field, const std::string& what, MicroUsd usd,
              const Governs& governs) {
    nest(c_.origin, {field}, {what, usd}, {"the global envelope", c_.envelopes.global});
    if (c_.envelopes.global < usd || !told_.knows_run_caps) return;
    const Contract* largest = nullptr;
    for (const Contract& contract : c_.contracts) {
      if (!is_whole(contract) || !governs(contract)) continue;
      if (largest == nullptr || c_.run_cap(*largest) < c_.run_cap(contract)) largest = &contract;
    }
    if (largest == nullptr || c_.run_cap(*largest) <= usd) return;
    complain(c_.origin, {field}, what + " of " + format_usd(usd) + unit(),
             "at least " + format_usd(c_.run_cap(*largest)) + unit() + ", the cap of one run of " +
                 largest->id);
  }

  void shared(const SharedEnvelope& shared) {
    if (c_.envelopes.global <= shared.cap) return;
    complain(
        c_.origin, {"budget.shared.cap"},
        "an envelope of all campaigns together of " + format_usd(shared.cap) + " USD",
        "at least the global envelope of this one, " + format_usd(c_.envelopes.global) + " USD");
  }

  void method(const std::string& name, MicroUsd usd) {
    const std::string field = "budget.methods." + name;
    if (c_.find_method(name) == nullptr) {
      if (!told_.knows_methods) return;
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
    if (told_.knows_contracts)
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
        return contract.strata.contains(key) && contract.strata.at(key) == on;
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
      for (const auto& [key, levels] : c_.envelopes.strata)
        n += contract.strata.contains(key) && levels.contains(contract.strata.at(key)) ? 1 : 0;
      if (most < n) {
        most = n;
        deepest = &contract;
      }
    }
    if (most <= kEnvelopesOfRunMax) return;
    complain(
        c_.origin, {"budget.strata"},
        std::to_string(most) + " envelopes around a run of " + deepest->id +
            " (global, stage, task, " + (c_.envelopes.methods.empty() ? "" : "method, ") +
            (c_.envelopes.shared ? "shared, " : "") + std::to_string(most - kTree - of_method) +
            " strata)",
        "at most " + std::to_string(kEnvelopesOfRunMax) + ", which is what one reservation holds");
  }

  const Campaign& c_;
  const Told& told_;
  Diagnostics& out_;
  std::set<std::string_view> ids_;  // of all contracts
  bool told_of_strata_ = false;
};
}  // namespace

void check_campaign(const Campaign& campaign, Diagnostics& out) {
  Rules(campaign, Told(campaign, out), out).check();
}

// They are asserted by a check that a contract has, at the gate that it guards.  A derived campaign
// has the rules of another, whose checks it may have changed.
void check_own_modes(const Campaign& campaign, Diagnostics& out) {
  const auto modes = parse_tag_rules(campaign.failure_modes);
  if (!modes.ok() || campaign.derived_from) return;
  const auto file = std::filesystem::path(campaign.origin.file).replace_filename(kFailureModesFile);
  std::string_view text = campaign.failure_modes;
  Mark at{.line = 0};
  for (const TagRule& mode : *modes) {
    do ++at.line;
    while (take_until(text, '\n').empty());
    std::vector<std::string_view> checks, gates;
    // One that only rates a patch guards no gate, and is no name to propose.
    const auto guard = [&](std::string_view check, Gate gate) {
      if (gate == Gate::kMaint) return;
      checks.push_back(check);
      if (check == mode.check) gates.push_back(word_of(gate));
    };
    for (const Contract& contract : campaign.contracts) {
      if (!contract.setup.empty()) guard(kSetupCheck, Gate::kBuild);
      for (const Check& check : contract.checks) guard(check.id, check.gate);
    }
    const std::string gate(word_of(mode.gate));
    if (std::ranges::find(gates, gate) != gates.end()) continue;
    if (gates.empty())
      out.add({file.string(), at, "check", '"' + mode.check + '"',
               "the id of a check that guards a gate",
               nearest_word(mode.check, checks).value_or("")});
    else
      out.add({file.string(), at, "gate", gate, "the gate of check " + mode.check,
               std::string(gates.front())});
  }
}

void check_outside(const Campaign& campaign, const OutsideProbe& probe, Diagnostics& out) {
  for (const Contract& c : campaign.contracts) {
    const auto expect = [&](const Status& status, const char* field, std::string expected,
                            const std::string& what = "") {
      if (!status.ok())
        out.add({c.origin.file, place_of(c.origin, {field}).at, field, what + status.error().detail,
                 std::move(expected), ""});
    };
    constexpr const char *kImage = "environment.image", *kAnImage = "an image that can be had";
    const Repository& r = c.repository;
    const Status commit = probe.commit_exists(r.source, c.origin.folder, r.commit);
    expect(commit, "repository.commit", "a commit of " + r.source);
    if (c.environment.build) {
      for (const std::string& base : c.environment.build->bases)
        expect(probe.base_resolves(base), kImage,
               "a base in the Docker Engine that builds: nothing is pulled, proctor images "
               "import FILE --engine brings it");
    } else if (!c.environment.image.empty()) {
      expect(probe.image_resolves(c.environment.image), kImage, kAnImage);
    }
    for (const Check& check : c.checks)
      if (check.container && !check.container->image.empty())
        expect(probe.image_resolves(check.container->image), "checks", kAnImage);
    if (c.reference_patch.empty() || !commit.ok()) continue;
    const auto file = std::ranges::find(c.files, c.reference_patch, &ReferencedFile::path);
    PROCTOR_ASSERT(file != c.files.end());
    expect(probe.patch_applies(r, c.origin.folder, file->bytes), "reference_patch",
           "a patch that applies to the commit and changes it", '"' + c.reference_patch + "\": ");
  }
}
}  // namespace proctor
