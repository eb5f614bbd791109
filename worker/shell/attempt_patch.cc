// AttemptRun: what an agent left as a patch, put into the fresh workspace, and protected files put
// back (R044, R047).
#include <algorithm>
#include <chrono>

#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/run_events.h"
#include "worker/workspace/touched.h"

namespace proctor {

AttemptRun::Answer AttemptRun::perform(const ExtractPatch&) {
  watch_.enter(wire::Stage::kExtracting);
  const Instant began = mono_now();
  const std::chrono::nanoseconds before = thread_cpu_time();
  Result<Patch> patch =
      unreadable_ ? Result<Patch>(*unreadable_)
                  : workspace_->extract_patch(limits::kPatchBytes, contract().policy.ignored);
  // A large tree is paid for by whoever left it.
  const Millis took = mono_now() - began;
  const bool apart = patch.ok() && patch->apart.has_value();
  // Of a process of its own that was ended at its limits nobody has told the CPU time.
  const Millis cpu = apart        ? patch->apart->cpu
                     : patch.ok() ? std::chrono::duration_cast<Millis>(thread_cpu_time() - before)
                                  : took;
  if (apart || kCountedWork <= took)
    meter_.executed(MeterPhase::kAcceptance, {took, cpu, apart ? patch->apart->memory_peak : 0});
  PatchExtracted extracted;
  if (!patch.ok()) {
    // Beyond our limits, or closed even to its owner: so the agent left it.
    const Errc code = patch.error().code;
    if (code != Errc::kExhausted && code != Errc::kInvalid)
      return StepFailed{std::move(patch).error(), 0};
    extracted.unreadable = printable(patch.error().detail, limits::kDetailBytes);
    patch = Patch{};
  }
  patch_ = std::move(patch).value();
  if (Status written = recorder_->write_patch(patch_.diff); !written.ok()) {
    return StepFailed{as_host_error(std::move(written).error()), 0};
  }
  Json mutation = mutation_payload(patch_, contract().policy.ignored);
  mutation["wall_ms"] = took.count();
  mutation["cpu_ms"] = cpu.count();
  if (patch_.apart) mutation["memory_peak"] = patch_.apart->memory_peak;
  if (!extracted.unreadable.empty()) mutation["unreadable"] = extracted.unreadable;
  note("mutation", Actor::kHarness, mutation);
  extracted.refused = patch_.refused;
  extracted.conflicts = patch_.conflicts;
  for (std::string& place : extracted.conflicts) place = printable(place, limits::kDetailBytes);
  // A patch holds what setup changed, too.
  extracted.changed = (!patch_.diff.empty() || !patch_.paths.empty() || !patch_.refused.empty()) &&
                      (!agent_began_ || touched_since(workspace_->written().dir, *agent_began_));
  const std::vector<std::string>& writable = contract().policy.writable;
  for (const std::string& path : patch_.paths) {
    if (is_setups(path))
      setup_left_.push_back(path);
    else if (!writable.empty() && !any_glob_covers(writable, path))
      extracted.outside_writable.push_back(path);
  }
  return extracted;
}

// A patch holds what setup changed, too, which is nobody's violation where it lies as setup left
// it.
bool AttemptRun::is_setups(const std::string& path) const {
  if (setup_over_.tv_sec == 0) return false;  // an earlier life saw it
  if (!std::ranges::binary_search(setup_makes_.paths, path) &&
      !std::ranges::binary_search(setup_wrote_, path))
    return false;
  return !changed_since(workspace_->dir() / path, setup_over_);
}

AttemptRun::Answer AttemptRun::perform(const ApplyPatch&) {
  if (patch_.diff.empty()) return StepDone{};
  Result<AppliedPatch> applied = workspace_->apply(patch_.diff);
  if (!applied.ok() && applied.error().code != Errc::kInvalid)
    return StepFailed{std::move(applied).error(), 0};
  const std::string why =
      applied.ok() ? "" : printable(applied.error().detail, limits::kDetailBytes);
  note("patch.apply", Actor::kHarness,
       applied_payload(Room::kAcceptance, applied.ok() ? std::optional(*applied) : std::nullopt,
                       why));
  if (!applied.ok()) return PatchRefused{why};
  return PatchApplied{std::string(to_string(applied->rung))};
}

AttemptRun::Answer AttemptRun::perform(const RestoreProtected& c) {
  std::vector<std::string> globs = contract().policy.protected_;
  globs.insert(globs.end(), c.also.begin(), c.also.end());
  if (globs.empty()) return ProtectedRestored{};
  Result<std::vector<std::string>> changed = workspace_->restore(globs);
  if (!changed.ok()) return StepFailed{std::move(changed).error(), 0};
  std::erase_if(*changed, [this](const std::string& path) {
    return std::ranges::binary_search(setup_left_, path);
  });
  note("mutation.restored", Actor::kHarness, paths_payload(*changed));
  return ProtectedRestored{std::move(changed).value()};
}

}  // namespace proctor
