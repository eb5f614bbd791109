#pragma once
// A campaign's journal as commands open it, what is around it, and the campaign by it.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/ledger/ledger_store.h"
#include "common/ledger/redis_connection.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/campaign_view.h"
#include "coordinator/shell/state_folder.h"
#include "coordinator/shell/status.h"

namespace proctor::cli {
// Where the Redis of a campaign is, as the commands find it.

// An address of campaign.yaml with the credentials of PROCTOR_REDIS_USER and
// PROCTOR_REDIS_PASSWORD: they come from the environment, never from a file that is committed.
// For tls:// likewise the files PROCTOR_REDIS_CA, PROCTOR_REDIS_CERT and PROCTOR_REDIS_KEY.
Result<RedisEndpoint> redis_endpoint(const std::string& configured);

// The configured server, else the private one of a campaign that runs; nothing when there is none
// or the campaign does without.
std::optional<std::string> redis_address(const FrozenCampaign& frozen);

// What is around a journal that nobody writes to, and what of it the journal does not know
// (coordinator/shell/behind.h): run directories, meter books and results of this host's workers,
// and a Redis that is configured and answers.
struct Around {
  std::vector<std::string> problems;  // sentences; empty: the journal knows all of it
  std::vector<AskId> asks;            // that Redis answered
  std::string unasked;                // why Redis was not asked, where one is configured
};
// An error: the journal cannot be read.  One that is not there, or has nothing in it, knows of
// nothing: whatever is around it is a problem then, also what the coordinator's last word says.
Result<Around> look_around(const FrozenCampaign& frozen);
inline constexpr std::uint32_t kAttemptsMax = 255;
// Attempts of which a worker of this host has a meter book or a result, and that worker.  Books are
// read first: a book goes when its result is in the spool.
std::map<AttemptId, WorkerId> held_by_workers(const FrozenCampaign& frozen);
// The coordinator's last word (status.json).
Result<StatusSnapshot> last_status(const StateFolder& folder);
// "PATH says that 2 of 6 runs had ended and 1 was under way", by the coordinator's last word;
// empty: it says nothing of the kind.
std::string begun_by_status(const StateFolder& folder);

// A campaign's journal as commands read it that need what has run.  Blocking; thread-safe.

// kNotFound, with what to type.
Error not_begun(const std::filesystem::path& campaign);

// Nothing: no coordinator has written anything into it yet.  kCorrupt, with what to type: it is
// not there, or empty, beside results, or beside a coordinator's last word that there were some.
Result<std::optional<JournalReader>> begun_journal(const StateFolder& folder);

// As not_begun(): there is no journal, or nothing in it.  Else as begun_journal().
Result<JournalReader> open_journal(const StateFolder& folder);

// Where a campaign stands as its journal leaves it, for commands that explain, count or decide
// while no coordinator runs: they ask the code that the next life would ask, and derive nothing
// from notes and rows by themselves.

// What a coordinator of this campaign gives its scheduler.
SchedulerSettings scheduler_settings(const FrozenCampaign& frozen);

// All that a resume would read.  kCorrupt, as a coordinator refuses it: it knows less than runs/ or
// than its coordinator's last word (behind.h), and what a command would say or write by it is of
// an older state.
Result<RestoredState> load_whole(const FrozenCampaign& frozen, JournalReader& journal);

// Not begun, so nothing is decided anew.  kCorrupt: the journal does not fit the plan.
Result<CampaignView> view_of(const FrozenCampaign& frozen, RestoredState state);
// By load_whole().
Result<CampaignView> view_of(const FrozenCampaign& frozen, JournalReader& journal);
}  // namespace proctor::cli
