#pragma once
// Services of a contract: programs beside a check (a database, an HTTP server) that run while it
// does, in one network with it, and are gone afterwards.  Which of them a check needs, and in what
// order they start.  Parsing: service_parser.cc.  Running: worker/services.
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/contract/program_container.h"

namespace proctor {

// When may what needs a service begin?  Neither port nor command: when it has been started.
struct Readiness {
  std::uint16_t port = 0;  // of its loopback: when a connection is accepted; 0: not asked
  std::string command;     // for /bin/sh -c, in a sandbox like the service's: when it ends with 0
  std::chrono::milliseconds interval{200};  // between one look and the next
  std::chrono::milliseconds timeout{60'000};
};

struct Service {
  std::string name;     // a DNS label, by which all that run beside it reach it
  std::string command;  // for /bin/sh -c, in the contract's own sandbox; of a container: its words
  std::map<std::string, std::string> variables;  // of the command, beside the environment's
  std::optional<ProgramContainer> container;     // instead of the command
  std::vector<std::string> depends_on;           // these are ready before it is started
  Readiness ready;
  std::optional<std::uint64_t> memory_bytes;  // absent: the policy's
  std::optional<std::uint32_t> processes;     // absent: the policy's
};

// Does it run code of the workspace, and so what the agent left?
bool runs_workspace(const Service& service);

// What is kept of each stream of its output, and of its readiness command's, for each check.
inline constexpr std::size_t kServiceOutputBytes = std::size_t{1} << 20;
inline constexpr std::size_t kReadyOutputBytes = std::size_t{64} << 10;

struct Check;
// Which services run beside a check, as indices into `services`: those it names, all where it names
// none by silence, and what they depend on; each behind what it depends on, else as they are
// written.  Requires: names are known and no dependency is a circle (the parser sees to it).
std::vector<std::size_t> services_of(const std::vector<Service>& services, const Check& check);

}  // namespace proctor
