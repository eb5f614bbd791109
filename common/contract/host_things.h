#pragma once
// What a run needs of its worker's host beside a sandbox: values of secrets, folders of toolchains,
// a locale and a time zone that its commands find (where they see the host's files, not an
// image's), a way to a model and its key, which answers in the words that the method's program
// understands. Nobody lists what a host has; a worker says what it lacks of what it was once
// assigned, as a feature: "lacks:secret:API_KEY".  Pure; any thread.
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/campaign.h"

namespace proctor {

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

inline constexpr std::string_view kLacks = "lacks:";
// Among a worker's features: nothing is begun there until its disk has room.
inline constexpr std::string_view kDiskFull = "full:disk";
// "secret API_KEY" of what feature() says.
std::string describe_thing(std::string_view feature);

// What every run of the contract needs, and what only those need whose method runs a program.
std::vector<HostThing> things_of(const Contract& contract);
std::vector<HostThing> agent_things_of(const Contract& contract);
// What runs of the method need beside that.
std::vector<HostThing> things_of(const Method& method);
// All of it, each once.
std::vector<HostThing> things_of(const Contract& contract, const Method& method);

}  // namespace proctor
