// What runs need of a host, where only workers of this one can join: they are our children, and
// have our environment and our folders.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "common/contract/host_things.h"
#include "common/contract/models_file.h"
#include "coordinator/cli/campaign_run.h"

namespace proctor::cli {
namespace {

// What is wrong with it here, behind "NAME needs the ..."; empty: it is here.
std::string lack_of(const HostThing& thing, const ModelsFile& models) {
  switch (thing.kind) {
    case HostThing::Kind::kSecret:
      if (std::getenv(thing.text.c_str()) != nullptr) return "";
      return "secret " + printable(thing.text) + ", which is not set: export it";
    case HostThing::Kind::kToolchain: {
      std::error_code ec;
      if (std::filesystem::exists(thing.text, ec)) return "";
      return "toolchain " + printable(thing.text) + ", which is not on this host";
    }
    case HostThing::Kind::kLocale:
      if (has_locale(thing.text)) return "";
      return "locale " + printable(thing.text) +
             ", which is not on this host: locale -a lists those that are, localedef makes others";
    case HostThing::Kind::kTimeZone:
      if (knows_time_zone(thing.text)) return "";
      return "time zone " + printable(thing.text) +
             ", which is not in /usr/share/zoneinfo: correct its name, or install tzdata";
    case HostThing::Kind::kGateway:
      return "";  // check_models() says it
    case HostThing::Kind::kModel:
      break;
  }
  const auto access = models.find(thing.text);
  if (access == models.end()) return "";  // check_models() says it
  const Result<Secret> key = model_key(access->second);
  if (key.ok()) return "";
  const bool of_variable = !access->second.key_variable.empty();
  return "model " + printable(thing.text) + ": " + printable(key.error().detail, 500) +
         (of_variable ? ": export " + access->second.key_variable : "");
}

// Whose it is: the method's own, or the contract's.
std::string owner_of(const HostThing& thing, const Contract& contract, const Method& method) {
  for (const HostThing& own : things_of(method))
    if (own == thing) return "method " + method.name;
  return "contract " + contract.id;
}

}  // namespace

std::vector<std::string> missing_here(const RunOptions& options, const Campaign& campaign,
                                      Missing which) {
  std::vector<std::string> out;
  if (options.workers.value_or(campaign.workers) == 0) return out;  // none works here
  ModelsFile models;
  if (!options.models.empty())
    if (Result<ModelsFile> read = load_models(options.models); read.ok())
      models = std::move(read).value();
  std::set<std::string> told;
  for (const Contract& contract : campaign.contracts)
    for (const Method& method : campaign.methods)
      for (const HostThing& thing : things_of(contract, method)) {
        const bool is_set =
            thing.kind == HostThing::Kind::kSecret || thing.kind == HostThing::Kind::kModel;
        if (is_set ? which == Missing::kInstalled : which == Missing::kSet) continue;
        const std::string lack = lack_of(thing, models);
        if (lack.empty()) continue;
        std::string line = owner_of(thing, contract, method) + " needs the " + lack;
        if (told.insert(line).second) out.push_back(std::move(line));
      }
  return out;
}

Status check_host_things(const RunOptions& options, const Campaign& campaign) {
  if (!options.listen.empty()) return ok_status();  // others may join that have it
  std::string text;
  for (const std::string& line : missing_here(options, campaign))
    text += (text.empty() ? "" : "\n") + line;
  if (text.empty()) return ok_status();
  return Error{Errc::kInvalid,
               text + "\nLocal workers have what this process has; others join with --listen."};
}

std::vector<std::string> missing_programs(const RunOptions& options, const Campaign& campaign) {
  std::vector<std::string> out;
  const auto need = [&](const char* program, const std::string& what_for, const char* package,
                        const std::string& or_else) {
    if (find_on_path(program).empty())
      out.push_back(std::string(program) + " is not on this host's PATH: " + what_for +
                    ". Install it: apt-get install " + package + or_else);
  };
  need("git", "repositories are read, and patches applied, by it", "git", "");
  if (campaign.ledger == Campaign::LedgerKind::kRedis && campaign.redis.empty())
    need("redis-server", "a private one keeps the campaign's envelopes", "redis-server",
         ", or do without: budget: {ledger: journal} in campaign.yaml");
  const bool local_only = options.workers.value_or(campaign.workers) != 0 && options.listen.empty();
  const auto needs_bubblewrap = [](const Contract& c) {
    return wanted_sandbox(c.environment) == Environment::Sandbox::kBubblewrap;
  };
  if (local_only && std::ranges::any_of(campaign.contracts, needs_bubblewrap))
    need("bwrap", "contracts without an image run in its sandboxes", "bubblewrap", "");
  return out;
}

bool one_user_here() {
  return (::geteuid() != 0 || std::getenv("PROCTOR_ONE_USER") != nullptr) &&
         std::getenv("PROCTOR_SHARE_USER") == nullptr && !find_on_path("bwrap").empty();
}

Result<LocalWork> local_work(const RunOptions& options, const Campaign& campaign) {
  LocalWork work{options.workers.value_or(campaign.workers),
                 options.slots.value_or(campaign.slots)};
  if (work.workers * work.slots <= 1 || !one_user_here()) return work;
  work = {options.workers.value_or(1), options.slots.value_or(1)};
  work.note = fmt::format(
      "--workers {} --slots {}: all sandboxes are one kernel user here, so a run can take what the "
      "checks of its neighbours need; where no agent is hostile, PROCTOR_SHARE_USER=1 allows more",
      work.workers, work.slots);
  if (1 < work.workers * work.slots) return Error{Errc::kInvalid, work.note};
  return work;
}

Status check_programs(const RunOptions& options, const Campaign& campaign) {
  const std::vector<std::string> missing = missing_programs(options, campaign);
  if (missing.empty()) return ok_status();
  std::string text;
  for (const std::string& one : missing) text += (text.empty() ? "" : "\n") + one;
  return Error{Errc::kUnavailable,
               text + "\n(With Proctor's sources: scripts/setup installs all that it needs.)"};
}

}  // namespace proctor::cli
