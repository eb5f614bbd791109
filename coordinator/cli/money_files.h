#pragma once
// From a campaign's journal to its money (coordinator/aggregate/money.h).  Reads beside a running
// coordinator; never takes its lock.
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

}  // namespace proctor::cli
