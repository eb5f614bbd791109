#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/json_fields.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "common/contract/contract.h"
#include "common/trace/judgement.h"
#include "common/trace/manifest.h"
#include "worker/agent/agent.h"
#include "worker/sandbox/host_lack.h"
#include "worker/sandbox/sandbox.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/host_facts.h"
#include "worker/shell/run_events.h"
#include "worker/shell/sandbox_dress.h"
#include "worker/shell/setup_key.h"
#include "worker/tools/tool_loop.h"
#include "worker/workspace/copy_tree.h"
#include "worker/workspace/snapshot.h"

namespace proctor {
// Behind the number of a step: the files of its streams.
inline constexpr const char* kSetupOut = ".stdout";
inline constexpr const char* kSetupErr = ".stderr";
constexpr const char* kMethodSetupDir = "setup-method";

// A layer's record of a step that made it, so that whoever uses it is charged as its maker was.
struct StepRecord {
  ExecOutcome outcome{};
};
void fields(auto& v, Is<StepRecord> auto& r) {
  constexpr Rule kTime{.older_lack = true, .natural = true};
  v("wall_ms", r.outcome.wall, kTime);
  v("cpu_ms", r.outcome.cpu, kTime);
  v("memory_peak", r.outcome.memory_peak, kLater);
  v("stdout_bytes", r.outcome.stdout_bytes, kLater);
  v("stderr_bytes", r.outcome.stderr_bytes, kLater);
}

// Fine where there is no such file.
Status copy_output(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  if (!fs::exists(from, ec)) return ok_status();
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, ec);
  if (ec) return Error{Errc::kUnavailable, "copy " + from.string() + ": " + ec.message()};
  return ok_status();
}

// How long another run may take to make what these steps make.
std::chrono::milliseconds patience(const std::vector<SetupStep>& setup) {
  std::chrono::milliseconds out = std::chrono::minutes(1);
  for (const SetupStep& step : setup) out += step.timeout;
  return out;
}

// The sandbox of a setup, and the host that it sees (setup_key.h).
SetupPlace place_of(const SandboxEngine& engine, const std::vector<Toolchain>& toolchains) {
  SetupPlace out;
  out.sandbox = to_string(engine.kind());
  if (const auto limits = engine.enforcement(); limits.contains("kernel"))
    out.sandbox += "+" + limits.at("kernel");
  std::vector<fs::path> paths;
  for (const Toolchain& t : toolchains) paths.emplace_back(t.path);
  if (!runs_images(engine.kind()) || !paths.empty()) out.host = shown_host(paths);
  return out;
}

// AttemptRun: the image that a contract does not name but says how to make.

constexpr const char* kImageDir = "setup-image";

// From then on the contract names it by its id, as any other image.
Result<std::optional<ImageFailed>> AttemptRun::have_image() {
  const Contract& given = input_.contract->contract;
  if (!given.environment.build) return std::optional<ImageFailed>();
  PROCTOR_TRY(image_, tools_.images.have(given, watch_.token()));
  if (image_->id.empty()) {
    const std::string said = last_lines(image_->log);
    return std::optional(ImageFailed{given.environment.build->inputs.hex(), image_->failure,
                                     said.empty() ? said : "its build ends: " + said});
  }
  with_image_ = given;
  with_image_->environment.image = image_->id;
  return std::optional<ImageFailed>();
}

// Requires: there is a trace.  The seq of the event; 0: the contract names its image.
std::uint64_t AttemptRun::note_image() {
  if (!image_) return 0;
  const ImageBuild& wanted = *input_.contract->contract.environment.build;
  const bool failed = !image_->failure.empty();
  const std::string log = image_->log + (failed ? image_->failure + "\n" : "");
  if (!log.empty()) {
    const fs::path file = recorder_->dir() / kImageDir / (std::string("0") + kSetupOut);
    Status kept = make_dirs(file.parent_path());
    if (kept.ok()) kept = write_file(file, log, Durability::kLazy, kOpenFile);
    if (!kept.ok() && !broken_) broken_ = Error{Errc::kUnavailable, kept.error().detail};
  }
  return note(failed ? "setup.image.failed" : events::kSetupImage.type, Actor::kHarness,
              events::kSetupImage.json({wanted.inputs, image_->id, image_->built, image_->bases,
                                        wanted.network, image_->took, image_->failure,
                                        log.empty() ? std::nullopt : std::optional(sha256(log))}));
}

// AttemptRun: setup, run in the workspace or taken from what an earlier run of this host kept of it
// (R014).  A run of the untouched snapshot makes the layer, before its agent begins, and then works
// on it as every later one does; acceptance never makes one, and uses it only where setup would do
// again what it did (setup_key.h).

std::optional<ManifestSetupCache> AttemptRun::KeptSetup::in_manifest() const {
  if (!key) return ManifestSetupCache{"off", "", ""};
  return ManifestSetupCache{hit ? "hit" : "miss", key->hex(), hit ? layer->content.hex() : ""};
}

// Held from now on: what the manifest names is what is used.
void AttemptRun::look_for(KeptSetup& setup, const Digest& key) const {
  setup.key = key;
  auto found = tools_.store.layers().find(key);
  setup.hit = found.ok();
  if (found.ok()) setup.layer = std::move(found).value();
}

void AttemptRun::look_for_layer() {
  if (!tools_.setup_cache || engine_ == nullptr || !setup_is_cacheable(contract())) return;
  const Result<ObjectId> content = snapshot_content(snapshot_);
  if (!content.ok()) return;
  SetupPlace place = place_of(*engine_, contract().environment.toolchains);
  place.content = content->hex();
  place.workspace = to_string(tools_.store.kind(shown_to()));
  look_for(setup_, setup_key(contract(), place));
}

void AttemptRun::find_or_make(KeptSetup& setup, const std::vector<SetupStep>& steps) const {
  constexpr std::chrono::milliseconds kPoll{20};
  if (!setup.key || setup.layer) return;
  setup.steps = Json::array();
  const auto until = std::chrono::steady_clock::now() + proctor::patience(steps);
  while (!watch_.token().stop_requested() && std::chrono::steady_clock::now() < until) {
    auto making = tools_.store.layers().begin(*setup.key);
    if (!making.ok() && making.error().code != Errc::kConflict)
      return log::warn("setup is not kept: " + making.error().detail);
    // Whoever had it in his hands may have finished it.
    if (auto found = tools_.store.layers().find(*setup.key); found.ok()) {
      setup.layer = std::move(found).value();
      return;
    }
    if (making.ok()) {
      setup.making.emplace(std::move(making).value());
      return;
    }
    pause_for(kPoll, watch_.token());
  }
}

Status AttemptRun::open_on_layer(Room room) {
  PROCTOR_TRY(workspace_, tools_.store.create(snapshot_, label(to_string(room)), &*setup_.layer,
                                              disk_bound(room), shown_to()));
  layered_ = true;
  PROCTOR_TRY(const fs::path home, writable_dir(home_name(room)));
  std::error_code ec;
  if (fs::is_empty(setup_.layer->home(), ec)) return ok_status();
  CopiedFiles unused;
  return copy_tree(setup_.layer->home(), home, room == Room::kAcceptance ? home_known_ : unused);
}

// In acceptance, after the patch: only where setup cannot tell the difference.
Status AttemptRun::lay_layer_below() {
  PROCTOR_TRY(const std::vector<std::string> touched, workspace_->changed_under({"**"}));
  if (touched.empty()) {
    leave_workspace(MeterPhase::kAcceptance);
    return open_on_layer(Room::kAcceptance);
  }
  if (!setup_reads_none_of(contract(), touched)) return ok_status();
  PROCTOR_TRY(layered_, workspace_->lay_below(*setup_.layer));
  if (!layered_) return ok_status();
  PROCTOR_TRY(const fs::path home, writable_dir(home_name(Room::kAcceptance)));
  return copy_tree(setup_.layer->home(), home, home_known_);
}

AttemptRun::Answer AttemptRun::perform(const RunSetup& c) {
  if (c.room == Room::kAcceptance && c.index == 0 && setup_.layer) {
    if (Status laid = lay_layer_below(); !laid.ok())
      return in_context("kept setup", std::move(laid).error());
  }
  const std::string room(to_string(c.room));
  return perform({contract().setup, c.index, setup_, "setup-" + room, c.room}, layered_);
}

AttemptRun::Answer AttemptRun::perform(const RunMethodSetup& c) {
  const std::vector<SetupStep>& steps = input_.method->environment.setup;
  if (c.index == 0) find_or_make(method_setup_, steps);
  if (method_setup_.layer) method_made_ = method_setup_.layer->work();
  return perform({steps, c.index, method_setup_, kMethodSetupDir}, method_setup_.layer.has_value());
}

AttemptRun::Answer AttemptRun::perform(const SetupRun& run, bool as_kept) {
  PROCTOR_TRY(SetupEnded ended, as_kept ? setup_as_kept(run) : run_setup(run));
  return ended;
}

// Where a step's output lies in the evidence.
fs::path AttemptRun::output_of(const SetupRun& run, const char* stream) const {
  return recorder_->dir() / run.dir / (std::to_string(run.index) + stream);
}

std::uint64_t AttemptRun::note_setup(const SetupRun& run, const ExecOutcome& outcome,
                                     std::string layer) {
  const SetupStep& step = run.step();
  events::CommandRan ran = command_ran(step.command, outcome, step.timeout,
                                       output_of(run, kSetupOut), output_of(run, kSetupErr));
  if (run.room) ran.room = to_string(*run.room);
  ran.step = run.index;
  ran.network = network_payload(step.network);
  ran.layer = std::move(layer);
  return note(run.room ? events::kSetup : events::kMethodSetup, ran);
}

Result<SandboxSpec> AttemptRun::setup_spec(Room room, const std::string& name) {
  const auto seed = setup_is_cacheable(contract()) ? std::optional(kSetupSeed) : std::nullopt;
  PROCTOR_TRY(SandboxSpec spec, spec_for(room, label(name), *engine_, seed));
  PROCTOR_CHECK_OK(show_contract_files(spec, FilesFor::kSetup));
  return spec;
}

Result<SetupEnded> AttemptRun::run_setup(const SetupRun& run) {
  const SetupStep& step = run.step();
  SandboxEngine& engine = run.room || method_engine_ == nullptr ? *engine_ : *method_engine_;
  PROCTOR_TRY(SandboxSpec spec,
              run.room ? setup_spec(*run.room, run.dir) : method_setup_spec(engine));
  PROCTOR_TRY(auto network, give_network(spec, step.network, run.dir));
  if (run.room == Room::kAgent)
    PROCTOR_CHECK_OK(add_secrets(spec.env, contract().environment.secrets));
  PROCTOR_CHECK_OK(make_dirs(recorder_->dir() / run.dir));
  ExecSpec exec;
  exec.command = (run.room ? "" : std::string("cd ") + kAgentAt + " || exit 1\n") + step.command;
  exec.timeout = step.timeout;
  exec.stdout_file = output_of(run, kSetupOut);
  exec.stderr_file = output_of(run, kSetupErr);
  if (!run.room) exec.output_max = limits::kCheckOutputBytes;
  if (run.room) locked_before_ = locks_to_know(engine);  // nothing of this run's lives
  PROCTOR_TRY(const ExecOutcome outcome,
              execute(engine, MeterPhase::kSetup, spec, exec, watch_.token()));
  const std::vector<std::string> refused = network->close();
  network.reset();
  const bool failed = outcome.end != ExecOutcome::End::kExited || outcome.exit_code != 0;
  if (failed && run.room) PROCTOR_CHECK_OK(workspace_->whole(TreeMark::Look::kFolders));
  SetupEnded ended{end_of(outcome), note_setup(run, outcome, "")};
  if (failed) {
    if (run.room) PROCTOR_CHECK_OK(had_all(engine, spec));
    ended.words = failure_words(exec.stderr_file, refused);
    if (run.room == Room::kAcceptance)
      for (const Json& fragment : fragments_of(fragments_, std::string(kSetupCheck), exec))
        note(events::kFragment.type, Actor::kHarness, fragment);
    run.kept.making.reset();
  }
  if (run.kept.making) record_step(run, outcome);
  if (run.kept.making && run.index + 1 == run.steps.size()) PROCTOR_CHECK_OK(keep_setup(run));
  return ended;
}

void AttemptRun::record_step(const SetupRun& run, const ExecOutcome& outcome) const {
  run.kept.steps.push_back(to_json(StepRecord{outcome}));
  for (const char* stream : {kSetupOut, kSetupErr}) {
    const fs::path file = output_of(run, stream);
    const Status kept = copy_output(file, run.kept.making->output() / file.filename());
    if (kept.ok()) continue;
    log::warn("setup is not kept: " + kept.error().detail);
    run.kept.making.reset();
    return;
  }
}

// Charged as if it had run: neither a cap nor a comparison depends on which run came first.
Result<SetupEnded> AttemptRun::setup_as_kept(const SetupRun& run) {
  const SetupLayer& layer = *run.kept.layer;
  if (layer.steps.size() <= run.index)
    return Error{Errc::kUnavailable, "layer " + layer.dir.string() + ": lacks a step"};
  StepRecord recorded;
  // It made the layer, which serves whatever another version wrote of it.
  if (const Status read =
          read_json(recorded, layer.steps[run.index], "step", Errc::kCorrupt, Versions::kAny);
      !read.ok())
    log::warn("layer " + layer.dir.string() + ": " + read.error().detail);
  const ExecOutcome& outcome = recorded.outcome;
  network_used_ = network_used_ || run.step().network.any();
  PROCTOR_CHECK_OK(make_dirs(recorder_->dir() / run.dir));
  for (const char* stream : {kSetupOut, kSetupErr}) {
    const fs::path file = output_of(run, stream);
    PROCTOR_CHECK_OK(copy_output(layer.output() / file.filename(), file));
  }
  meter_.executed(MeterPhase::kSetup, {outcome.wall, outcome.cpu, outcome.memory_peak});
  return SetupEnded{end_of(outcome), note_setup(run, outcome, layer.content.hex())};
}

// The workspace that setup ran in becomes the layer, and this run goes on with another on top of
// it; so does the folder that the method's setup filled.  What a layer cannot hold stays where it
// is, for this run alone.
Status AttemptRun::keep_setup(const SetupRun& run) {
  const SetupMaking making = *std::exchange(run.kept.making, std::nullopt);
  const std::string what = run.room ? "setup" : "the method's setup";
  SetupLayer made;
  fs::path work = method_made_, home;
  if (run.room) {
    const Workspace::Written written = workspace_->written();
    work = written.dir;
    home = home_of(Room::kAgent);
    made.bytes_before = written.bytes_before;
    made.files_before = written.files_before;
  } else {
    PROCTOR_TRY(home, fresh_dir("agent-made-home"));
  }
  const auto not_kept = [&](const Error& why) {
    log::info(what + " is not kept: " + why.detail);
    return ok_status();
  };
  if (const Status can = SetupMaking::keepable(work, home); !can.ok()) return not_kept(can.error());
  const FolderUse use = folder_use(work);
  made.bytes = use.bytes;
  made.files = use.files;
  made.steps = std::exchange(run.kept.steps, Json::array());
  if (run.room) {
    Result<fs::path> given = workspace_->surrender();
    if (!given.ok()) return not_kept(given.error());
    work = std::move(given).value();
  }
  auto kept = making.keep(work, home, std::move(made));
  // The workspace is no more, whatever the code of the error says.
  if (!kept.ok()) return Error{Errc::kUnavailable, "keep " + what + ": " + kept.error().detail};
  const SetupLayer& layer = run.kept.layer.emplace(std::move(kept).value());
  note(run.room ? events::kSetupKept : events::kMethodSetupKept, *run.kept.key, layer.content,
       layer.bytes, layer.files);
  if (run.room) {
    leave_workspace(MeterPhase::kSetup);
    PROCTOR_CHECK_OK(open_on_layer(Room::kAgent));
  } else {
    method_made_ = layer.work();
  }
  tools_.store.make_room();
  return ok_status();
}

// AttemptRun: what the agent of a method has beside what each contract gives: image, toolchains,
// secrets, network, and what the method's own setup made, in a place that no task's command sees.

namespace {
// Of a method's setup, whatever the task: what it makes is every task's.
constexpr std::uint64_t kSetupMemory = std::uint64_t{4} << 30;
constexpr std::uint64_t kSetupDisk = std::uint64_t{8} << 30;
constexpr std::uint32_t kSetupProcesses = 1024;

std::string image_in(const SandboxEngine& engine, const Environment& environment) {
  return runs_images(engine.kind()) ? environment.image : "";
}
std::vector<ManifestToolchain> in_manifest(const std::vector<Toolchain>& toolchains) {
  std::vector<ManifestToolchain> out;
  for (const Toolchain& t : toolchains)
    out.push_back({t.path, t.at.empty() ? t.path : t.at, toolchain_version(t.path)});
  return out;
}
}  // namespace

NetworkAccess AttemptRun::agent_network() const {
  return joined(contract().policy.agent_network, input_.method->environment.network);
}

Result<SandboxSpec> AttemptRun::agent_spec(SandboxEngine& engine) {
  const MethodEnvironment& own = input_.method->environment;
  PROCTOR_TRY(SandboxSpec spec, spec_for(Room::kAgent, label("agent"), engine));
  spec.image = image_in(engine, environment_of_agent(contract(), *input_.method));
  dress_for_method(spec, own, engine.kind(), method_made_);
  PROCTOR_CHECK_OK(add_secrets(spec.env, contract().environment.secrets));
  PROCTOR_CHECK_OK(add_secrets(spec.env, own.secrets));
  return spec;
}

std::optional<ManifestMethod> AttemptRun::manifest_method() const {
  const Method& method = *input_.method;
  const MethodEnvironment& own = method.environment;
  if (own.empty() && method.keep.empty()) return std::nullopt;
  ManifestMethod out;
  out.image = own.image;
  if (method_engine_ != nullptr) out.sandbox = to_string(method_engine_->kind());
  out.variables = own.variables;
  out.secrets = own.secrets;
  out.toolchains = in_manifest(own.toolchains);
  for (const SetupStep& step : own.setup) out.setup.push_back(step.command);
  out.keep = method.keep;
  if (!own.setup.empty()) out.setup_cache = method_setup_.in_manifest();
  return out;
}

// Held from now on, like the task's.
void AttemptRun::look_for_method_layer() {
  const MethodEnvironment& own = input_.method->environment;
  std::error_code ec;
  const fs::path mine = dir_ / "agent-made";
  if (fs::exists(mine, ec)) method_made_ = mine;  // an earlier life's
  if (!tools_.setup_cache || engine_ == nullptr || !setup_is_cacheable(*input_.method)) return;
  const SandboxEngine& engine = method_engine_ != nullptr ? *method_engine_ : *engine_;
  const SetupPlace place = place_of(engine, own.toolchains);
  look_for(
      method_setup_,
      method_setup_key(*input_.method,
                       image_in(engine, environment_of_agent(contract(), *input_.method)), place));
  if (method_setup_.layer) method_made_ = method_setup_.layer->work();
}

// No workspace, no secret and nothing of the task.
Result<SandboxSpec> AttemptRun::method_setup_spec(SandboxEngine& engine) {
  const Method& method = *input_.method;
  PROCTOR_TRY(method_made_, fresh_dir("agent-made"));
  PROCTOR_TRY(const fs::path home, fresh_dir("agent-setup-home"));
  PROCTOR_TRY(const fs::path nothing, fresh_dir("agent-setup-work"));
  SandboxSpec spec;
  spec.label = label(kMethodSetupDir);
  spec.hold = watch_.hold();
  spec.workspace = nothing;
  // Without one it is counted with others, and not refused.
  if (engine.has_own_users() && tools_.store.has_own_users())
    if (auto user = OwnUser::take(); user.ok()) spec.user = std::move(user).value();
  spec.image = image_in(engine, environment_of_agent(contract(), *input_.method));
  spec.env = sandbox_environment(Environment{}, engine.kind(), kSetupSeed);
  dress_for_method(spec, method.environment, engine.kind(), {});
  spec.env["PROCTOR_AGENT"] = kAgentAt;
  spec.mounts.push_back({method_made_, kAgentAt, true});
  spec.mounts.push_back({home, kHomeAt, true});
  if (!method.files.empty()) {
    const fs::path files = dir_ / "agent-setup-files";
    std::error_code ec;
    if (!fs::exists(files, ec)) PROCTOR_CHECK_OK(write_referenced_files(files, method.files));
    spec.mounts.push_back({files, kMethodAt, false});
    spec.env["PROCTOR_METHOD"] = kMethodAt;
  }
  spec.memory_bytes = kSetupMemory;
  spec.processes = kSetupProcesses;
  spec.file_bytes = kSetupDisk;
  for (const fs::path& place : {method_made_, home, nothing})
    spec.disk.places.push_back({place, 0, 0});
  spec.disk.bytes = kSetupDisk;
  spec.disk.files = limits::kSandboxFiles;
  return spec;
}

// AttemptRun: the beginning of a run directory, manifest.json (R043-R047, R066, R070-R072, R077).

namespace {
std::uint64_t ms(std::chrono::milliseconds d) {
  return static_cast<std::uint64_t>(d.count());
}

// Empty where the two older fields say it all.
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
// Beside the limits: what each looks by on this host.
std::map<std::string, std::string> monitors(const Contract& contract, const SandboxEngine* engine) {
  const auto kept =
      engine == nullptr ? std::map<std::string, std::string>() : engine->enforcement();
  const auto at = kept.find("attempts");
  const std::string by =
      at == kept.end() || at->second == "none" ? std::string(kUnobserved) : at->second;
  std::map<std::string, std::string> out{{"calls", by}};
  if (!contract.policy.denied_commands.empty()) out["commands"] = by;
  return out;
}
}  // namespace

Json AttemptRun::manifest() const {
  const Contract& c = contract();
  ManifestInputs m;
  m.tool_version = kVersion;
  m.tool_commit = tools_.commit;
  identify(m);
  m.source = c.repository.source;
  m.tree_expected = c.repository.tree;
  m.tree_observed = snapshot_.tree;
  for (const auto& [path, commit] : snapshot_.submodules) m.submodules.push_back({path, commit});
  for (const auto& [path, digest] : snapshot_.lockfiles)
    if (const auto of = Digest::from_hex(digest); of.ok())
      m.lockfiles.push_back({printable(path, kTreePathBytes), *of});
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
  m.toolchains = in_manifest(c.environment.toolchains);
  if (!c.setup.empty()) m.setup_cache = setup_.in_manifest();
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
                : std::string(word_of(input_.method->kind));
  if (!input_.method->call.model.empty()) m.agent += " " + input_.method->call.model;
  if (input_.method->kind == Method::Kind::kToolLoop)
    m.agent += " " + input_.method->gateway->model().name + ", prompt " +
               std::string(ToolLoop::kPromptVersion);
  for (const Check& check : c.checks) m.acceptance.push_back({check.id, check.command});
  m.rubric = judge_rules(c, *input_.settings);
  m.monitors = monitors(c, method_engine_ != nullptr ? method_engine_ : engine_);
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
