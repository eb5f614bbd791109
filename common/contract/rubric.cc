#include "common/contract/rubric.h"

#include <algorithm>

#include "common/base/json_fields.h"
#include "common/base/line_pattern.h"
#include "common/base/parse.h"
#include "common/contract/bundle.h"
#include "common/contract/contract_sections.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {
// Rooms of the taxonomy (score/taxonomy.h), whose modes are the product's to assert.
constexpr std::string_view kOwnRooms[] = {"evaluation.", "patch.",  "build.", "functional.",
                                          "safety.",     "policy.", "end.",   "agent."};

Result<TagRule> parse_tag_rule(std::string_view line) {
  PROCTOR_TRY(const Json json, parse_json(line));
  PROCTOR_TRY(TagRule rule, from_json<TagRule>(json));
  if (!is_id(rule.id) || rule.id.find('.') == std::string::npos)
    return Error{Errc::kInvalid, "id: expected ROOM.NAME, such as team.slow_start"};
  for (const std::string_view room : kOwnRooms)
    if (rule.id.starts_with(room))
      return Error{Errc::kInvalid, "id: " + std::string(room) + "* are modes of the taxonomy"};
  if (!is_id(rule.check)) return Error{Errc::kInvalid, "check: expected a check's id"};
  if (rule.gate == Gate::kPatch || rule.gate == Gate::kMaint)
    return Error{Errc::kInvalid, "gate: expected build, functional or safety"};
  return rule;
}
}  // namespace

Result<std::vector<TagRule>> parse_tag_rules(std::string_view text) {
  std::vector<TagRule> out;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view one = take_until(text, '\n');
    if (one.empty()) continue;
    const std::string where = "line " + std::to_string(line);
    Result<TagRule> rule = parse_tag_rule(one);
    if (!rule.ok()) return in_context(where, std::move(rule).error());
    if (std::ranges::find(out, rule->id, &TagRule::id) != out.end())
      return Error{Errc::kInvalid, where + ": id: " + rule->id + " is there already"};
    if (out.size() == kTagRulesMost)
      return Error{Errc::kInvalid,
                   where + ": at most " + std::to_string(kTagRulesMost) + " failure modes"};
    out.push_back(std::move(rule).value());
  }
  return out;
}

JudgeRules judge_rules(const Contract& contract, const Settings& settings) {
  JudgeRules out;
  for (const Check& check : contract.checks) out.checks.push_back({check.id, check.gate});
  out.no_build = contract.no_build;
  out.protected_ = contract.policy.protected_;
  out.writable = contract.policy.writable;
  out.commands = contract.policy.denied_commands;
  if (contract.rubric) {
    out.lambda = contract.rubric->lambda;
    out.lines = contract.rubric->lines;
    out.files = contract.rubric->files;
  }
  out.weights = settings.weights;
  // Settings are read by the same parser wherever they come from.
  if (Result<std::vector<TagRule>> tags = parse_tag_rules(settings.failure_modes); tags.ok())
    out.tags = std::move(tags).value();
  out.safety = settings.safety;
  out.rerun = contract.rerun_in(settings.rerun);
  return out;
}

void check_weights(const Fields& f, const RubricWeights& weights) {
  if (weights.minimal + weights.trace + weights.maint != kMillion)
    f.complain("minimal", "weights that do not add up",
               "minimal, trace and maint that are exactly 1 together");
}

void check_rubric(const Fields& f, const Rubric& rubric) {
  if (rubric.lambda == 0) f.wrong("lambda", "a decimal above 0");
  if (rubric.lines == 0 || rubric.files == 0)
    f.complain("envelope", "an envelope without one of its bounds", "lines and files above 0");
}

void check_failure_modes(const Fields& f, const std::string& text) {
  const auto rules = parse_tag_rules(text);
  if (!rules.ok()) f.complain("failure_modes", rules.error().detail, "a failure mode a line");
}

void check_commands(const Fields& f, const std::vector<std::string>&) {
  f.each("deny", [&](const Node& item, const std::string& where) {
    if (const auto pattern = LinePattern::compile(item.text); !pattern.ok())
      f.problems().wrong(item, where, "a pattern of RE2: " + pattern.error().detail);
  });
}

// A check that rates a patch decides nothing, whatever its kind.
void read_maint(const Fields& f, Contract& out) {
  const std::vector<std::string> none;
  const std::vector<std::string>& maint = out.rubric ? out.rubric->maint : none;
  for (Check& check : out.checks) {
    const bool rates = std::ranges::find(maint, check.id) != maint.end();
    if (rates) check.gate = Gate::kMaint;
    if (!rates && check.gate == Gate::kMaint)
      f.problems().add(f.at("checks"), "checks", "check " + check.id + " with gate: maint",
                       "its id among rubric.maint, too");
  }
  if (!out.checks.empty() && std::ranges::all_of(out.checks, [](const Check& check) {
        return check.gate == Gate::kMaint;
      }))
    f.problems().add(f.at("rubric"), "rubric.maint", "every check of the contract",
                     "at least one check that decides the outcome");
  for (const std::string& id : maint)
    if (std::ranges::find(out.checks, id, &Check::id) == out.checks.end())
      f.problems().add(f.at("rubric"), "rubric.maint", "\"" + id + "\"",
                       "the id of a check of this contract");
}
}  // namespace proctor
