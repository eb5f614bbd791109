#include "coordinator/cli/campaign_notes.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "common/base/files.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/pilot/screen.h"
#include "common/pilot/selfcheck.h"
#include "common/plan/registration.h"
#include "common/stats/power.h"
#include "coordinator/cli/report.h"

namespace proctor::cli {
namespace {
bool are_alike(const Campaign& campaign) {
  return std::ranges::all_of(campaign.stages, [](const Stage& s) { return s.draw.empty(); });
}

std::string tasks_text(const Campaign& campaign, const Stage& stage) {
  const std::string tasks = counted(campaign.tasks_of(stage), "task");
  if (stage.draw.per_stratum)
    return fmt::format("{} ({} of each stratum, drawn)", tasks, *stage.draw.per_stratum);
  return tasks;
}
}  // namespace

std::string size_text(const Campaign& campaign) {
  const std::string each = counted(campaign.contracts.size(), "task") + " x " +
                           counted(campaign.methods.size(), "method");
  if (!are_alike(campaign))
    return each + ", " + counted(campaign.stages.size(), "stage") + ", " +
           counted(campaign.run_count(), "run");
  const std::string all = each + " x " + counted(campaign.replicates, "replicate");
  if (campaign.stages.size() < 2) return all;
  return fmt::format("{} x {} stages = {}", all, campaign.stages.size(),
                     counted(campaign.run_count(), "run"));
}

std::string stages_text(const Campaign& campaign) {
  const bool asks =
      std::ranges::any_of(campaign.stages, [](const Stage& s) { return !s.rules.empty(); });
  if (campaign.stages.size() < 2 && are_alike(campaign) && !asks) return "";
  std::string out;
  for (const Stage& s : campaign.stages) {
    out += fmt::format(
        "  stage {:<22} {} x {} x {} = {}{}\n", printable(s.name), tasks_text(campaign, s),
        counted(campaign.methods.size(), "method"), counted(campaign.replicates_of(s), "replicate"),
        counted(campaign.tasks_of(s) * campaign.replicates_of(s) * campaign.methods.size(), "run"),
        s.draw.order == StageOrder::kTasks ? ", task by task" : "");
    if (!s.rules.empty()) out += "    " + printable(describe(s.rules), limits::kDetailBytes) + "\n";
  }
  return out;
}

namespace {
constexpr std::size_t kMostNamed = 8;

std::string short_number(double p) {
  return fmt::format("{:.3g}", std::min(1.0, p));
}

// Methods that the campaign is about: neither noop nor reference.
std::vector<std::string> agents_of(const Campaign& campaign) {
  std::vector<std::string> out;
  for (const Method& m : campaign.methods)
    if (m.acts_as() != Method::Kind::kNoop && m.acts_as() != Method::Kind::kReference)
      out.push_back(m.name);
  return out;
}

std::ptrdiff_t agents_in(const std::pair<std::string, std::string>& pair,
                         const std::vector<std::string>& agents) {
  return std::ranges::count(agents, pair.first) + std::ranges::count(agents, pair.second);
}

// Two agents or more, and no comparison is between any two: the default of a campaign with a noop.
std::string uncompared_agents(const Campaign& campaign) {
  const std::vector<std::string> agents = agents_of(campaign);
  if (agents.size() < 2) return "";
  for (const auto& pair : comparisons_of(campaign, registered_plan(campaign)))
    if (agents_in(pair, agents) == 2) return "";
  std::string names, pairs;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    names += (i == 0 ? "" : i + 1 == agents.size() ? " and " : ", ") + printable(agents[i]);
    for (std::size_t k = i + 1; k < agents.size(); ++k)
      pairs +=
          (pairs.empty() ? "[" : ", [") + printable(agents[i]) + ", " + printable(agents[k]) + "]";
  }
  return fmt::format(
      "{} are compared with others, and with each other not at all: for that, write "
      "analysis.contrasts: [{}] into campaign.yaml before the freeze, for after it no comparison "
      "is added",
      names, pairs);
}

std::string hopeless_comparisons(const Campaign& campaign) {
  const AnalysisPlan plan = registered_plan(campaign);
  const std::size_t pairs = comparisons_of(campaign, plan).size();
  if (pairs == 0) return "";
  const double alpha = plan.alpha.real();
  const auto unit = plan.unit.value_or(AnalysisPlan::Unit::kTask);
  const std::uint64_t units = units_of(campaign);
  const std::uint64_t fewest = fewest_flip_tasks(alpha / static_cast<double>(pairs));
  if (fewest <= units) return "";
  const double least = least_flip_p(units);
  const std::string adjusted =
      pairs == 1 ? ""
                 : fmt::format(", {} adjusted for {} comparisons",
                               short_number(least * static_cast<double>(pairs)), pairs);
  return fmt::format(
      "with {} no comparison can come out as better or worse, whatever the runs do: the smallest "
      "exact p is {}{}, and alpha is {}. {} are the fewest; proctor power says how many show "
      "what{}",
      counted_units(unit, units), short_number(least), adjusted, short_number(alpha),
      counted_units(unit, fewest),
      !plan.is_over_repositories()
          ? ""
          : ". \"analysis: {unit: task}\" in campaign.yaml, before the freeze, takes tasks for the "
            "units: say so where those of one repository tell as much as those of many");
}

// "compared will be: strong - noop, weak - noop (...)"; those of agents first; empty:
// there is one method.
std::string compared(const Campaign& campaign) {
  const AnalysisPlan plan = registered_plan(campaign);
  auto pairs = comparisons_of(campaign, plan);
  const std::vector<std::string> agents = agents_of(campaign);
  std::ranges::stable_partition(pairs, [&](const auto& p) { return 0 < agents_in(p, agents); });
  if (pairs.empty()) return "";
  std::string out;
  for (std::size_t i = 0; i < std::min(kMostNamed, pairs.size()); ++i)
    out +=
        (out.empty() ? "" : ", ") + printable(pairs[i].first) + " - " + printable(pairs[i].second);
  if (kMostNamed < pairs.size()) out += fmt::format(" and {} more", pairs.size() - kMostNamed);
  return "compared will be: " + out +
         (plan.contrasts.empty()
              ? " (the default: each less one baseline; analysis.contrasts names other pairs)"
              : " (analysis.contrasts)") +
         (plan.is_over_repositories()
              ? ", over " + counted_units(*plan.unit, units_of(campaign)) + " (analysis.unit)"
              : "");
}

std::string as_note(const std::string& text) {
  return text.empty() ? "" : "note: " + text;
}
}  // namespace

std::vector<std::pair<std::string, std::string>> comparisons_of(const Campaign& campaign,
                                                                const AnalysisPlan& plan) {
  std::vector<std::string> methods;
  std::vector<bool> is_noop;
  for (const Method& m : campaign.methods) {
    methods.push_back(m.name);
    is_noop.push_back(m.acts_as() == Method::Kind::kNoop);
  }
  return contrasts_of(plan, methods, is_noop);
}

std::uint64_t units_of(const Campaign& campaign) {
  const std::vector<std::uint32_t> of = repositories_of(campaign);
  if (of.empty() || !registered_plan(campaign).is_over_repositories()) return of.size();
  return *std::ranges::max_element(of);
}

std::string analysis_text(const Campaign& campaign) {
  std::string out;
  for (const std::string& line : {compared(campaign), as_note(uncompared_agents(campaign)),
                                  as_note(hopeless_comparisons(campaign))})
    if (!line.empty()) out += line + "\n";
  return out;
}

namespace {
constexpr std::string_view kFolder = "PROCTOR_METHOD";

// Which program a file is for, where its name or its first words tell; empty: they do not.
std::string_view language_of(const ReferencedFile& file) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kEndings{
      {{".py", "python3"}, {".js", "node"}, {".mjs", "node"}, {".rb", "ruby"}, {".pl", "perl"}}};
  for (const auto& [ending, program] : kEndings)
    if (file.path.ends_with(ending)) return program;
  // The first line that is no comment: a shell has no such words with what follows them.
  for (std::string_view rest = file.bytes; !rest.empty();) {
    const std::string_view line = take_until(rest, '\n');
    if (line.empty() || line.starts_with('#')) continue;
    const bool imports = line.starts_with("import ") && line.find('/') == line.npos;
    const bool from = line.starts_with("from ") && line.find(" import ") != line.npos;
    return imports || from || line.starts_with("\"\"\"") ? "python3" : "";
  }
  return "";
}

// What its command is where `script: PATH` names it and no first line names an interpreter.
bool is_for_a_shell(const Method& m, const ReferencedFile& file) {
  const std::string named = "\"$" + std::string(kFolder) + "/" + file.path + "\"";
  return !file.bytes.starts_with("#!") && (m.command == "sh " + named || m.command == named);
}

bool is_of_name(char c) {
  return c == '_' || ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
}
bool is_of_path(char c) {
  return is_of_name(c) || c == '.' || c == '-' || c == '/';
}

// The paths behind $PROCTOR_METHOD/ in a command; "" for the folder itself, and for one that goes
// on in a way that cannot be read here.
std::set<std::string> named_in(std::string_view command) {
  std::set<std::string> out;
  for (std::size_t at = command.find(kFolder); at != command.npos;
       at = command.find(kFolder, at + 1)) {
    const std::string_view before = command.substr(0, at);
    const bool braced = before.ends_with("${");
    if (!braced && !before.ends_with('$')) continue;
    std::string_view rest = command.substr(at + kFolder.size());
    if (braced && !take_word(rest, "}")) continue;  // ${PROCTOR_METHOD:-...} and longer names
    if (!take_word(rest, "/")) {
      // Not of $PROCTOR_METHOD_HOME, whatever that is.
      if (braced || rest.empty() || !is_of_name(rest.front())) out.insert("");
      continue;
    }
    const auto end = std::ranges::find_if_not(rest, is_of_path);
    std::string_view path = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    const std::string_view then = rest.substr(path.size());
    while (path.ends_with('/')) path.remove_suffix(1);
    const bool goes_on =
        !then.empty() && std::string_view("$*?[{`").find(then.front()) != then.npos;
    out.insert(goes_on ? "" : std::string(path));
  }
  return out;
}

bool brings(const Method& m, const std::string& path) {
  return path.empty() || std::ranges::any_of(m.files, [&](const ReferencedFile& f) {
           return f.path == path || f.path.starts_with(path + "/");
         });
}

void notes_of(const Method& m, std::vector<std::string>& out) {
  const std::string who = "the method " + m.name + ": ";
  for (const ReferencedFile& file : m.files) {
    const std::string_view program = language_of(file);
    if (program.empty() || !is_for_a_shell(m, file)) continue;
    out.push_back(who + file.path + " looks like a program for " + std::string(program) +
                  " and has no first line that names one, so that sh runs it and every run fails: "
                  "#!/usr/bin/env " +
                  std::string(program));
  }
  std::set<std::string> named = named_in(m.command);
  for (const SetupStep& step : m.environment.setup) named.merge(named_in(step.command));
  for (const std::string& path : named) {
    if (m.files.empty()) {
      out.push_back(who +
                    "its commands name $PROCTOR_METHOD, which is not set where a method has "
                    "no files: files: [" +
                    (path.empty() ? "..." : path) + "]");
      break;
    }
    if (!brings(m, path))
      out.push_back(who + "its commands name $PROCTOR_METHOD/" + path +
                    ", which its files do not bring: files: [..., " + path + "]");
  }
}
}  // namespace

std::vector<std::string> method_notes(const Campaign& campaign) {
  std::vector<std::string> out;
  for (const Method& m : campaign.methods)
    if (m.kind == Method::Kind::kCommand && !m.container) notes_of(m, out);
  return out;
}

namespace {
constexpr std::size_t kNamed = 8, kWhyBytes = 300;

// Nothing: it is not there, or was edited since it was written.
std::string text_of(const Campaign& campaign, const std::string& name, std::size_t bytes) {
  const StateFolder folder{campaign.folder};
  const Result<std::string> text = read_file(folder.reports() / name, bytes);
  return text.ok() && as_listed(folder, name).ok() ? *text : "";
}

const Contract* still_there(const Campaign& campaign, const std::string& id, const Digest& digest,
                            const std::string& image) {
  const Contract* contract = campaign.find_contract(id);
  return contract != nullptr && contract->digest == digest && contract->environment.image == image
             ? contract
             : nullptr;
}

std::string bounded(const std::string& why) {
  return printable(why, kWhyBytes);
}
}  // namespace

std::map<std::string, std::string> distrusted_tasks(const Campaign& campaign) {
  std::map<std::string, std::string> out;
  const auto screen = parse_screen(text_of(campaign, "flakiness.json", kScreenBytes));
  if (screen.ok())
    for (const ScreenTask& task : screen->tasks) {
      if (task.verdict != ScreenVerdict::kFlaky && task.verdict != ScreenVerdict::kUndecided)
        continue;
      if (still_there(campaign, task.id, task.contract, task.image) == nullptr) continue;
      out[task.id] =
          std::string(to_string(task.verdict)) + (task.why.empty() ? "" : ": " + bounded(task.why));
    }
  // What is unsound measures nothing, however steadily.
  const auto checked = parse_selfcheck(text_of(campaign, "selfcheck.json", kSelfcheckBytes));
  if (checked.ok())
    for (const SelfcheckTask& task : checked->tasks) {
      const bool is_bad = task.verdict.starts_with("unsound") || task.verdict.starts_with("flaky");
      if (is_bad && still_there(campaign, task.id, task.contract, task.image) != nullptr)
        out[task.id] = bounded(task.verdict);
    }
  return out;
}

std::vector<std::string> trust_notes(const std::map<std::string, std::string>& distrusted) {
  std::vector<std::string> out;
  for (const auto& [task, why] : distrusted) {
    if (out.size() == kNamed) {
      out.push_back(fmt::format("and {} more tasks in reports/flakiness.json and selfcheck.json",
                                distrusted.size() - kNamed));
      break;
    }
    out.push_back(fmt::format("task {} was judged {}", printable(task, limits::kNameBytes), why));
  }
  return out;
}
}  // namespace proctor::cli
