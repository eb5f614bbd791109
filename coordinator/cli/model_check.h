#pragma once
// What can be known of a campaign's model calls before anything runs: that no price is there, that
// the first call cannot be paid, that nobody will count an agent's calls.  Reads no file but the
// models file it is given.
#include <string>
#include <vector>

#include "common/contract/campaign.h"
#include "common/contract/document.h"

namespace proctor::cli {
// "model_calls (10) and tokens (1000)": those that only a metered call of a model counts against;
// empty: none is set.
std::string caps_on_calls(const Caps& caps);

// Single-shot tasks that cannot be read, models without a price, and prompts whose worst case
// passes a cap of their run: each call would be denied, and each run invalid.  Says why, and what
// to write.
void check_model_calls(const Campaign& campaign, Diagnostics& out);
// The same as an error, each printed to standard error: for who is about to register.
Status refuse_model_calls(const Campaign& campaign);

// What methods' models cost where no row of the price table names them: by which row they are
// priced instead, or that something of them is free.  One sentence each.
std::vector<std::string> price_notes(const Campaign& campaign);

// Caps that no call of a method's model fits into, so that each is refused and every run fails: who
// runs is told as who checks.
std::vector<std::string> no_call_notes(const Campaign& campaign, const std::string& models);

// Sentences that are no errors: price_notes(), no_call_notes(), caps that hold only what an agent
// tells, models that local workers have to be told of.  `models`: the models file, empty: none was
// named.
std::vector<std::string> model_notes(const Campaign& campaign, const std::string& models);
}  // namespace proctor::cli
