#include "worker/shell/userspace_engine.h"

#include <utility>

#include "common/base/log.h"
#include "worker/sandbox/oci.h"
#include "worker/sandbox/oci_runtime.h"
#include "worker/selftest/isolation_proof.h"

namespace proctor {

Status probe_engine(SandboxEngine& engine, const std::string& image) {
  PROCTOR_TRY(const TempDir workspace, TempDir::create("proctor-probe"));
  SandboxSpec spec;
  spec.label = "probe";
  spec.workspace = workspace.path();
  spec.image = image;
  PROCTOR_TRY(const auto sandbox, engine.open(spec));
  ExecSpec nothing;
  nothing.command = ":";
  const auto outcome = sandbox->run(nothing, {});
  // An image without a shell is nothing against the runtime.
  if (outcome.ok() || outcome.error().code != Errc::kUnavailable) return ok_status();
  return outcome.error();
}

UserspaceEngine::UserspaceEngine(SandboxOptions options) : options_(std::move(options)) {
  options_.oci_runtime = kRunsc;
}

Result<SandboxEngine*> UserspaceEngine::open() {
  if (!engine_) {
    PROCTOR_TRY(engine_, open_sandbox_engine(SandboxKind::kOci, options_));
  }
  return engine_.get();
}

Result<SandboxEngine*> UserspaceEngine::for_image(const std::string& image) {
  const std::lock_guard lock(mutex_);
  if (unfit_) return *unfit_;
  PROCTOR_TRY(SandboxEngine* const engine, open());
  if (oci_offers(options_, image)) return engine;
  return Error{Errc::kUnavailable, "isolation in user space: image " + image +
                                       " is not in this host's store " + options_.images.string() +
                                       " (see proctor images import)"};
}

bool UserspaceEngine::offered() {
  const std::lock_guard lock(mutex_);
  const std::optional<std::string> image = oci_any_image(options_);
  if (!image) return false;
  if (works_) return *works_;
  const Status works = try_out(*image);
  if (!works.ok()) log::warn("no isolation in user space here: " + works.error().detail);
  works_ = works.ok();
  return *works_;
}

Status UserspaceEngine::try_out(const std::string& image) {
  PROCTOR_TRY(SandboxEngine* const engine, open());
  PROCTOR_CHECK_OK(probe_engine(*engine, image));
  const Result<IsolationProof> proof = prove_kind(*engine, options_);
  if (!proof.ok() || proof->verdict == IsolationProof::Verdict::kUnseen)
    log::warn("runsc: whether it isolates is not known: " +
              (proof.ok() ? proof->detail : proof.error().detail));
  if (!proof.ok()) return ok_status();
  refuted_ = proof->verdict == IsolationProof::Verdict::kRefuted;
  if (!refuted_ && proof->verdict != IsolationProof::Verdict::kUnfit) return ok_status();
  unfit_ = Error{Errc::kUnavailable,
                 (refuted_ ? "runsc does not isolate on this host: " : "") + proof->detail};
  return *unfit_;
}

bool UserspaceEngine::is_refuted() {
  const std::lock_guard lock(mutex_);
  return refuted_;
}

void UserspaceEngine::clean_up(const std::set<std::string>& keep) {
  const std::lock_guard lock(mutex_);
  const Result<SandboxEngine*> engine = open();
  if (!engine.ok()) return;
  if (const Status done = (*engine)->clean_up(keep); !done.ok())
    log::warn("clean up runsc: " + done.error().detail);
}

}  // namespace proctor
