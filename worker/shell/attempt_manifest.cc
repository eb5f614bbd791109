// AttemptRun: the beginning of a run directory, manifest.json (R043-R047, R066, R070-R072, R077).
#include <algorithm>

#include "common/base/system_clock.h"
#include "common/base/version.h"
#include "common/trace/manifest.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/host_facts.h"
#include "worker/shell/served_campaigns.h"
#include "worker/tools/tool_loop.h"

namespace proctor {
namespace {

// Files at the root of a tree that pin what it depends on (R044).
constexpr const char* kLockfiles[] = {"Cargo.lock",        "Gemfile.lock",   "Pipfile.lock",
                                      "composer.lock",     "go.sum",         "gradle.lockfile",
                                      "package-lock.json", "pnpm-lock.yaml", "poetry.lock",
                                      "requirements.txt",  "uv.lock",        "yarn.lock"};
constexpr std::size_t kLockfileBytes = std::size_t{64} << 20;

std::vector<ManifestLockfile> lockfiles_of(const fs::path& tree) {
  std::vector<ManifestLockfile> out;
  for (const char* name : kLockfiles) {
    std::error_code error;
    if (!fs::is_regular_file(fs::symlink_status(tree / name, error))) continue;
    const Result<std::string> bytes = read_file(tree / name, kLockfileBytes);
    if (bytes.ok()) out.push_back({name, sha256(*bytes)});
  }
  return out;
}

std::string_view name_of(Method::Kind kind) {
  switch (kind) {
    case Method::Kind::kNoop:
      return "noop";
    case Method::Kind::kReference:
      return "reference";
    case Method::Kind::kCommand:
      return "command";
    case Method::Kind::kSingleShot:
      return "single_shot";
    case Method::Kind::kToolLoop:
      return "tool_loop";
  }
  PROCTOR_ASSERT(false);
}

std::uint64_t ms(std::chrono::milliseconds d) {
  return static_cast<std::uint64_t>(d.count());
}

// Nothing where the two older fields say it all.
std::map<std::string, std::vector<std::string>> allowed_places(
    const Contract& c, const std::vector<SetupStep>& method_setup, const NetworkAccess& agent) {
  std::map<std::string, std::vector<std::string>> out = {
      {"setup", {}}, {"agent", {}}, {"acceptance", {}}};
  bool lists = agent != c.policy.check_network;
  const auto add = [&](const char* phase, const NetworkAccess& access) {
    lists = lists || access.filtered();
    std::vector<std::string>& places = out[phase];
    for (const std::string& place : access.open ? std::vector<std::string>{"*"} : access.allow)
      if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  };
  for (const auto* setup : {&c.setup, &method_setup})
    for (const SetupStep& step : *setup) add("setup", step.network);
  add("agent", agent);
  add("acceptance", c.policy.check_network);
  if (!lists) out.clear();
  return out;
}

}  // namespace

Json AttemptRun::manifest() const {
  const Contract& c = contract();
  ManifestInputs m;
  m.tool_version = kVersion;
  m.campaign = id_of(input_.campaign);
  m.run_name = input_.assignment.run_name;
  m.task = c.id;
  m.method = input_.method->name;
  m.attempt = input_.assignment.attempt;
  m.replicate = input_.assignment.replicate;
  m.contract = c.digest;
  m.method_digest = input_.method->digest;
  m.cost_model = input_.settings->cost_model.digest;
  m.cost_model_version = input_.settings->cost_model.version;
  m.source = c.repository.source;
  m.commit = snapshot_.commit;
  m.tree_expected = c.repository.tree;
  m.tree_observed = snapshot_.tree;
  for (const auto& [path, commit] : snapshot_.submodules) m.submodules.push_back({path, commit});
  if (!snapshot_.tree_dir.empty()) m.lockfiles = lockfiles_of(snapshot_.tree_dir);
  if (engine_ != nullptr) {
    m.sandbox = to_string(engine_->kind());
    m.enforcement = engine_->enforcement();
    if (m.enforcement.contains("users") &&
        (shown_to() != ShownTo::kOwnUser || !tools_.store.has_own_users()))
      m.enforcement["users"] = "one";
    if (tools_.store.bounds_disks() && 0 < c.policy.disk_bytes)
      m.enforcement["disk"] = "filesystem";
  } else {
    m.sandbox = to_string(wanted_kind(c.environment));
  }
  m.image = c.environment.image;
  if (c.environment.build) m.image_inputs = c.environment.build->inputs.hex();
  m.variables = c.environment.variables;
  m.secrets = c.environment.secrets;
  m.locale = c.environment.locale;
  m.timezone = c.environment.timezone;
  for (const Toolchain& t : c.environment.toolchains) {
    m.toolchains.push_back({t.path, t.at.empty() ? t.path : t.at, toolchain_version(t.path)});
  }
  m.setup_cache = setup_cache();
  m.own = manifest_method();
  // An image says by its digest what is in it; without one the host's programs are shown.
  if (c.environment.image.empty()) m.package_managers = host_packages();
  for (const SetupStep& step : c.setup) {
    m.setup.push_back(step.command);
    m.network_setup = m.network_setup || step.network.any();
  }
  for (const SetupStep& step : input_.method->environment.setup)
    m.network_setup = m.network_setup || step.network.any();
  m.agent = input_.method->kind == Method::Kind::kCommand
                ? input_.method->command
                : std::string(name_of(input_.method->kind));
  if (!input_.method->call.model.empty()) m.agent += " " + input_.method->call.model;
  if (input_.method->kind == Method::Kind::kToolLoop)
    m.agent += " " + input_.method->gateway->model().name + ", prompt " +
               std::string(ToolLoop::kPromptVersion);
  for (const Check& check : c.checks) m.acceptance.push_back({check.id, check.command});
  m.limits = {{"wall_ms", ms(agent_wall())},
              {"memory_bytes", c.policy.memory_bytes},
              {"processes", c.policy.processes},
              {"disk_bytes", c.policy.disk_bytes},
              {"cpu_ms", ms(c.policy.cpu)},
              {"usd_micros", static_cast<std::uint64_t>(input_.assignment.ask.micros())}};
  const NetworkAccess agent = agent_network();
  m.network_agent = agent.any() || c.policy.check_network.any();
  m.network_allowed = allowed_places(c, input_.method->environment.setup, agent);
  m.seed = input_.settings->seed;
  m.run_seed = input_.assignment.seed;
  m.seed_deviation = input_.settings->seed_deviation;
  m.started_ms = out_.started_ms;
  static const HostFacts host = host_facts();  // of a machine, which stays the same
  m.cpu_class = host.cpu_class;
  m.memory_class = host.memory_class;
  m.kernel = host.kernel;
  m.os = host.os;
  return make_manifest(m);
}

Status AttemptRun::write_manifest() {
  Result<RunRecorder> recorder = RunRecorder::create(run_dir());
  if (!recorder.ok()) return Error{Errc::kUnavailable, recorder.error().detail};
  recorder_ = std::make_unique<RunRecorder>(std::move(recorder).value());
  look_for_layer();
  look_for_method_layer();
  const Json document = manifest();
  if (const Status written = recorder_->write_manifest(document); !written.ok()) {
    return Error{Errc::kUnavailable, written.error().detail};
  }
  // Without a snapshot, or with another one than named, the lifecycle knows a better reason.
  const std::string& expected = contract().repository.tree;
  if (snapshot_.tree.empty() || (!expected.empty() && expected != snapshot_.tree))
    return ok_status();
  return check_manifest(document);
}

}  // namespace proctor
