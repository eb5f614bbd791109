// AttemptRun: setup, run in the workspace or taken from what an earlier run of this host kept of it
// (R014).  A run of the untouched snapshot makes the layer, before its agent begins, and then works
// on it as every later one does; acceptance never makes one, and uses it only where setup would do
// again what it did (setup_key.h).
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "worker/sandbox/host_lack.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/failure_words.h"
#include "worker/shell/host_facts.h"
#include "worker/shell/run_events.h"
#include "worker/shell/sandbox_dress.h"
#include "worker/shell/setup_key.h"
#include "worker/shell/setup_steps.h"
#include "worker/workspace/copy_tree.h"
#include "worker/workspace/snapshot.h"

namespace proctor {
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

}  // namespace proctor
