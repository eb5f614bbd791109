#include "common/pilot/selfcheck_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "common/trace/json_fields.h"

namespace proctor {
namespace {

constexpr const char* kFormat = "proctor-selfcheck-1";

struct CauseWord {
  std::string_view word;
  SelfcheckCause cause;
};
constexpr std::array<CauseWord, 13> kCauses{{{"none", SelfcheckCause::kNone},
                                             {"cannot_run", SelfcheckCause::kCannotRun},
                                             {"no_reference", SelfcheckCause::kNoReference},
                                             {"reference", SelfcheckCause::kReference},
                                             {"noop", SelfcheckCause::kNoop},
                                             {"no_touch", SelfcheckCause::kNoTouch},
                                             {"tests_only", SelfcheckCause::kTestsOnly},
                                             {"source_only", SelfcheckCause::kSourceOnly},
                                             {"forged", SelfcheckCause::kForged},
                                             {"mutants", SelfcheckCause::kMutants},
                                             {"few_mutants", SelfcheckCause::kFewMutants},
                                             {"flaky", SelfcheckCause::kFlaky},
                                             {"unjudged", SelfcheckCause::kUnjudged}}};

std::string word_of(SelfcheckCause cause) {
  const auto it = std::ranges::find(kCauses, cause, &CauseWord::cause);
  return std::string(it->word);
}

Json to_json(const SelfcheckSettings& s) {
  return {{"killed", s.killed}, {"mutants", s.mutants}, {"repeats", s.repeats}};
}

Json to_json(const SelfcheckTask& task) {
  Json variants = Json::array();
  for (const VariantOutcomes& v : task.variants) {
    Json one{{"outcomes", v.outcomes}, {"variant", v.variant}};
    if (!v.what.empty()) one["what"] = v.what;
    variants.push_back(std::move(one));
  }
  const MutantTally& m = task.mutants;
  Json mutants{{"decided", m.decided},
               {"killed", m.killed},
               {"survivors", m.survivors},
               {"undecided", m.undecided}};
  mutants["lower95"] = m.lower95 ? Json(fmt::format("{:.12g}", *m.lower95)) : Json();
  return {{"cause", word_of(task.cause)},
          {"contract", task.contract.hex()},
          {"id", task.id},
          {"image", task.image},
          {"mutants", std::move(mutants)},
          {"variants", std::move(variants)},
          {"verdict", task.verdict}};
}

VariantOutcomes variant_from(const Json& json, const std::string& path, Status& status) {
  JsonFields f(json, path);
  VariantOutcomes out;
  out.variant = f.text("variant");
  out.outcomes = f.texts("outcomes");
  if (f.has("what")) out.what = f.text("what");
  if (status.ok()) status = f.finish();
  return out;
}

MutantTally mutants_from(JsonFields& task) {
  JsonFields f(task, "mutants");
  MutantTally out;
  out.decided = f.count("decided");
  out.killed = f.count("killed");
  out.undecided = f.count("undecided");
  out.survivors = f.texts("survivors");
  if (const auto lower = f.optional_text("lower95"))
    out.lower95 = std::strtod(lower->c_str(), nullptr);
  if (const Status status = f.finish(); !status.ok()) task.refuse("mutants", status.error().detail);
  return out;
}

Result<SelfcheckTask> task_from(const Json& json, const std::string& path) {
  JsonFields f(json, path);
  SelfcheckTask out;
  out.id = f.text("id");
  out.contract = f.digest("contract");
  out.image = f.text("image");
  out.verdict = f.text("verdict");
  const std::string cause = f.text("cause");
  const auto known = std::ranges::find(kCauses, cause, &CauseWord::word);
  if (known == kCauses.end())
    f.refuse("cause", "no such cause");
  else
    out.cause = known->cause;
  out.mutants = mutants_from(f);
  Status inner = ok_status();
  for (const Json& one : f.array("variants"))
    out.variants.push_back(variant_from(one, path + ".variants", inner));
  PROCTOR_CHECK_OK(f.finish());
  PROCTOR_CHECK_OK(inner);
  return out;
}

}  // namespace

std::string to_json_text(const SelfcheckResults& results) {
  Json tasks = Json::array();
  for (const SelfcheckTask& task : results.tasks) tasks.push_back(to_json(task));
  const Json all{{"campaign", results.campaign},  {"format", kFormat},
                 {"seed", results.settings.seed}, {"settings", to_json(results.settings)},
                 {"tasks", std::move(tasks)},     {"usd_micros", results.usd_micros}};
  return all.dump(1, Json::Utf8::kReplace) + "\n";
}

Result<SelfcheckResults> parse_selfcheck(std::string_view text) {
  PROCTOR_TRY(const Json json, parse_json(text, {.bytes_max = kSelfcheckBytes}));
  JsonFields f(json, "");
  SelfcheckResults out;
  if (f.text("format") != kFormat) f.refuse("format", "expected proctor-selfcheck-1");
  out.campaign = f.text("campaign");
  out.settings.seed = static_cast<std::uint32_t>(f.count("seed", 0xFFFF'FFFFU));
  out.usd_micros = static_cast<std::int64_t>(f.count("usd_micros"));
  JsonFields settings(f, "settings");
  out.settings.killed = settings.text("killed");
  out.settings.mutants = static_cast<std::uint32_t>(settings.count("mutants", 0xFFFF'FFFFU));
  out.settings.repeats = static_cast<std::uint32_t>(settings.count("repeats", 0xFFFF'FFFFU));
  PROCTOR_CHECK_OK(settings.finish());
  const Json& tasks = f.array("tasks");
  PROCTOR_CHECK_OK(f.finish());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    PROCTOR_TRY(SelfcheckTask task, task_from(tasks[i], "tasks[" + std::to_string(i) + "]"));
    out.tasks.push_back(std::move(task));
  }
  return out;
}

const SelfcheckTask* still_holds(const SelfcheckResults& earlier, const Contract& contract,
                                 const SelfcheckSettings& settings) {
  if (earlier.settings != settings) return nullptr;
  const auto it = std::ranges::find(earlier.tasks, contract.id, &SelfcheckTask::id);
  if (it == earlier.tasks.end() || it->contract != contract.digest ||
      it->image != contract.environment.image)
    return nullptr;
  // An earlier version knew fewer variants, or judged over fewer repeats than were asked for.
  for (const Variant& v : variants_of(contract, {.mutants = 0}))
    if (std::ranges::find(it->variants, v.name, &VariantOutcomes::variant) == it->variants.end())
      return nullptr;
  for (const VariantOutcomes& v : it->variants)
    if (v.outcomes.size() < settings.repeats) return nullptr;
  const bool may_be_otherwise =
      it->cause == SelfcheckCause::kCannotRun || it->cause == SelfcheckCause::kUnjudged;
  return may_be_otherwise ? nullptr : &*it;
}

}  // namespace proctor
