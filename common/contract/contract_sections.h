#pragma once
// The sections of a contract, and the words that files write for its enumerations.
// Internal to this room.
#include <vector>

#include "common/base/json.h"
#include "common/contract/campaign.h"
#include "common/contract/contract.h"
#include "common/contract/fields.h"
#include "common/contract/rules.h"

namespace proctor {
// `network` of a contract, read and written back.  The one-word forms are older than allow-lists:
// what they could say must keep its canonical form, and with it every contract's digest.

// `true`, `false` (also when it is absent) or `{allow: [...]}`.
NetworkAccess read_network(const Fields& fields, std::string_view key);
// The same for agent and checks together, or `{agent: ..., acceptance: ...}`.
void read_network_of_phases(const Fields& fields, std::string_view key, Policy& out);

Json network_json(const NetworkAccess& access);
Json network_json(const Policy& policy);

// The parts of a contract, read one by one.  Errors go to the Problems behind the node.

Repository read_repository(const Node& node, Problems& problems);
Environment read_environment(const Node& node, FileCollector& files, Problems& problems);
MethodEnvironment read_method_environment(const Node& node, const std::string& path,
                                          FileCollector& files, Problems& problems);
std::vector<SetupStep> read_setup(const Fields& contract, FileCollector& files);
std::vector<Check> read_checks(const Fields& contract, FileCollector& files);
std::vector<AcceptanceFile> read_acceptance_files(const Fields& contract, FileCollector& files);
ProgramContainer read_container(const Node& node, const std::string& path, Problems& problems);
// The words of a container's program on one line, as a shell would take them.
std::string words_for_people(const ProgramContainer& container);
Policy read_policy(const Node& node, Problems& problems);

// UTF-8 without control characters beside tab, line feed and carriage return.
bool is_plain_text(std::string_view text);

// The words of the enumerations, as files write them.
inline constexpr std::array<Word<Environment::Sandbox>, 4> kSandboxWords{
    {{"auto", Environment::Sandbox::kAuto},
     {"bubblewrap", Environment::Sandbox::kBubblewrap},
     {"docker", Environment::Sandbox::kDocker},
     {"none", Environment::Sandbox::kNull}}};
inline constexpr std::array<Word<Isolation>, 2> kIsolationWords{
    {{"kernel", Isolation::kKernel}, {"userspace", Isolation::kUserspace}}};
inline constexpr std::array<Word<CheckKind>, 5> kCheckKindWords{
    {{"build", CheckKind::kBuild},
     {"static", CheckKind::kStatic},
     {"unit", CheckKind::kUnit},
     {"integration", CheckKind::kIntegration},
     {"script", CheckKind::kScript}}};
inline constexpr std::array<Word<Gate>, 4> kGateWords{{{"patch", Gate::kPatch},
                                                       {"build", Gate::kBuild},
                                                       {"functional", Gate::kFunctional},
                                                       {"safety", Gate::kSafety}}};
inline constexpr std::array<Word<ResultReader>, 3> kReaderWords{
    {{"exit_code", ResultReader::kExitCode},
     {"junit", ResultReader::kJunit},
     {"tap", ResultReader::kTap}}};

// The word of a value.  Requires: it is in the table.
template <class E, std::size_t N>
std::string word_of(E value, const std::array<Word<E>, N>& words) {
  for (const auto& [word, v] : words)
    if (v == value) return std::string(word);
  PROCTOR_ASSERT(false);
  return "";
}
}  // namespace proctor
