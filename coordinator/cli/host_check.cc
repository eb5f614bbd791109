// What runs need of a host, where only workers of this one can join: they are our children, and
// have our environment and our folders.
#include <cstdlib>
#include <filesystem>
#include <set>

#include "common/base/text.h"
#include "common/contract/host_things.h"
#include "coordinator/cli/campaign_run.h"

namespace proctor::cli {
namespace {

bool is_here(const HostThing& thing) {
  if (thing.kind == HostThing::Kind::kSecret) return std::getenv(thing.text.c_str()) != nullptr;
  std::error_code ec;
  return std::filesystem::exists(thing.text, ec);
}

// Whose it is: the method's own, or the contract's.
std::string owner_of(const HostThing& thing, const Contract& contract, const Method& method) {
  for (const HostThing& own : things_of(method))
    if (own == thing) return "method " + method.name;
  return "contract " + contract.id;
}

}  // namespace

Status check_host_things(const RunOptions& options, const Campaign& campaign) {
  if (options.workers.value_or(campaign.workers) == 0 || !options.listen.empty())
    return ok_status();  // others may join that have it
  std::set<std::string> told;
  std::string text;
  for (const Contract& contract : campaign.contracts)
    for (const Method& method : campaign.methods)
      for (const HostThing& thing : things_of(contract, method)) {
        if (is_here(thing)) continue;
        const bool secret = thing.kind == HostThing::Kind::kSecret;
        const std::string line =
            owner_of(thing, contract, method) + " needs the " +
            (secret ? "secret " : "toolchain ") + printable(thing.text) +
            (secret ? ", which is not set: export it" : ", which is not on this host");
        if (told.insert(line).second) text += (text.empty() ? "" : "\n") + line;
      }
  if (text.empty()) return ok_status();
  return Error{Errc::kInvalid,
               text + "\nLocal workers have what this process has; others join with --listen."};
}

}  // namespace proctor::cli
