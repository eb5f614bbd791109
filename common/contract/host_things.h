#pragma once
// Needs of runs that a worker and its host meet or lack.  Pure; any thread.
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/campaign.h"
#include "common/contract/contract.h"
#include "common/contract/models_file.h"

namespace proctor {
// Methods that a worker of this release knows and one of an older release does not, as features of
// its Sync: no worker gets a run whose method it cannot have read.

inline constexpr std::string_view kHasToolLoop = "method:tool_loop";
// A gateway's `tools`.
inline constexpr std::string_view kHasAgentTools = "method:tools";

// Which sandbox an environment asks for, said once for who plans, who checks a host and who runs
// it.

// The answer is never kAuto.  A host may run images by another runtime than Docker's: that is a
// worker's matter.
inline Environment::Sandbox wanted_sandbox(const Environment& e) {
  if (e.sandbox != Environment::Sandbox::kAuto) return e.sandbox;
  return e.image.empty() ? Environment::Sandbox::kBubblewrap : Environment::Sandbox::kDocker;
}

// Which of a provider's APIs answer in the words that a program understands.

// The API that answers in the words of a program which was asked for as `as`.
bool speaks(MethodGateway::As as, ModelApi api);
// Why no call of such a method could be answered by that model; empty: some can.
std::string unspoken(const MethodGateway& gateway, const ModelAccess& access);
// The same of the text of a HostThing of Kind::kGateway.
std::string unspoken(const std::string& gateway, const ModelsFile& models);

// Needs of a run from its worker's host beside a sandbox: values of secrets, folders of toolchains,
// a locale and a time zone that its commands find (where they see the host's files, not an
// image's), a way to a model and its key, which answers in the words that the method's program
// understands.  There is no list of what a host has; a worker says what it lacks of what it was
// once assigned, as a feature: "lacks:secret:API_KEY".
struct HostThing {
  enum class Kind { kSecret, kToolchain, kModel, kGateway, kLocale, kTimeZone };
  Kind kind = Kind::kSecret;
  // The secret's name, the folder's path, the model's name; "anthropic:NAME" of a gateway's model;
  // the locale, the time zone.
  std::string text;
  // "secret:API_KEY", "toolchain:/opt/go": at most 90 bytes; of a longer path its digest.
  std::string feature() const;
  friend auto operator<=>(const HostThing&, const HostThing&) = default;
};

constexpr auto words(HostThing::Kind) {
  using Kind = HostThing::Kind;
  return std::to_array<Word<Kind>>({{"secret", Kind::kSecret},
                                    {"toolchain", Kind::kToolchain},
                                    {"model", Kind::kModel},
                                    {"gateway", Kind::kGateway},
                                    {"locale", Kind::kLocale},
                                    {"timezone", Kind::kTimeZone}});
}

inline constexpr std::string_view kLacks = "lacks:";
// Among a worker's features: nothing is begun there until its disk has room.
inline constexpr std::string_view kDiskFull = "full:disk";
// "secret API_KEY" of what feature() says.
std::string describe_thing(std::string_view feature);

// Needs of every run of the contract, and of only those whose method runs a program.
std::vector<HostThing> things_of(const Contract& contract);
std::vector<HostThing> agent_things_of(const Contract& contract);
// Needs of runs of the method beside that.
std::vector<HostThing> things_of(const Method& method);
// All of it, each once.
std::vector<HostThing> things_of(const Contract& contract, const Method& method);
}  // namespace proctor
