#pragma once
// A contract as data (R012-R041), and what its parts say: containers, services, network, builds.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/money.h"
#include "common/base/net_host.h"
#include "common/base/result.h"
#include "common/base/words.h"
#include "common/contract/document.h"

namespace proctor {
// A check, a service or an agent that is a program of its own in an image, as a service of a
// compose file is: it sees the image's environment and what is said here, not what commands of the
// contract see.
struct ProgramContainer {
  std::string image;                    // by digest; empty: the environment's
  std::vector<std::string> entrypoint;  // empty: the image's
  std::vector<std::string> command;     // empty: the image's, unless an entrypoint is given
  std::string working_dir;              // absolute; empty: the image's
  std::map<std::string, std::string> variables;  // beside the image's own
  struct Mount {
    std::string from;  // a path of the workspace; a folder that is not there is an empty one
    std::string at;    // absolute
    bool writable = true;
  };
  std::vector<Mount> mounts;
};

// Services of a contract: programs beside a check (a database, an HTTP server) that run while it
// does, in one network with it, and are gone afterwards.  Which of them a check needs, and in what
// order they start.  Parsing: contract_parser.cc.  Running: worker/services.

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

// Bytes kept of each stream of its output, and of its readiness command's, for each check.
inline constexpr std::size_t kServiceOutputBytes = std::size_t{1} << 20;
inline constexpr std::size_t kReadyOutputBytes = std::size_t{64} << 10;

struct Check;

// Which services run beside a check, as indices into `services`: those it names, all where it names
// none by silence, and what they depend on; each behind what it depends on, else as they are
// written.  Requires: names are known and no dependency is a circle (the parser sees to it).
std::vector<std::size_t> services_of(const std::vector<Service>& services, const Check& check);

// The part of the network that a phase may reach (R049, R074, R098): nothing, everything, or the
// places of an allow-list, through a filtering proxy.  Pure; any thread.

// One entry of an allow-list: "packages.example:443", "*.example.org:80", "10.1.2.3:3128",
// "[fd00::1]:80".
struct AllowedPlace {
  NetHost host;
  bool below = false;  // "*.": every name below `host`, not itself
  std::uint16_t port = 0;
};
// kInvalid: not in the one spelling an entry may have (lower case, no trailing dot, with a port).
Result<AllowedPlace> parse_allowed_place(std::string_view text);
bool is_allowed_place(std::string_view text);

struct NetworkAccess {
  bool open = false;               // the host's network, unfiltered
  std::vector<std::string> allow;  // entries as above; empty when `open`
  bool any() const { return open || !allow.empty(); }
  bool filtered() const { return !open && !allow.empty(); }
  friend bool operator==(const NetworkAccess&, const NetworkAccess&) = default;
};

// The places that both together may reach.
NetworkAccess joined(const NetworkAccess& a, const NetworkAccess& b);

// "none", "all" or the entries, for people.
std::string describe(const NetworkAccess& access);

// An image that a contract does not name but says how to make: a Dockerfile and the files it
// copies.  The digest of its parts is its name wherever an image's name may be, as
// `proctor-build@sha256:DIGEST`: workers find by it what they have built already.

struct ReferencedFile;

inline constexpr const char* kBuiltImage = "proctor-build";
// Names that a build's own files have among those that COPY finds; no file of a contract has them.
inline constexpr const char* kBuildDockerfile = ".proctor-dockerfile";
inline constexpr const char* kBuildIgnores = ".dockerignore";

struct ImageBuild {
  std::string dockerfile;                        // a ReferencedFile's path
  std::vector<std::string> files;                // likewise: all that COPY finds
  std::map<std::string, std::string> arguments;  // ARG
  bool network = false;                          // of its RUN commands: the engine's, or none
  std::chrono::milliseconds timeout{1'800'000};
  std::vector<std::string> bases{};  // images of its FROM lines, by digest
  Digest inputs{};                   // of all of the above but the timeout
  std::string reference() const { return std::string(kBuiltImage) + "@sha256:" + inputs.hex(); }
  // The name of a file to COPY: its path beside the Dockerfile.
  // Requires: it is one of `files`.
  std::string name_of(const std::string& file) const;
};

// Requires: `files` has the Dockerfile and all of `build.files`.
Digest inputs_of(const ImageBuild& build, const std::vector<ReferencedFile>& files);

// The executable contract C = (R, E, Setup, Oracle, Policy) (R012-R041) as data.
// Parsing and validation: campaign_parser.h.  Identity: contract_digest.h.

// R: what is worked on.
struct Repository {
  std::string source;  // path, URL or .bundle; a relative path is relative to the contract's folder
  std::string commit;  // full id, 40 (SHA-1) or 64 hex digits
  std::string tree;    // expected tree id; empty: the commit's own (R047)
  bool submodules = false;
};

// A folder of the host that the sandbox shows read-only: a Go or Rust installation, a virtual
// environment.  `at` is where the sandbox shows it (default: the same path).
struct Toolchain {
  std::string path;
  std::string at;
};

// E: where it is worked on (R013).
struct Environment {
  enum class Sandbox { kAuto, kBubblewrap, kDocker, kNull };
  Sandbox sandbox = Sandbox::kAuto;  // kAuto: docker when an image is named, else bubblewrap
  // name@sha256:... or sha256:...; empty without Docker; of one that is built: build->reference().
  std::string image;
  std::map<std::string, std::string> variables;
  std::string locale = "C.UTF-8";
  std::string timezone = "UTC";
  std::vector<std::string> secrets;  // names of the worker's environment variables, never values
  std::vector<Toolchain> toolchains;
  std::optional<ImageBuild> build{};
};
constexpr auto words(Environment::Sandbox) {
  using enum Environment::Sandbox;
  return std::to_array<Word<Environment::Sandbox>>(
      {{"auto", kAuto}, {"bubblewrap", kBubblewrap}, {"docker", kDocker}, {"none", kNull}});
}

// One step of Setup: runs once in each fresh workspace (R014).
struct SetupStep {
  std::string command;  // for /bin/sh -c
  std::chrono::milliseconds timeout{600'000};
  NetworkAccess network{};
  // May what it makes of the untouched snapshot be kept for other runs of this host?  It then sees
  // the seed 0, which is no run's own.
  bool cache = true;
  // Globs: all that it reads of the workspace; a promise.  Where all steps make one and a patch
  // touches nothing of it, acceptance may use what was kept.  Empty: no promise.
  std::vector<std::string> inputs{};
};

enum class CheckKind { kBuild, kStatic, kUnit, kIntegration, kScript };
// Which gate of the rubric a check feeds (R137-R140).
// kMaint is none: a check that a rubric rates a patch by, which decides nothing.
enum class Gate { kPatch, kBuild, kFunctional, kSafety, kMaint };
enum class ResultReader { kExitCode, kJunit, kTap };
constexpr auto words(CheckKind) {
  return std::to_array<Word<CheckKind>>({{"build", CheckKind::kBuild},
                                         {"static", CheckKind::kStatic},
                                         {"unit", CheckKind::kUnit},
                                         {"integration", CheckKind::kIntegration},
                                         {"script", CheckKind::kScript}});
}
constexpr auto words(Gate) {
  return std::to_array<Word<Gate>>({{"patch", Gate::kPatch},
                                    {"build", Gate::kBuild},
                                    {"functional", Gate::kFunctional},
                                    {"safety", Gate::kSafety},
                                    {"maint", Gate::kMaint}});
}
constexpr auto words(ResultReader) {
  return std::to_array<Word<ResultReader>>({{"exit_code", ResultReader::kExitCode},
                                            {"junit", ResultReader::kJunit},
                                            {"tap", ResultReader::kTap}});
}

// One acceptance check (R048).  Checks run in order.
struct Check {
  std::string id;
  std::string command;  // for /bin/sh -c, in the workspace; of a container: its words, for people
  std::optional<ProgramContainer> container;
  CheckKind kind = CheckKind::kUnit;
  Gate gate = Gate::kFunctional;
  std::chrono::milliseconds timeout{600'000};
  ResultReader reader = ResultReader::kExitCode;
  std::string
      result_file;  // for kJunit and kTap: where the check writes it, $PROCTOR_RESULTS/<name>
  // Test ids that must be present and pass; all others may fail only if `others_may_fail`.
  std::vector<std::string> fail_to_pass;
  std::vector<std::string> pass_to_pass;
  bool others_may_fail = false;
  // Names of the services it needs; absent: all that the contract has.
  std::optional<std::vector<std::string>> services{};
};

// The kernel that serves the system calls of agent, setup, checks and services: the host's, or one
// in user space between them and the host's (gVisor), for hosts that must not share theirs.
enum class Isolation { kKernel, kUserspace };
constexpr auto words(Isolation) {
  return std::to_array<Word<Isolation>>(
      {{"kernel", Isolation::kKernel}, {"userspace", Isolation::kUserspace}});
}
constexpr Isolation stronger(Isolation a, Isolation b) {
  return a == Isolation::kUserspace ? a : b;
}

// Policy (R017, R024): what the agent and the checks may do.
struct Policy {
  NetworkAccess agent_network, check_network;  // setup has its own
  std::vector<std::string> writable;           // globs the agent may change; empty: everything
  std::vector<std::string> protected_;  // globs put back before acceptance; changes are violations
  // Globs of new files that reach acceptance though git ignores them; empty: none of those does.
  std::vector<std::string> ignored;
  std::chrono::milliseconds wall{1'800'000};  // of the agent (R106)
  std::uint64_t memory_bytes = std::uint64_t{2} << 30;
  std::uint32_t processes = 512;
  std::uint64_t disk_bytes = std::uint64_t{2} << 30;
  std::chrono::milliseconds cpu{0};  // 0: no limit beside wall
  double cpus = 0;                   // share; 0: no limit
  Isolation isolation = Isolation::kKernel;
  // Patterns (RE2) of commands that no output of an agent may hold and no process may execute, each
  // matched on one line (R099, R102).
  std::vector<std::string> denied_commands;
};

// How a patch that passes all gates is rated (R141-R144): s = sum of weight times dimension.
struct Rubric {
  std::uint64_t lambda = 1'000'000;    // millionths, above 0: how fast a larger change loses
  std::uint64_t lines = 0, files = 0;  // the envelope: touched lines and changed files; above 0
  std::vector<std::string> maint;      // ids of checks, whose gate is then kMaint
};

// Caps of one run (R106, R159).  Which one holds where several are given: caps.h.
struct Caps {
  std::optional<MicroUsd> usd;
  std::optional<std::uint64_t> tokens;
  std::optional<std::uint64_t> tool_calls;
  std::optional<std::uint64_t> failed_acceptance_cycles;
  std::optional<std::chrono::milliseconds> wall;
  std::optional<std::uint64_t> model_calls{};
  std::optional<std::uint64_t> dependency_installs{};
  std::optional<std::chrono::milliseconds> active{};  // time inside tools
  std::optional<std::uint64_t> calls_per_minute{};    // model and tool calls; a rate, not a total
  friend bool operator==(const Caps&, const Caps&) = default;
};

// A file that the contract refers to (script, patch, protected test): part of its identity.
struct ReferencedFile {
  std::string path;           // relative to the contract's folder, safe (files.h)
  std::uint32_t mode = 0644;  // or 0755, nothing else
  std::string bytes;
};

// Protected acceptance files: placed into the fresh workspace after the patch.
struct AcceptanceFile {
  std::string from;  // a ReferencedFile's path
  std::string to;    // in the workspace
};

// Where a contract was read from, for diagnostics that come later (do its repository and commit
// exist?).  No part of its identity; a contract out of a bundle has none.
struct Origin {
  std::string file;                // as diagnostics name it
  std::filesystem::path folder;    // absolute: relative repository sources resolve against it
  std::map<std::string, Mark> at;  // by field: "repository.commit", "caps.usd", ...
};

// The developer's own tests, which an agent may have run by the worker's tools; never acceptance.
struct TestSuite {
  std::string name;
  std::string command;  // for /bin/sh -c in the workspace
};

struct Contract {
  std::string id;
  std::string title;
  std::string briefing;  // what the agent is told (R067)
  std::string type;      // bug_fix, refactor, feature, dependency_upgrade, ... (R172)
  std::map<std::string, std::string> strata;  // language, runtime, dependencies, type, and others
  Repository repository;
  Environment environment;
  std::vector<SetupStep> setup;
  std::vector<Service> services;
  std::vector<Check> checks;
  std::vector<TestSuite> suites;  // `tools.tests`
  std::vector<AcceptanceFile> acceptance_files;
  Policy policy;
  bool no_build = false;  // it has no build or static check, and says so (R138)
  std::optional<Rubric> rubric;
  // Acceptance of a patch that passes is repeated so often, and every repetition has to pass
  // (R023, R133).  A contract may ask for more than its campaign, never for less.
  std::uint32_t rerun = 0;
  std::uint32_t rerun_in(std::uint32_t of_campaign) const { return std::max(of_campaign, rerun); }
  Caps caps;
  std::string reference_patch;  // a ReferencedFile's path; empty: there is none
  std::string single_shot;      // likewise: what a model is asked (common/answers/single_shot.h)
  std::vector<ReferencedFile>
      files;  // ordered by path; setup and checks find them at $PROCTOR_CONTRACT
  // SHA-256 of the canonical form with the digest of every file: any change is a new version
  // (R041).
  Digest digest;
  Origin origin;
};
}  // namespace proctor
