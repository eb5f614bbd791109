#include "common/pilot/screen_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "common/contract/contract.h"
#include "common/stats/screen.h"
#include "common/trace/json_fields.h"

namespace proctor {
namespace {

constexpr const char* kFormat = "proctor-flakiness-1";
constexpr std::array kVerdicts{ScreenVerdict::kStable, ScreenVerdict::kUndecided,
                               ScreenVerdict::kFlaky, ScreenVerdict::kUnjudged};

std::string twelve(double value) {
  return fmt::format("{:.12g}", value);
}

Json to_json(const ScreenArm& a) {
  return {{"arm", a.arm},         {"discrepant", a.discrepant}, {"lost", a.lost},
          {"repeats", a.repeats}, {"state", a.state},           {"upper95", twelve(a.upper95)},
          {"usual", a.usual}};
}

Json to_json(const ScreenTask& task) {
  Json arms = Json::array();
  for (const ScreenArm& a : task.arms) arms.push_back(to_json(a));
  return {{"arms", std::move(arms)},
          {"contract", task.contract.hex()},
          {"fisher_one_sided", task.fisher ? Json(twelve(*task.fisher)) : Json()},
          {"id", task.id},
          {"image", task.image},
          {"lack", task.lack},
          {"load_sensitive", task.load_sensitive},
          {"moved", task.moved},
          {"unstable", task.unstable},
          {"verdict", std::string(to_string(task.verdict))},
          {"why", task.why}};
}

Result<ScreenArm> arm_from(const Json& json, const std::string& path) {
  JsonFields f(json, path);
  ScreenArm out;
  out.arm = f.text("arm");
  if (out.arm != kArmAlone && out.arm != kArmLoad) f.refuse("arm", "expected serial or load");
  out.state = f.text("state");
  if (out.state != kStateReference && out.state != kStateSnapshot)
    f.refuse("state", "expected reference or snapshot");
  out.repeats = f.count("repeats", kScreenRepeatsMax);
  out.lost = f.count("lost", kScreenRepeatsMax);
  out.discrepant = f.count("discrepant", out.repeats);
  // Of the counts beside it, whatever the file says.
  (void)f.text("upper95");
  if (0 < out.repeats) out.upper95 = flake_upper_limit(out.repeats - out.discrepant, out.repeats);
  out.usual = f.text("usual");
  PROCTOR_CHECK_OK(f.finish());
  return out;
}

Result<ScreenTask> task_from(const Json& json, const std::string& path) {
  JsonFields f(json, path);
  ScreenTask out;
  out.id = f.text("id");
  out.contract = f.digest("contract");
  out.image = f.text("image");
  if (const auto fisher = f.optional_text("fisher_one_sided"))
    out.fisher = std::strtod(fisher->c_str(), nullptr);
  out.moved = f.texts("moved");
  out.unstable = f.texts("unstable");
  out.lack = f.text("lack");
  out.load_sensitive = f.boolean("load_sensitive");
  out.why = f.text("why");
  const std::string verdict = f.text("verdict");
  const auto known = std::ranges::find(kVerdicts, verdict,
                                       [](ScreenVerdict v) { return std::string(to_string(v)); });
  if (known == kVerdicts.end())
    f.refuse("verdict", "expected stable, undecided, flaky or unjudged");
  else
    out.verdict = *known;
  const Json& arms = f.array("arms");
  PROCTOR_CHECK_OK(f.finish());
  for (std::size_t i = 0; i < arms.size(); ++i) {
    PROCTOR_TRY(ScreenArm arm, arm_from(arms[i], path + ".arms[" + std::to_string(i) + "]"));
    out.arms.push_back(std::move(arm));
  }
  return out;
}

}  // namespace

std::string to_json_text(const ScreenResults& results) {
  Json tasks = Json::array();
  for (const ScreenTask& task : results.tasks) tasks.push_back(to_json(task));
  const ScreenSettings& s = results.settings;
  const Json all{{"campaign", results.campaign},
                 {"format", kFormat},
                 {"settings",
                  {{"bound", s.bound},
                   {"load_repeats", s.load_repeats},
                   {"repeats", s.repeats},
                   {"snapshot_tolerance", s.snapshot_tolerance},
                   {"tolerance", s.tolerance}}},
                 {"tasks", std::move(tasks)},
                 {"usd_micros", results.usd_micros}};
  return all.dump(1, Json::Utf8::kReplace) + "\n";
}

Result<ScreenResults> parse_screen(std::string_view text) {
  PROCTOR_TRY(const Json json, parse_json(text, {.bytes_max = kScreenBytes}));
  JsonFields f(json, "");
  ScreenResults out;
  if (f.text("format") != kFormat) f.refuse("format", "expected proctor-flakiness-1");
  out.campaign = f.text("campaign");
  out.usd_micros = static_cast<std::int64_t>(f.count("usd_micros"));
  JsonFields settings(f, "settings");
  out.settings.bound = settings.text("bound");
  out.settings.tolerance = settings.text("tolerance");
  out.settings.snapshot_tolerance = settings.text("snapshot_tolerance");
  out.settings.repeats = static_cast<std::uint32_t>(settings.count("repeats", 0xFFFF'FFFFU));
  out.settings.load_repeats =
      static_cast<std::uint32_t>(settings.count("load_repeats", 0xFFFF'FFFFU));
  PROCTOR_CHECK_OK(settings.finish());
  const Json& tasks = f.array("tasks");
  PROCTOR_CHECK_OK(f.finish());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    PROCTOR_TRY(ScreenTask task, task_from(tasks[i], "tasks[" + std::to_string(i) + "]"));
    out.tasks.push_back(std::move(task));
  }
  return out;
}

std::optional<ScreenTask> still_holds(const ScreenResults& earlier, const Contract& contract,
                                      const ScreenSettings& settings) {
  if (earlier.settings.repeats != settings.repeats ||
      earlier.settings.load_repeats != settings.load_repeats)
    return std::nullopt;
  const auto it = std::ranges::find(earlier.tasks, contract.id, &ScreenTask::id);
  if (it == earlier.tasks.end() || it->contract != contract.digest ||
      it->image != contract.environment.image)
    return std::nullopt;
  ScreenTask out = *it;
  decide(out, settings);
  // What could not be judged may be judged now, though nothing in the contract changed.
  if (out.verdict == ScreenVerdict::kUnjudged) return std::nullopt;
  return out;
}

}  // namespace proctor
