// proctor compare OLDER NEWER
#include <cstdio>
#include <map>

#include "common/base/text.h"
#include "coordinator/aggregate/campaign_comparison.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/share_option.h"

namespace proctor::cli {
namespace {

constexpr int kUndecided = 5;

struct CompareArgs {
  std::string older, newer, method;
  std::vector<std::string> names;
  double margin = 0.05;
  bool json = false, strict = false;
};

Result<std::map<std::string, std::string>> names_of(const std::vector<std::string>& pairs) {
  std::map<std::string, std::string> out;
  for (const std::string& pair : pairs) {
    const std::size_t equal = pair.find('=');
    if (equal == std::string::npos || equal == 0 || equal + 1 == pair.size())
      return Error{Errc::kInvalid, "--map: found \"" + printable(pair) + "\", expected OLD=NEW"};
    out[pair.substr(0, equal)] = pair.substr(equal + 1);
  }
  return out;
}

// --method and both sides of --map have to exist: a typo must not compare nothing in silence.
Status check_names(const CompareArgs& args, const std::map<std::string, std::string>& names,
                   const Registration& older, const Registration& newer) {
  const auto known = [](const Registration& in, const std::string& name, const char* which) {
    if (in.methods.count(name) != 0) return ok_status();
    std::vector<std::string_view> all;
    for (const auto& [method, digest] : in.methods) all.push_back(method);
    const auto near = nearest_word(name, all);
    return Status(Error{Errc::kNotFound, "the " + std::string(which) + " campaign has no method " +
                                             printable(name) +
                                             (near ? " (did you mean " + *near + "?)" : "")});
  };
  for (const auto& [from, to] : names) {
    PROCTOR_CHECK_OK(known(older, from, "older"));
    PROCTOR_CHECK_OK(known(newer, to, "newer"));
  }
  return args.method.empty() ? ok_status() : known(newer, args.method, "newer");
}

Result<int> compare(const CompareArgs& args) {
  PROCTOR_TRY(const auto names, names_of(args.names));
  PROCTOR_TRY(const FrozenCampaign older, load_registered(args.older));
  PROCTOR_TRY(const FrozenCampaign newer, load_registered(args.newer));
  PROCTOR_CHECK_OK(check_names(args, names, older.registration, newer.registration));
  PROCTOR_TRY(const CampaignReport before, read_report(older));
  PROCTOR_TRY(const CampaignReport now, read_report(newer));
  PROCTOR_CHECK_OK(may_be_compared(args.older, before.runs));
  PROCTOR_CHECK_OK(may_be_compared(args.newer, now.runs));
  CampaignComparison c = compare_campaigns({older.registration, before}, {newer.registration, now},
                                           names, args.margin);
  if (!args.method.empty()) {
    std::erase_if(c.methods, [&](const MethodComparison& m) { return m.new_name != args.method; });
    if (!c.methods.empty()) c.lost_agents.clear();  // the others are not asked about
  }
  if (args.strict && !c.differences.empty())
    return Error{Errc::kConflict, "they may not be compared (--strict): " + c.differences.front()};
  std::fputs((args.json ? render_comparison_json(c) : render_comparison_text(c)).c_str(), stdout);
  switch (decision_of(c)) {
    case Decision::kNotWorse:
      return kOk;
    case Decision::kWorse:
      return kJobFailed;
    case Decision::kUndecided:
      return kUndecided;
  }
  return kUndecided;
}

}  // namespace

void add_compare(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "compare", "is a newer campaign worse than an older one, method by method?",
      "Exit code: 0 no method is worse at the margin, 1 one is, 5 the data leave it open, 2 wrong "
      "input.\nnoop and reference measure the tasks: they decide only where nothing else is "
      "compared. An\nagent of the older campaign that the newer has not: never 0.\n"
      "Example:\n  proctor compare last-week this-week\n"
      "  proctor compare --map agent-1=agent-2 --margin 0.1 old new");
  auto args = std::make_shared<CompareArgs>();
  command.add_option("OLDER", args->older, "the older campaign's folder").required();
  command.add_option("NEWER", args->newer, "the newer campaign's folder").required();
  command.add_option("--map", args->names, "OLD=NEW: a method that is called otherwise now");
  command.add_option("--method", args->method, "this method of the newer campaign alone");
  command.add_option("--margin", args->margin, "how much lower a success rate may be")
      .check(share(0.000001, 0.999999), "SHARE")
      .capture_default_str();
  command.add_flag("--strict", args->strict, "refuse campaigns that differ in more than methods");
  command.add_flag("--json", args->json, "everything, for programs");
  command.callback([=, &exit_code] { exit_code = code_of(compare(*args)); });
}

}  // namespace proctor::cli
