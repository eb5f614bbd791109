#pragma once
// When may what setup made once stand for running it again?  The key names everything that a setup
// of the untouched snapshot can depend on; two setups of one key make the same, as far as setup is
// a function at all (R021).  Pure; any thread.
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/contract/campaign.h"

namespace proctor {
// Not with secrets: what they let setup fetch is not for every run's eyes.
bool setup_is_cacheable(const Contract& contract);
// A cacheable setup sees this instead of its run's seed.
inline constexpr std::uint32_t kSetupSeed = 0;

struct SetupPlace {
  std::string content;    // id of the tree that is checked out, with submodules and large files
  std::string sandbox;    // the kind that runs it
  std::string workspace;  // the kind; layers of one are of no use to another
  // All else that the sandbox shows of this host, in words that change when it does.
  std::vector<std::string> host;
};
Digest setup_key(const Contract& contract, const SetupPlace& place);

// The same of a method's own setup, which sees no task and no secrets: what it makes is the same
// for every task that runs in this image (empty: none).  `place` has neither content nor workspace.
bool setup_is_cacheable(const Method& method);
Digest method_setup_key(const Method& method, const std::string& image, const SetupPlace& place);

// May acceptance use the layer where `touched` is all that the workspace differs from the snapshot
// in, before setup?  Nothing at all: setup sees what it saw.  Else every step has to have named
// what it reads, and nothing of that is touched.
bool setup_reads_none_of(const Contract& contract, const std::vector<std::string>& touched);
}  // namespace proctor
