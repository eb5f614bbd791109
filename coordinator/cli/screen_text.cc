#include "coordinator/cli/screen_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "common/base/text.h"

namespace proctor::cli {
namespace {

std::string percent(double share) {
  return fmt::format("{:.1f} %", share * 100);
}

std::string joined(const std::vector<std::string>& words) {
  constexpr std::size_t kShown = 3;
  std::string out;
  for (std::size_t i = 0; i < std::min(words.size(), kShown); ++i)
    out += (i == 0 ? "" : ", ") + printable(words[i]);
  if (kShown < words.size()) out += fmt::format(" and {} more", words.size() - kShown);
  return out;
}

// "reference: 0 of 60 alone, 2 of 60 under load"; "snapshot: 0 of 120" where all was alike.
std::string of_state(const ScreenTask& task, const char* state) {
  std::uint64_t discrepant = 0, repeats = 0;
  std::string apart;
  for (const ScreenArm& arm : task.arms) {
    if (arm.state != state) continue;
    discrepant += arm.discrepant;
    repeats += arm.repeats;
    apart += fmt::format("{}{} of {} {}", apart.empty() ? "" : ", ", arm.discrepant, arm.repeats,
                         arm.arm == kArmLoad ? "under load" : "alone");
  }
  if (apart.empty()) return "";
  return discrepant == 0 ? fmt::format("{}: 0 of {}", state, repeats)
                         : fmt::format("{}: {}", state, apart);
}

double upper_of(const ScreenTask& task, std::string_view arm) {
  double out = 0;
  for (const ScreenArm& a : task.arms)
    if (a.arm == arm) out = std::max(out, a.upper95);
  return out;
}

std::string facts(const ScreenTask& task) {
  if (task.arms.empty()) return task.why;
  std::string out;
  for (const char* state : {kStateReference, kStateSnapshot})
    if (const std::string one = of_state(task, state); !one.empty())
      out += (out.empty() ? "" : "; ") + one;
  out += fmt::format("; it may still be up to {} alone, {} under load",
                     percent(upper_of(task, kArmAlone)), percent(upper_of(task, kArmLoad)));
  return out + (task.unstable.empty() ? "" : "; unstable: " + joined(task.unstable));
}

bool is_discrepant(const ScreenTask& task) {
  return std::ranges::any_of(task.arms, [](const ScreenArm& a) { return 0 < a.discrepant; });
}

std::string advice(const ScreenTask& task, const ScreenSettings& settings,
                   const std::string& campaign, const ScreenOptions& options) {
  const std::string command = "proctor screen " + campaign + " " + task.id;
  const auto usual = std::ranges::find_if(task.arms, [](const ScreenArm& a) {
    return a.state == kStateReference && a.usual != "success" && 0 < a.repeats;
  });
  switch (task.verdict) {
    case ScreenVerdict::kStable:
      if (usual == task.arms.end()) return "";
      return "its reference does not pass, always alike: proctor selfcheck " + campaign + " " +
             task.id;
    case ScreenVerdict::kUndecided: {
      const double bound = std::strtod(settings.bound.c_str(), nullptr);
      if (is_discrepant(task) || task.arms.size() < 4) return task.why;
      const auto fewest = static_cast<std::uint32_t>(clean_repeats_for(bound));
      ScreenSettings more = settings;
      more.repeats = std::max(fewest, more.repeats);
      more.load_repeats = std::max(fewest, more.load_repeats);
      return task.why + "; more repeats decide: " + command + options(more);
    }
    case ScreenVerdict::kFlaky:
      return task.why +
             (task.load_sensitive
                  ? ": it depends on how busy its host is; look at its time limits and "
                    "at what it waits for"
                  : ": find what it waits for, draws by chance or shares") +
             ", and give its contract a new version";
    case ScreenVerdict::kUnjudged:
      return (task.arms.empty() ? "" : task.why + "; ") + "go on with: " + command +
             options(settings);
  }
  return "";
}

constexpr std::array kVerdicts{ScreenVerdict::kStable, ScreenVerdict::kUndecided,
                               ScreenVerdict::kFlaky, ScreenVerdict::kUnjudged};

std::string summary(const std::vector<ScreenTask>& tasks) {
  std::string out;
  for (const ScreenVerdict v : kVerdicts)
    if (const auto n = std::ranges::count(tasks, v, &ScreenTask::verdict); 0 < n)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, to_string(v));
  const FlakyShare share = flaky_share(tasks);
  if (0 < share.judged)
    out += fmt::format("; flaky are {} of {} (95 % interval {} to {})", share.flaky, share.judged,
                       percent(share.low), percent(share.high));
  return out + "\n";
}

std::string still_possible(const std::vector<ScreenTask>& tasks, std::uint64_t runs) {
  double upper = 0;
  for (const ScreenTask& task : tasks)
    if (task.verdict == ScreenVerdict::kStable)
      upper = std::max({upper, upper_of(task, kArmAlone), upper_of(task, kArmLoad)});
  if (upper <= 0 || runs == 0) return "";
  return fmt::format(
      "A stable task may still come out otherwise in up to {}: of the {} runs that the campaign "
      "has "
      "of it, at least one is spoiled then with a chance of {}.\n",
      percent(upper), runs, percent(chance_to_spoil(upper, runs)));
}

}  // namespace

std::string screen_text(const std::vector<ScreenTask>& tasks, const ScreenSettings& settings,
                        const std::string& campaign, const ScreenOptions& options,
                        std::uint64_t runs) {
  std::size_t width = 4;
  for (const ScreenTask& task : tasks) width = std::max(width, task.id.size());
  std::string out;
  for (const ScreenTask& task : tasks) {
    out += fmt::format("{:<{}}  {:<9}  {}\n", task.id, width, to_string(task.verdict), facts(task));
    if (const std::string next = advice(task, settings, campaign, options); !next.empty())
      out += fmt::format("{:<{}}  {:<9}  {}\n", "", width, "", next);
  }
  return out + summary(tasks) + still_possible(tasks, runs);
}

std::string too_few_repeats(const ScreenSettings& settings) {
  const std::uint64_t wanted = clean_repeats_for(std::strtod(settings.bound.c_str(), nullptr));
  if (wanted <= std::min(settings.repeats, settings.load_repeats)) return "";
  return fmt::format(
      "{} repeats cannot exclude a rate of {}, so that no task can be stable: it takes {} alone "
      "and "
      "{} under load (--repeats {} --load-repeats {}), or a larger --bound",
      std::min(settings.repeats, settings.load_repeats), settings.bound, wanted, wanted, wanted,
      wanted);
}

}  // namespace proctor::cli
