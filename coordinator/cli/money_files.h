#pragma once
// From a campaign's journal to its money (coordinator/aggregate/money.h), and to the commands that
// let parked runs go on.  Reads beside a running coordinator; never takes its lock.
#include <string>
#include <vector>

#include "coordinator/aggregate/money.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/campaign_view.h"

namespace proctor::cli {
// kNotFound: nothing of the campaign has run yet.  kCorrupt: the journal is not of this plan.
Result<MoneyInput> read_money(const FrozenCampaign& frozen);
// Of a held journal, and of the view that was made of it.
Result<MoneyInput> read_money(const FrozenCampaign& frozen, JournalReader& journal,
                              const CampaignView& view);

// All that a resume would read.  kNotFound: nothing of the campaign has run yet.
Result<RestoredState> read_journal(const FrozenCampaign& frozen);

// The part of an attempt's cost that its agent said of itself and nobody measured.
Cost self_reported_cost(const Usage& usage);

// Spoiled by infrastructure: what it cost bought nothing.
bool is_wasted(const AttemptRecord& attempt);

// What was told about money: envelopes that filled up, runs that dominated; one sentence each.
std::vector<std::string> alerts_of(const FrozenCampaign& frozen, const RestoredState& state);

// What was declared to differ from the registration, one sentence each.
std::vector<std::string> deviations_of(const FrozenCampaign& frozen,
                                       const std::vector<BudgetRaised>& raises,
                                       const std::vector<Note>& standing);

// Each approval of a stage, by whom and by which digest of what came before it, and each opening.
// kCorrupt: a note is none.
Result<std::vector<std::string>> approvals_of(const std::vector<Note>& standing);

// Words to type so that parked runs go on.

// For those among `runs` that wait for money: a line for each envelope that is short, with the
// raise that lets all start that are parked there.  Empty: none of them does.
Result<std::string> raises_for(const std::string& folder, const FrozenCampaign& frozen,
                               const std::vector<RunId>& runs);

// For a copy that lies beside the campaign.
std::string copy_command(const std::string& folder);

// The command that goes on with the campaign, as it has to be typed: with a place for the file of
// models where a method asks one, which no journal remembers.
std::string resume_command(const std::string& folder, const Campaign& campaign);

enum class Broken { kTask, kMethod };
// For a run whose task or method is parked because it is broken: whoever is at fault, the ways out.
// `go_on` is the command that goes on then.
std::string mends_for(const std::string& folder, const std::string& run, Broken what,
                      const std::string& go_on);
}  // namespace proctor::cli
