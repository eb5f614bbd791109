#pragma once
// The part of a sandbox that all phases of an attempt share: limits, toolchains, environment
// (R013, R046, R076, R077).  Pure but for reading declared secrets from our own environment.
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/base/result.h"
#include "common/contract/campaign.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
inline constexpr const char* kHomeAt = "/proctor/home";
inline constexpr const char* kContractAt = "/proctor/contract";
inline constexpr const char* kResultsAt = "/proctor/results";
inline constexpr const char* kAgentAt = "/proctor/agent";

// Seeds for test harnesses, locale, time zone, PATH with the toolchains' bin folders first (not for
// an image, which knows its own), then what the contract declares.
std::map<std::string, std::string> sandbox_environment(const Environment& environment,
                                                       SandboxKind kind, std::uint32_t seed);
// Adds the declared secrets of these names.  kUnavailable: one of them is not set on this worker.
Status add_secrets(std::map<std::string, std::string>& env, const std::vector<std::string>& names);

// Is this file of a contract at kContractAt?  All but the answers and what a model is asked: setup
// and checks run the candidate's code.
bool shown_to_commands(const Contract& contract, const ReferencedFile& file);
// Paths of those that setup sees too, whose copies an agent could read: neither acceptance files
// nor what a check or a service names (by its path, by "$PROCTOR_CONTRACT/" and a folder of it, or
// in a file that it names) and no step of setup does in these ways.
std::set<std::string> shown_to_setup(const Contract& contract);

// For checks, which may ask git what changed: the workspace's settings, made for a fast start, let
// a change of equal size and time pass.  Behind what the contract itself sets so.
void have_git_look_closely(std::map<std::string, std::string>& env);

// The things that the agent of this method has beside it (campaign.h): toolchains, first in PATH,
// and variables; then, where its setup made something (a folder of the host), that read-only and
// its `bin` before all others.  Its secrets and its image are the caller's.
void dress_for_method(SandboxSpec& spec, const MethodEnvironment& method, SandboxKind kind,
                      const std::filesystem::path& made);

// The environment with which the sandbox of this method's agent is asked for: the contract's, with
// the method's own image, if it has one, in place of the contract's.
Environment environment_of_agent(const Contract& contract, const Method& method);

// Limits and toolchains; the workspace, label, network and further mounts are the phase's.
SandboxSpec dress_sandbox(const Contract& contract, SandboxKind kind, std::uint32_t seed);
}  // namespace proctor
