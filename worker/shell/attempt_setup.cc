#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/base/version.h"
#include "common/contract/contract.h"
#include "common/trace/manifest.h"
#include "worker/agent/agent.h"
#include "worker/sandbox/host_lack.h"
#include "worker/sandbox/sandbox.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/coordinators.h"
#include "worker/shell/host_facts.h"
#include "worker/shell/run_events.h"
#include "worker/shell/sandbox_dress.h"
#include "worker/shell/setup_key.h"
#include "worker/tools/tool_loop.h"
#include "worker/workspace/copy_tree.h"
#include "worker/workspace/snapshot.h"

namespace proctor {
// A layer's record of the steps that made it, so that whoever uses it is charged as its maker was.
// Thread-safe.

// Behind the number of a step: the files of its streams.
inline constexpr const char* kSetupOut = ".stdout";
inline constexpr const char* kSetupErr = ".stderr";

namespace {
std::uint64_t count_of(const Json& step, const char* name) {
  const auto it = step.find(name);
  return it != step.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
}

std::chrono::milliseconds time_of(const Json& step, const char* name) {
  return std::chrono::milliseconds(count_of(step, name));
}
}  // namespace

Json record_of_step(const ExecOutcome& outcome) {
  return {{"wall_ms", static_cast<std::uint64_t>(outcome.wall.count())},
          {"cpu_ms", static_cast<std::uint64_t>(outcome.cpu.count())},
          {"memory_peak", outcome.memory_peak},
          {"stdout_bytes", outcome.stdout_bytes},
          {"stderr_bytes", outcome.stderr_bytes}};
}

ExecOutcome step_as_recorded(const Json& step) {
  ExecOutcome outcome;
  outcome.wall = time_of(step, "wall_ms");
  outcome.cpu = time_of(step, "cpu_ms");
  outcome.memory_peak = count_of(step, "memory_peak");
  outcome.stdout_bytes = count_of(step, "stdout_bytes");
  outcome.stderr_bytes = count_of(step, "stderr_bytes");
  return outcome;
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

// The sandbox of a setup's place (setup_key.h).
std::string sandbox_word(const SandboxEngine& engine) {
  std::string out(to_string(engine.kind()));
  if (const auto limits = engine.enforcement(); limits.contains("kernel"))
    out += "+" + limits.at("kernel");
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
  Json payload = {{"inputs", wanted.inputs.hex()}, {"id", image_->id},
                  {"built", image_->built},        {"bases", image_->bases},
                  {"network", wanted.network},     {"wall_ms", image_->took.count()}};
  if (!image_->failure.empty()) payload["failure"] = as_utf8(image_->failure);
  std::string log = image_->log;
  if (!image_->failure.empty()) log += image_->failure + "\n";
  if (!log.empty()) {
    const fs::path file = recorder_->dir() / kImageDir / (std::string("0") + kSetupOut);
    Status kept = make_dirs(file.parent_path());
    if (kept.ok()) kept = write_file(file, log, Durability::kLazy, kOpenFile);
    if (!kept.ok() && !broken_) broken_ = Error{Errc::kUnavailable, kept.error().detail};
    payload["log"] = sha256(log).hex();
  }
  return note(image_->failure.empty() ? "setup.image" : "setup.image.failed", Actor::kHarness,
              payload);
}

// AttemptRun: setup, run in the workspace or taken from what an earlier run of this host kept of it
// (R014).  A run of the untouched snapshot makes the layer, before its agent begins, and then works
// on it as every later one does; acceptance never makes one, and uses it only where setup would do
// again what it did (setup_key.h).

namespace {
std::string setup_name(Room room) {
  return "setup-" + std::string(to_string(room));
}
}  // namespace

std::optional<ManifestSetupCache> AttemptRun::setup_cache() const {
  if (contract().setup.empty()) return std::nullopt;
  if (!setup_key_) return ManifestSetupCache{"off", "", ""};
  if (!setup_hit_) return ManifestSetupCache{"miss", setup_key_->hex(), ""};
  return ManifestSetupCache{"hit", setup_key_->hex(), layer_->content.hex()};
}

// Held from now on: what the manifest names is what is used.
void AttemptRun::look_for_layer() {
  if (!tools_.setup_cache || engine_ == nullptr || !setup_is_cacheable(contract())) return;
  const Result<ObjectId> content = snapshot_content(snapshot_);
  if (!content.ok()) return;
  SetupPlace place;
  place.content = content->hex();
  place.sandbox = sandbox_word(*engine_);
  place.workspace = to_string(tools_.store.kind(shown_to()));
  std::vector<fs::path> toolchains;
  for (const Toolchain& t : contract().environment.toolchains) toolchains.emplace_back(t.path);
  if (!runs_images(engine_->kind()) || !toolchains.empty()) place.host = shown_host(toolchains);
  setup_key_ = setup_key(contract(), place);
  auto found = tools_.store.layers().find(*setup_key_);
  setup_hit_ = found.ok();
  if (found.ok()) layer_ = std::move(found).value();
}

AttemptRun::LayerOrMaking AttemptRun::find_or_make(const Digest& key,
                                                   std::chrono::milliseconds patience) const {
  constexpr std::chrono::milliseconds kPoll{20};
  const auto until = std::chrono::steady_clock::now() + patience;
  LayerOrMaking out;
  while (!watch_.token().stop_requested() && std::chrono::steady_clock::now() < until) {
    auto making = tools_.store.layers().begin(key);
    if (!making.ok() && making.error().code != Errc::kConflict) {
      log::warn("setup is not kept: " + making.error().detail);
      return out;
    }
    // Whoever had it in his hands may have finished it.
    if (auto found = tools_.store.layers().find(key); found.ok()) {
      out.layer = std::move(found).value();
      return out;
    }
    if (making.ok()) {
      out.making.emplace(std::move(making).value());
      return out;
    }
    pause_for(kPoll, watch_.token());
  }
  return out;
}

void AttemptRun::find_or_make_layer() {
  if (!setup_key_ || layer_) return;
  LayerOrMaking got = find_or_make(*setup_key_, proctor::patience(contract().setup));
  layer_ = std::move(got.layer);
  setup_making_ = std::move(got.making);
  setup_steps_ = Json::array();
}

Status AttemptRun::open_on_layer(Room room) {
  PROCTOR_TRY(workspace_, tools_.store.create(snapshot_, label(to_string(room)), &*layer_,
                                              disk_bound(room), shown_to()));
  layered_ = true;
  PROCTOR_TRY(const fs::path home, writable_dir(home_name(room)));
  std::error_code ec;
  if (fs::is_empty(layer_->home(), ec)) return ok_status();
  CopiedFiles unused;
  return copy_tree(layer_->home(), home, room == Room::kAcceptance ? home_known_ : unused);
}

// In acceptance, after the patch: only where setup cannot tell the difference.
Status AttemptRun::lay_layer_below() {
  PROCTOR_TRY(const std::vector<std::string> touched, workspace_->changed_under({"**"}));
  if (touched.empty()) {
    leave_workspace(MeterPhase::kAcceptance);
    return open_on_layer(Room::kAcceptance);
  }
  if (!setup_reads_none_of(contract(), touched)) return ok_status();
  PROCTOR_TRY(layered_, workspace_->lay_below(*layer_));
  if (!layered_) return ok_status();
  PROCTOR_TRY(const fs::path home, writable_dir(home_name(Room::kAcceptance)));
  return copy_tree(layer_->home(), home, home_known_);
}

AttemptRun::Answer AttemptRun::perform(const RunSetup& c) {
  if (c.room == Room::kAcceptance && c.index == 0 && layer_) {
    if (Status laid = lay_layer_below(); !laid.ok())
      return StepFailed{in_context("kept setup", std::move(laid).error()), 0};
  }
  Result<LifecycleEvent> ended = layered_ ? setup_as_kept(c) : run_setup(c);
  if (!ended.ok()) return StepFailed{std::move(ended).error(), 0};
  return std::move(ended).value();
}

fs::path AttemptRun::setup_output(const RunSetup& c, const char* stream) const {
  return recorder_->dir() / setup_name(c.room) / (std::to_string(c.index) + stream);
}

Json AttemptRun::setup_payload(const RunSetup& c, const ExecOutcome& outcome) const {
  const SetupStep& step = contract().setup[c.index];
  Json out = exec_payload(step.command, outcome, step.timeout, setup_output(c, kSetupOut),
                          setup_output(c, kSetupErr));
  out["room"] = to_string(c.room);
  out["step"] = c.index;
  out["network"] = network_payload(step.network);
  return out;
}

Result<LifecycleEvent> AttemptRun::run_setup(const RunSetup& c) {
  const SetupStep& step = contract().setup[c.index];
  const std::string name = setup_name(c.room);
  const std::uint32_t seed = setup_is_cacheable(contract()) ? kSetupSeed : input_.assignment.seed;
  PROCTOR_TRY(SandboxSpec spec, spec_for(c.room, label(name), seed, engine_->kind()));
  PROCTOR_CHECK_OK(show_contract_files(spec, FilesFor::kSetup));
  PROCTOR_TRY(auto network, give_network(spec, step.network, name));
  if (c.room == Room::kAgent)
    PROCTOR_CHECK_OK(add_secrets(spec.env, contract().environment.secrets));
  PROCTOR_CHECK_OK(make_dirs(recorder_->dir() / name));
  ExecSpec exec;
  exec.command = step.command;
  exec.timeout = step.timeout;
  exec.stdout_file = setup_output(c, kSetupOut);
  exec.stderr_file = setup_output(c, kSetupErr);
  locked_before_ = locks_to_know(*engine_);  // nothing of this run's lives
  PROCTOR_TRY(const ExecOutcome outcome,
              execute(*engine_, MeterPhase::kSetup, spec, exec, watch_.token()));
  const std::vector<std::string> refused = network->close();
  network.reset();
  if (outcome.end != ExecOutcome::End::kExited || outcome.exit_code != 0)
    PROCTOR_CHECK_OK(workspace_->whole(TreeMark::Look::kFolders));
  SetupEnded ended{end_of(outcome), note("setup", Actor::kHarness, setup_payload(c, outcome))};
  if (ended.exec.end != ExecEnd::kExited || ended.exec.exit_code != 0) {
    PROCTOR_CHECK_OK(had_all(*engine_, spec));
    ended.words = failure_words(exec.stderr_file, refused);
  }
  if (!setup_making_) return LifecycleEvent(ended);
  if (ended.exec.end != ExecEnd::kExited || ended.exec.exit_code != 0) {
    setup_making_.reset();
    return LifecycleEvent(ended);
  }
  record_step(c, outcome);
  if (setup_making_ && c.index + 1 == contract().setup.size()) PROCTOR_CHECK_OK(keep_setup());
  return LifecycleEvent(ended);
}

void AttemptRun::record_step(const RunSetup& c, const ExecOutcome& outcome) {
  setup_steps_.push_back(record_of_step(outcome));
  for (const char* stream : {kSetupOut, kSetupErr}) {
    const fs::path file = setup_output(c, stream);
    const Status kept = copy_output(file, setup_making_->output() / file.filename());
    if (kept.ok()) continue;
    log::warn("setup is not kept: " + kept.error().detail);
    setup_making_.reset();
    return;
  }
}

// Charged as if it had run: neither a cap nor a comparison depends on which run came first.
Result<LifecycleEvent> AttemptRun::setup_as_kept(const RunSetup& c) {
  const SetupStep& step = contract().setup[c.index];
  if (layer_->steps.size() <= c.index)
    return Error{Errc::kUnavailable, "layer " + layer_->dir.string() + ": lacks a step"};
  const ExecOutcome outcome = step_as_recorded(layer_->steps[c.index]);
  network_used_ = network_used_ || step.network.any();
  PROCTOR_CHECK_OK(make_dirs(recorder_->dir() / setup_name(c.room)));
  for (const char* stream : {kSetupOut, kSetupErr}) {
    const fs::path file = setup_output(c, stream);
    PROCTOR_CHECK_OK(copy_output(layer_->output() / file.filename(), file));
  }
  meter_.executed(MeterPhase::kSetup, {outcome.wall, outcome.cpu, outcome.memory_peak});
  Json payload = setup_payload(c, outcome);
  payload["layer"] = layer_->content.hex();
  return LifecycleEvent(SetupEnded{end_of(outcome), note("setup", Actor::kHarness, payload)});
}

// The workspace that setup ran in becomes the layer, and this run goes on with another on top of
// it.  What a layer cannot hold stays where it is.
Status AttemptRun::keep_setup() {
  const SetupMaking making = *std::exchange(setup_making_, std::nullopt);
  const fs::path home = home_of(Room::kAgent);
  const Workspace::Written written = workspace_->written();
  const auto not_kept = [](const Error& why) {
    log::info("setup is not kept: " + why.detail);
    return ok_status();
  };
  if (const Status can = SetupMaking::keepable(written.dir, home); !can.ok())
    return not_kept(can.error());
  const FolderUse use = folder_use(written.dir);
  SetupLayer made;
  made.bytes = use.bytes;
  made.files = use.files;
  made.bytes_before = written.bytes_before;
  made.files_before = written.files_before;
  made.steps = std::exchange(setup_steps_, Json::array());
  const Result<fs::path> work = workspace_->surrender();
  if (!work.ok()) return not_kept(work.error());
  auto kept = making.keep(*work, home, std::move(made));
  if (!kept.ok()) {  // the workspace is no more, whatever the code of the error says
    return Error{Errc::kUnavailable, "keep setup: " + kept.error().detail};
  }
  layer_ = std::move(kept).value();
  note("setup.kept", Actor::kHarness,
       Json{{"key", setup_key_->hex()},
            {"layer", layer_->content.hex()},
            {"bytes", layer_->bytes},
            {"files", layer_->files}});
  leave_workspace(MeterPhase::kSetup);
  PROCTOR_CHECK_OK(open_on_layer(Room::kAgent));
  tools_.store.make_room();
  return ok_status();
}

// AttemptRun: what the agent of a method has beside what each contract gives: image, toolchains,
// secrets, network, and what the method's own setup made, in a place that no task's command sees.

namespace {
constexpr const char* kSetupDir = "setup-method";
// Of a method's setup, whatever the task: what it makes is every task's.
constexpr std::uint64_t kSetupMemory = std::uint64_t{4} << 30;
constexpr std::uint64_t kSetupDisk = std::uint64_t{8} << 30;
constexpr std::uint32_t kSetupProcesses = 1024;

std::string image_in(const SandboxEngine& engine, const Environment& environment) {
  return runs_images(engine.kind()) ? environment.image : "";
}
}  // namespace

// The environment with which its agent's sandbox is asked for.
Environment AttemptRun::agent_environment() const {
  Environment out = contract().environment;
  const std::string& image = input_.method->environment.image;
  if (image.empty()) return out;
  out.sandbox = Environment::Sandbox::kDocker;  // whatever runs images here
  out.image = image;
  return out;
}

NetworkAccess AttemptRun::agent_network() const {
  return joined(contract().policy.agent_network, input_.method->environment.network);
}

Result<SandboxSpec> AttemptRun::agent_spec(SandboxEngine& engine) {
  const MethodEnvironment& own = input_.method->environment;
  PROCTOR_TRY(SandboxSpec spec,
              spec_for(Room::kAgent, label("agent"), input_.assignment.seed, engine.kind()));
  spec.image = image_in(engine, agent_environment());
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
  for (const Toolchain& t : own.toolchains)
    out.toolchains.push_back({t.path, t.at.empty() ? t.path : t.at, toolchain_version(t.path)});
  for (const SetupStep& step : own.setup) out.setup.push_back(step.command);
  out.keep = method.keep;
  if (own.setup.empty()) return out;
  if (!method_key_)
    out.setup_cache = ManifestSetupCache{"off", "", ""};
  else if (!method_hit_)
    out.setup_cache = ManifestSetupCache{"miss", method_key_->hex(), ""};
  else
    out.setup_cache = ManifestSetupCache{"hit", method_key_->hex(), method_layer_->content.hex()};
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
  SetupPlace place;
  place.sandbox = sandbox_word(engine);
  std::vector<fs::path> toolchains;
  for (const Toolchain& t : own.toolchains) toolchains.emplace_back(t.path);
  if (!runs_images(engine.kind()) || !toolchains.empty()) place.host = shown_host(toolchains);
  method_key_ = method_setup_key(*input_.method, image_in(engine, agent_environment()), place);
  auto found = tools_.store.layers().find(*method_key_);
  method_hit_ = found.ok();
  if (!found.ok()) return;
  method_layer_ = std::move(found).value();
  method_made_ = method_layer_->work();
}

AttemptRun::Answer AttemptRun::perform(const RunMethodSetup& c) {
  if (c.index == 0 && method_key_ && !method_layer_) {
    LayerOrMaking got =
        find_or_make(*method_key_, proctor::patience(input_.method->environment.setup));
    method_layer_ = std::move(got.layer);
    method_making_ = std::move(got.making);
  }
  Result<LifecycleEvent> ended =
      method_layer_ ? method_setup_as_kept(c.index) : run_method_setup(c.index);
  if (!ended.ok()) return StepFailed{std::move(ended).error(), 0};
  return std::move(ended).value();
}

fs::path AttemptRun::method_setup_output(std::size_t index, const char* stream) const {
  return recorder_->dir() / kSetupDir / (std::to_string(index) + stream);
}

Json AttemptRun::method_setup_payload(std::size_t index, const ExecOutcome& outcome) const {
  const SetupStep& step = input_.method->environment.setup[index];
  Json out =
      exec_payload(step.command, outcome, step.timeout, method_setup_output(index, kSetupOut),
                   method_setup_output(index, kSetupErr));
  out["step"] = index;
  out["network"] = network_payload(step.network);
  return out;
}

// No workspace, no secret and nothing of the task.
Result<SandboxSpec> AttemptRun::method_setup_spec(SandboxEngine& engine) {
  const Method& method = *input_.method;
  PROCTOR_TRY(method_made_, fresh_dir("agent-made"));
  PROCTOR_TRY(const fs::path home, fresh_dir("agent-setup-home"));
  PROCTOR_TRY(const fs::path nothing, fresh_dir("agent-setup-work"));
  SandboxSpec spec;
  spec.label = label(kSetupDir);
  spec.hold = watch_.hold();
  spec.workspace = nothing;
  // Without one it is counted with others, and not refused.
  if (engine.has_own_users() && tools_.store.has_own_users())
    if (auto user = OwnUser::take(); user.ok()) spec.user = std::move(user).value();
  spec.image = image_in(engine, agent_environment());
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

Result<LifecycleEvent> AttemptRun::run_method_setup(std::size_t index) {
  const std::vector<SetupStep>& steps = input_.method->environment.setup;
  const SetupStep& step = steps[index];
  SandboxEngine& engine = method_engine_ != nullptr ? *method_engine_ : *engine_;
  PROCTOR_TRY(SandboxSpec spec, method_setup_spec(engine));
  PROCTOR_TRY(auto network, give_network(spec, step.network, kSetupDir));
  PROCTOR_CHECK_OK(make_dirs(recorder_->dir() / kSetupDir));
  ExecSpec exec;
  exec.command = std::string("cd ") + kAgentAt + " || exit 1\n" + step.command;
  exec.timeout = step.timeout;
  exec.stdout_file = method_setup_output(index, kSetupOut);
  exec.stderr_file = method_setup_output(index, kSetupErr);
  exec.output_max = limits::kCheckOutputBytes;
  PROCTOR_TRY(const ExecOutcome outcome,
              execute(engine, MeterPhase::kSetup, spec, exec, watch_.token()));
  const std::vector<std::string> refused = network->close();
  network.reset();
  SetupEnded ended{end_of(outcome),
                   note("setup.method", Actor::kHarness, method_setup_payload(index, outcome))};
  if (ended.exec.end != ExecEnd::kExited || ended.exec.exit_code != 0) {
    ended.words = failure_words(exec.stderr_file, refused);
    method_making_.reset();
  }
  if (!method_making_) return LifecycleEvent(ended);
  method_steps_.push_back(record_of_step(outcome));
  for (const char* stream : {kSetupOut, kSetupErr}) {
    const fs::path file = method_setup_output(index, stream);
    PROCTOR_CHECK_OK(copy_output(file, method_making_->output() / file.filename()));
  }
  if (index + 1 == steps.size()) PROCTOR_CHECK_OK(keep_method_setup());
  return LifecycleEvent(ended);
}

// Charged as if it had run, like the task's.
Result<LifecycleEvent> AttemptRun::method_setup_as_kept(std::size_t index) {
  if (method_layer_->steps.size() <= index)
    return Error{Errc::kUnavailable, "layer " + method_layer_->dir.string() + ": lacks a step"};
  method_made_ = method_layer_->work();
  const ExecOutcome outcome = step_as_recorded(method_layer_->steps[index]);
  network_used_ = network_used_ || input_.method->environment.setup[index].network.any();
  PROCTOR_CHECK_OK(make_dirs(recorder_->dir() / kSetupDir));
  for (const char* stream : {kSetupOut, kSetupErr}) {
    const fs::path file = method_setup_output(index, stream);
    PROCTOR_CHECK_OK(copy_output(method_layer_->output() / file.filename(), file));
  }
  meter_.executed(MeterPhase::kSetup, {outcome.wall, outcome.cpu, outcome.memory_peak});
  Json payload = method_setup_payload(index, outcome);
  payload["layer"] = method_layer_->content.hex();
  return LifecycleEvent(
      SetupEnded{end_of(outcome), note("setup.method", Actor::kHarness, payload)});
}

// What a layer cannot hold stays where it is, for this run alone.
Status AttemptRun::keep_method_setup() {
  const SetupMaking making = *std::exchange(method_making_, std::nullopt);
  PROCTOR_TRY(const fs::path nothing, fresh_dir("agent-made-home"));
  if (const Status can = SetupMaking::keepable(method_made_, nothing); !can.ok()) {
    log::info("the method's setup is not kept: " + can.error().detail);
    return ok_status();
  }
  const FolderUse use = folder_use(method_made_);
  SetupLayer made;
  made.bytes = use.bytes;
  made.files = use.files;
  made.steps = std::exchange(method_steps_, Json::array());
  auto kept = making.keep(method_made_, nothing, std::move(made));
  if (!kept.ok())
    return Error{Errc::kUnavailable, "keep the method's setup: " + kept.error().detail};
  method_layer_ = std::move(kept).value();
  method_made_ = method_layer_->work();
  note("setup.method.kept", Actor::kHarness,
       Json{{"key", method_key_->hex()},
            {"layer", method_layer_->content.hex()},
            {"bytes", method_layer_->bytes},
            {"files", method_layer_->files}});
  tools_.store.make_room();
  return ok_status();
}

// AttemptRun: the beginning of a run directory, manifest.json (R043-R047, R066, R070-R072, R077).

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
                : std::string(word_of(input_.method->kind));
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
