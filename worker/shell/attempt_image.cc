// AttemptRun: the image that a contract does not name but says how to make.
#include "worker/shell/attempt_run.h"
#include "worker/shell/failure_words.h"
#include "worker/shell/run_events.h"
#include "worker/shell/setup_steps.h"

namespace proctor {
namespace {

constexpr const char* kImageDir = "setup-image";

}  // namespace

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

}  // namespace proctor
