#pragma once
// What run, serve and resume share: a coordinator on a frozen campaign, its Redis, its workers,
// progress on standard error, and the report at the end.
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cli/campaign_files.h"
#include "coordinator/shell/coordinator.h"

namespace proctor::cli {
struct RunOptions {
  std::string folder;
  std::optional<std::uint32_t> workers;  // local ones; nothing: the campaign's
  std::optional<std::uint32_t> slots;
  std::string listen;  // tcp://HOST:PORT; empty: the local socket only
  bool insecure_loopback = false;
  // kEither: go on where something has begun.
  enum class Begin { kFresh, kGoOn, kEither } begin = Begin::kFresh;
  std::vector<std::string> worker_arguments{};  // of each local worker, beside its own
  // How local workers reach single-shot models; empty: PROCTOR_MODELS, or none are known.
  std::string models{};
  bool again = false;       // `run --again`: also where this host knows that it has begun before
  bool show_report = true;  // on standard output; it is written in any case
  // What somebody types to go on with it; empty: proctor resume.
  std::string go_on{};
  // Else it ends where only a person can open the next stage, with kWaitsForPerson.
  bool stays_at_gate = false;
};

// kInvalid: a method asks a model of which local workers know nothing.
Status check_models(const RunOptions& options, const Campaign& campaign);
enum class Missing { kAny, kSet, kInstalled };
// Things that runs need of this host and local workers would not have, a sentence each: those that
// one sets before a run (secrets, keys of models), and those that are installed (toolchains,
// locales, time zones).
std::vector<std::string> missing_here(const RunOptions& options, const Campaign& campaign,
                                      Missing which = Missing::kAny);
// kInvalid: there is such a thing, and nobody else can join.
Status check_host_things(const RunOptions& options, const Campaign& campaign);
// Programs that this host lacks and such a run needs, each with what it is for and what to type:
// git, redis-server where the campaign has one of its own, bubblewrap where only local workers can
// run what needs it.
std::vector<std::string> missing_programs(const RunOptions& options, const Campaign& campaign);
// kUnavailable: such programs are missing.
Status check_programs(const RunOptions& options, const Campaign& campaign);
// Are all sandboxes of this host one kernel user, without root or because PROCTOR_ONE_USER wants
// it, and does PROCTOR_SHARE_USER not insist on several runs at a time even so?
bool one_user_here();
struct LocalWork {
  std::uint32_t workers = 0, slots = 0;  // slots: of each
  std::string note{};                    // not empty: what became of the campaign's, and why
};
// As asked for, else the campaign's; with one_user_here() what was not asked for is 1.
// kInvalid: more than one run at a time was asked for there.
Result<LocalWork> local_work(const RunOptions& options, const Campaign& campaign);
// The exit code.  `frozen` need not be on disk as a registered campaign: its folder keeps what the
// run makes.
Result<int> run_frozen(const RunOptions& options, const FrozenCampaign& frozen);
// Of the campaign in options.folder, which is registered first if it is not.
int run_campaign(const RunOptions& options);
}  // namespace proctor::cli
