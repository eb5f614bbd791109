#include "coordinator/cli/parked_advice.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "coordinator/cli/money_files.h"

namespace proctor::cli {

Result<std::string> raises_for(const std::string& folder, const FrozenCampaign& frozen,
                               const std::vector<RunId>& runs) {
  PROCTOR_TRY(const MoneyInput money, read_money(frozen));
  const MoneyView view = build_money(money);
  std::set<std::uint32_t> scopes;
  for (const MoneyInput::Parked& p : money.parked)
    if (std::ranges::find(runs, RunId(p.run)) != runs.end()) scopes.insert(p.scope);
  std::string out;
  for (const std::uint32_t s : scopes) {
    const EnvelopeMoney& e = view.envelopes[s];
    out += "\n  proctor budget raise " + folder + " " + e.name + " " +
           format_usd(e.cap + e.wanted) + " --reason \"...\"    (" + e.name + " is short by " +
           format_usd(e.short_least) + " " + money.unit + " at least; " + std::to_string(e.parked) +
           (e.parked == 1 ? " run is" : " runs are") + " parked there)";
  }
  return out;
}

std::string copy_command(const std::string& folder) {
  std::filesystem::path named = std::filesystem::path(folder).lexically_normal();
  if (named.has_parent_path() && !named.has_filename()) named = named.parent_path();
  std::error_code ec;
  // Beside "." is no name: it would lie in what is copied.
  if (named == "." || named.filename() == "..") named = std::filesystem::canonical(folder, ec);
  return "proctor copy " + folder + " " + named.string() + "-2";
}

std::string resume_command(const std::string& folder, const Campaign& campaign) {
  const bool asks = std::ranges::any_of(
      campaign.methods, [](const Method& m) { return m.gateway || !m.call.model.empty(); });
  return "proctor resume " + folder + (asks && 0 < campaign.workers ? " --models FILE" : "");
}

std::string mends_for(const std::string& folder, const std::string& run, Broken what,
                      const std::string& go_on) {
  const bool method = what == Broken::kMethod;
  const std::string task = run.substr(0, run.find('/'));
  return std::string("  If ") + (method ? "the agent" : "the task") +
         " itself is wrong: it is registered as it is, so mend it in a copy of the campaign:\n"
         "    " +
         copy_command(folder) + "\n" +
         (method ? ""
                 : "  or go on without it:\n    proctor remove-task " + folder + " " + task +
                       " --reason \"...\"\n") +
         "  If the host lacked something" +
         (method ? ", or a provider of models, its address or the operator's key was at fault"
                 : "") +
         ": mend that, then\n    proctor requeue " + folder + " " + run + " && " + go_on + "\n";
}

}  // namespace proctor::cli
