// AttemptRun: what the agent of a method has beside what each contract gives: image, toolchains,
// secrets, network, and what the method's own setup made, in a place that no task's command sees.
#include "common/base/log.h"
#include "worker/agent/agent.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/failure_words.h"
#include "worker/shell/host_facts.h"
#include "worker/shell/run_events.h"
#include "worker/shell/sandbox_dress.h"
#include "worker/shell/setup_key.h"
#include "worker/shell/setup_steps.h"

namespace proctor {
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

// What its agent's sandbox is asked for with.
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

}  // namespace proctor
