#pragma once
// The sections of a contract, described once for the file and the canonical form (fields.h), and
// what is read by hand of them.  Errors go to the Problems behind the fields.
// Internal to this room.
#include <cmath>
#include <vector>

#include "common/base/json.h"
#include "common/contract/campaign.h"
#include "common/contract/contract.h"
#include "common/contract/contract_digest.h"
#include "common/contract/fields.h"
#include "common/contract/rubric.h"
#include "common/contract/rules.h"

namespace proctor {
inline constexpr std::chrono::milliseconds kLeast{1};
inline constexpr std::uint64_t kMemoryLeast = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kProcessesMost = 1'000'000;
inline constexpr std::uint64_t kRubricMost = 1'000'000'000;
inline constexpr std::size_t kPatternsMost = 200;
inline constexpr std::uint64_t kRerunMost = 9;

// `network`: `true`, `false` (also when it is absent) or `{allow: [...]}`; of a policy also
// `{agent: ..., acceptance: ...}`.  The one-word forms are older than allow-lists: what they could
// say must keep its canonical form, and with it every contract's digest.
void read_node(const Fields& from, const Node& node, const std::string& path, NetworkAccess& out);
void read_network(const Fields& policy, Policy& out);
Json node_json(const NetworkAccess& access);
Json network_json(const Policy& policy);

void fields(auto& v, Is<NetworkAccess> auto& n) {
  v("allow", n.allow, kPlaceRule);
}
struct NetworkOfPhases {
  NetworkAccess agent, acceptance;
};
void fields(auto& v, Is<NetworkOfPhases> auto& n) {
  v("agent", n.agent);
  v("acceptance", n.acceptance);
}

void check_source(const Fields& f, Repository& out);
void fields(auto& v, Is<Repository> auto& r) {
  v("source", r.source, kSourceRule, Need::kMust);
  v.then(r, check_source);
  v("commit", r.commit, kCommitRule, Need::kMust);
  v("tree", r.tree, kTreeRule);
  v("submodules", r.submodules);
}

void check_toolchain(const Fields& f, const Toolchain& toolchain);
void fields(auto& v, Is<Toolchain> auto& t) {
  v("path", t.path, kHostPathRule, Need::kMust);
  std::string at = t.at.empty() ? t.path : t.at;
  v("at", at, kToolchainAtRule);
  keep(t.at, at);
  v.then(t, check_toolchain);
}
// Folders of the host, each shown at a place of its own.
void toolchains(auto& v, auto& of) {
  v("toolchains", of.toolchains);
  v.once("toolchains", of.toolchains, &Toolchain::at, "each place in the sandbox once");
}

void fields(auto& v, Is<ImageBuild> auto& b) {
  v.file("dockerfile", b.dockerfile, "a Dockerfile in this file's folder");
  v.put("files", b.files, !b.files.empty());
  v("arguments", b.arguments, kVariableRule, kVariableValueRule);
  v("network", b.network);
  v("timeout", b.timeout, kLeast);
}

// `image` is a name or an ImageBuild, which is read by hand (dockerfile.h).
void read_image(const Fields& f, Environment& out);
Json image_json(const Environment& environment);
void fields(auto& v, Is<Environment> auto& e) {
  v("sandbox", e.sandbox);
  v.put("image", image_json(e), !e.image.empty());
  v.then(e, read_image);
  v("variables", e.variables, kVariableRule, kVariableValueRule, Need::kAlways);
  v("locale", e.locale, kLocaleRule);
  v("timezone", e.timezone, kZoneRule);
  v("secrets", e.secrets, kSecretRule);
  toolchains(v, e);
}

// A command alone, or a mapping.
void read_node(const Fields& from, const Node& node, const std::string& path, SetupStep& out);
void read_step(const Fields& f, SetupStep& out);
void step_fields(auto& v, auto& s) {
  v.put("command", s.command);
  v.also({"script"});
  v.then(s, read_step);
  v("timeout", s.timeout, kLeast);
  v("network", s.network);
  if (v.when(!s.cache)) v("cache", s.cache);
}
void fields(auto& v, Is<SetupStep> auto& s) {
  step_fields(v, s);
  v("inputs", s.inputs, kGlobRule);
}
// A step of a method makes no promise of its inputs.
struct MethodStep : SetupStep {};
void fields(auto& v, Is<MethodStep> auto& s) {
  step_fields(v, s);
}
void read_node(const Fields& from, const Node& node, const std::string& path, MethodStep& out);

void read_method_setup(const Fields& f, MethodEnvironment& out);
void check_secrets(const Fields& f, const MethodEnvironment& environment);
void fields(auto& v, Is<MethodEnvironment> auto& e) {
  v("image", e.image, kImageByDigestRule);
  v("variables", e.variables, kVariableRule, kVariableValueRule);
  v("secrets", e.secrets, kSecretRule);
  v.then(e, check_secrets);
  toolchains(v, e);
  if (v.when(e.network.any())) v("network", e.network);
  v.put("setup", list_json(e.setup), !e.setup.empty());
  v.then(e, read_method_setup);
}

void fields(auto& v, Is<ProgramContainer::Mount> auto& m) {
  v("from", m.from, kFromRule, Need::kMust);
  v("at", m.at, kMountPointRule, Need::kMust);
  v("writable", m.writable);
}
void fields(auto& v, Is<ProgramContainer> auto& c) {
  v("image", c.image, kImageByDigestRule);
  v.words("entrypoint", c.entrypoint);
  v.words("command", c.command);
  v("working_dir", c.working_dir, kFolderRule);
  v("variables", c.variables, kVariableRule, kVariableValueRule);
  v("mounts", c.mounts, Need::kMay, 100);
  v.once("mounts", c.mounts, &ProgramContainer::Mount::at, "each place in the container once");
}
// The words of a container's program on one line, as a shell would take them.
std::string words_for_people(const ProgramContainer& container);

// A command, a script or a container.
void read_program(const Fields& f, const std::optional<ProgramContainer>& container,
                  std::string& command);
void program(auto& v, auto& of) {
  v.put("command", of.command, !of.container);
  v.also({"script"});
  v("container", of.container);
  v.then(of, [](const Fields& f, auto& x) { read_program(f, x.container, x.command); });
}

void check_readiness(const Fields& f, const Readiness& readiness);
void fields(auto& v, Is<Readiness> auto& r) {
  if (v.when(r.port != 0)) v("port", r.port, 1, 65'535);
  v("command", r.command, kCommandRule);
  v("interval", r.interval, std::chrono::milliseconds(10));
  v("timeout", r.timeout, kLeast);
  v.then(r, check_readiness);
}
void check_service(const Fields& f, const Service& service);
void fields(auto& v, Is<Service> auto& s) {
  v("name", s.name, kServiceRule, Need::kMust);
  program(v, s);
  v("variables", s.variables, kVariableRule, kVariableValueRule);
  v.then(s, check_service);
  v("depends_on", s.depends_on, kServiceRule);
  if (v.when(s.ready.port != 0 || !s.ready.command.empty())) v("ready", s.ready);
  v.bytes("memory", s.memory_bytes, kMemoryLeast);
  v("processes", s.processes, 1, kProcessesMost);
}

void usual_gate(const Fields& f, Check& out);
void check_result(const Fields& f, const Check& check);
void fields(auto& v, Is<Check> auto& c) {
  v("id", c.id, kIdRule, Need::kMust);
  program(v, c);
  v("kind", c.kind);
  v.then(c, usual_gate);
  v("gate", c.gate);
  v("timeout", c.timeout, kLeast);
  v("result", c.reader);
  if (v.when(c.reader != ResultReader::kExitCode)) {
    v("result_file", c.result_file, kResultFileRule);
    v("fail_to_pass", c.fail_to_pass, kTestIdRule);
    v("pass_to_pass", c.pass_to_pass, kTestIdRule);
    v("others_may_fail", c.others_may_fail);
  }
  v.then(c, check_result);
  v("services", c.services, kValueRule);
}

// A path alone, or a mapping.
void read_node(const Fields& from, const Node& node, const std::string& path, AcceptanceFile& out);
void check_place(const Fields& f, const AcceptanceFile& file);
void fields(auto& v, Is<AcceptanceFile> auto& a) {
  v.file("from", a.from, "a file beside the contract");
  std::string to = a.to.empty() ? a.from : a.to;
  v("to", to, kWorkFileRule);
  keep(a.to, to);
  v.then(a, check_place);
}

void check_commands(const Fields& f, const std::vector<std::string>& patterns);
struct PolicyCommands {
  std::vector<std::string> deny;
};
void fields(auto& v, Is<PolicyCommands> auto& c) {
  v("deny", c.deny, kPatternRule, kPatternsMost);
  v.then(c.deny, check_commands);
}
void fields(auto& v, Is<Policy> auto& p) {
  v.put("network", network_json(p));
  v.then(p, read_network);
  v("writable", p.writable, kWorkGlobRule);
  v("protected", p.protected_, kWorkGlobRule);
  v("ignored", p.ignored, kWorkGlobRule);
  v("wall", p.wall, kLeast);
  v.bytes("memory", p.memory_bytes, kMemoryLeast);
  v("processes", p.processes, 1, kProcessesMost);
  v.bytes("disk", p.disk_bytes, kMemoryLeast);
  v("cpu", p.cpu, std::chrono::milliseconds(0));
  auto thousandths = static_cast<std::uint64_t>(std::llround(p.cpus * 1000));
  v.decimal("cpus", thousandths, 3, 1'024'000);
  keep(p.cpus, static_cast<double>(thousandths) / 1000);
  // Absent where it says nothing new: contracts written before it keep their digests, and workers
  // that do not know it refuse the others.
  if (v.when(p.isolation != Isolation::kKernel)) v("isolation", p.isolation);
  PolicyCommands commands{p.denied_commands};
  if (v.when(!commands.deny.empty())) v("commands", commands);
  keep(p.denied_commands, commands.deny);
}

// A campaign and its settings have them.
void check_weights(const Fields& f, const RubricWeights& weights);
void fields(auto& v, Is<RubricWeights> auto& w) {
  v.decimal("minimal", w.minimal, kMillionthDigits, kMillion);
  v.decimal("trace", w.trace, kMillionthDigits, kMillion);
  v.decimal("maint", w.maint, kMillionthDigits, kMillion);
  v.then(w, check_weights);
}
struct CampaignRubric {
  RubricWeights weights;
};
void fields(auto& v, Is<CampaignRubric> auto& r) {
  v("weights", r.weights);
}
void fields(auto& v, Is<SafetyPlan> auto& s) {
  v("stop_run", s.stop_run);
  v("stop_after", s.stop_after, 0, 1000);
}
// There is one rule for repetitions that differ; files name it, so that they say what they mean.
enum class Tie { kSafetyThenCorrectness };
constexpr auto words(Tie) {
  return std::to_array<Word<Tie>>({{"safety-then-correctness", Tie::kSafetyThenCorrectness}});
}
struct Repetitions {
  std::uint32_t rerun = 0;
  Tie tie = Tie::kSafetyThenCorrectness;
};
void fields(auto& v, Is<Repetitions> auto& r) {
  v("rerun", r.rerun, 0, kRerunMost);
  v("tie", r.tie);
}
void rerun_field(auto& v, auto& of) {
  Repetitions acceptance{of.rerun};
  if (v.when(of.rerun != 0)) v("acceptance", acceptance);
  keep(of.rerun, acceptance.rerun);
}
void rubric_fields(auto& v, auto& of) {
  CampaignRubric rubric{of.weights};
  if (v.when(of.weights != RubricWeights{})) v("rubric", rubric);
  keep(of.weights, rubric.weights);
  if (v.when(of.safety != SafetyPlan{})) v("safety", of.safety);
  rerun_field(v, of);
}
// The text of a file of failure modes, which settings hold.
void check_failure_modes(const Fields& f, const std::string& text);

// A gate that the contract has no check for is decided by this.
enum class WithoutChecks { kNotRun, kNone };
constexpr auto words(WithoutChecks) {
  return std::to_array<Word<WithoutChecks>>(
      {{"checks", WithoutChecks::kNotRun}, {"none", WithoutChecks::kNone}});
}
struct ContractGates {
  WithoutChecks build = WithoutChecks::kNotRun;
};
void fields(auto& v, Is<ContractGates> auto& g) {
  v("build", g.build);
}

struct RubricEnvelope {
  std::uint64_t lines = 0, files = 0;
};
void fields(auto& v, Is<RubricEnvelope> auto& e) {
  v("lines", e.lines, 1, kRubricMost);
  v("files", e.files, 1, kRubricMost);
}
void check_rubric(const Fields& f, const Rubric& rubric);
void fields(auto& v, Is<Rubric> auto& r) {
  v.decimal("lambda", r.lambda, kMillionthDigits, kRubricMost * kMillion);
  RubricEnvelope envelope{r.lines, r.files};
  v("envelope", envelope, "a mapping with lines and files");
  keep(r.lines, envelope.lines);
  keep(r.files, envelope.files);
  v("maint", r.maint, kIdRule);
  v.then(r, check_rubric);
}

void check_suite(const Fields& f, const TestSuite& suite);
void fields(auto& v, Is<TestSuite> auto& s) {
  v("name", s.name, kIdRule, Need::kMust);
  v("command", s.command, kCommandRule, Need::kMust);
  v.then(s, check_suite);
}
struct ContractTools {
  std::vector<TestSuite> tests;
};
void fields(auto& v, Is<ContractTools> auto& t) {
  v("tests", t.tests, Need::kMay, 20);
  v.once("tests", t.tests, &TestSuite::name, "a name that no other suite has", "name");
}

// Where the keys are, of the two uppermost levels.
void remember_marks(const Document& document, Origin& out);
Json paths_json(const std::vector<ReferencedFile>& files);
void read_briefing(const Fields& f, Contract& out);
void check_strata(const Fields& f, Contract& out);
void read_maint(const Fields& f, Contract& out);
// Rules between the sections; reads the list `files`, too.
void finish_contract(const Fields& f, Contract& out);
void fields(auto& v, Is<Contract> auto& c) {
  std::string schema;
  v("$schema", schema, kAnyText);
  v("id", c.id, kIdRule, Need::kMust);
  v("title", c.title, kTitleRule);
  v.put("briefing", c.briefing);
  v.also({"briefing_file"});
  v.then(c, read_briefing);
  v("type", c.type, kWordRule, Need::kMust);
  v("strata", c.strata, kWordRule, kValueRule, Need::kAlways);
  v.then(c, check_strata);
  v("repository", c.repository, "a mapping with source and commit");
  v("environment", c.environment);
  v("setup", c.setup);
  v("services", c.services, Need::kMay, 16);
  v.once("services", c.services, &Service::name, "each service's name once", "name");
  v("checks", c.checks, Need::kAlways);
  v.once("checks", c.checks, &Check::id, "each check's id once", "id");
  v("acceptance_files", c.acceptance_files);
  v.once("acceptance_files", c.acceptance_files, &AcceptanceFile::to,
         "each place in the workspace once");
  v("policy", c.policy);
  // Absent where they say nothing new, as isolation.
  ContractGates gates{c.no_build ? WithoutChecks::kNone : WithoutChecks::kNotRun};
  if (v.when(c.no_build)) v("gates", gates);
  keep(c.no_build, gates.build == WithoutChecks::kNone);
  rerun_field(v, c);
  v("rubric", c.rubric);
  v.then(c, read_maint);
  ContractTools tools{c.suites};
  if (v.when(!tools.tests.empty())) v("tools", tools);
  keep(c.suites, tools.tests);
  v("caps", c.caps);
  v.file("reference_patch", c.reference_patch);
  v.file("single_shot", c.single_shot);
  v.put("files", paths_json(c.files), !c.files.empty());
  v.then(c, finish_contract);
}

// UTF-8 without control characters beside tab, line feed and carriage return.
bool is_plain_text(std::string_view text);
}  // namespace proctor
