#include "worker/shell/engines.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/contract/host_things.h"
#include "worker/sandbox/bubblewrap.h"
#include "worker/sandbox/docker.h"
#include "worker/sandbox/oci.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/selftest/isolation_proof.h"

namespace proctor {
namespace {
// One empty command in this image: kUnavailable where the runtime may not do what it needs.
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

}  // namespace

std::string Engines::name_of(const Runtime& runtime) {
  return std::string(runtime.userspace ? kRunsc : to_string(runtime.kind));
}

SandboxOptions Engines::options_of(const Runtime& runtime) const {
  SandboxOptions out = options_;
  if (runtime.userspace) out.oci_runtime = kRunsc;
  return out;
}

Result<SandboxEngine*> Engines::userspace_for(const std::string& image) {
  const std::lock_guard lock(userspace_mutex_);  // under which alone its proof is looked for
  const auto& proofs = userspace_proofs_.found;
  if (const auto it = proofs.find(kUserspace); it != proofs.end()) PROCTOR_CHECK_OK(it->second);
  PROCTOR_TRY(SandboxEngine* const engine, get(kUserspace));
  if (oci_offers(options_of(kUserspace), image)) return engine;
  return Error{Errc::kUnavailable, "isolation in user space: image " + image +
                                       " is not in this host's store " + options_.images.string() +
                                       " (see proctor images import)"};
}

bool Engines::offers_userspace() {
  if (images_ == ImageRunner::kDocker) return false;
  const std::optional<std::string> image = oci_any_image(options_of(kUserspace));
  if (!image) return false;
  const std::lock_guard lock(userspace_mutex_);
  if (userspace_works_) return *userspace_works_;
  const auto try_out = [&]() -> Status {
    PROCTOR_TRY(SandboxEngine* const engine, get(kUserspace));
    PROCTOR_CHECK_OK(probe_engine(*engine, *image));
    return proved(kUserspace, *engine);
  };
  const Status works = try_out();
  if (!works.ok()) log::warn("no isolation in user space here: " + works.error().detail);
  userspace_works_ = works.ok();
  return works.ok();
}

SandboxKind wanted_kind(const Environment& environment) {
  switch (wanted_sandbox(environment)) {
    case Environment::Sandbox::kAuto:
      break;
    case Environment::Sandbox::kBubblewrap:
      return SandboxKind::kBubblewrap;
    case Environment::Sandbox::kDocker:
      return SandboxKind::kDocker;
    case Environment::Sandbox::kNull:
      return SandboxKind::kNull;
  }
  PROCTOR_ASSERT(false);
}

SandboxKind Engines::kind_for(const Environment& environment) {
  const SandboxKind kind = wanted_kind(environment);
  if (kind != SandboxKind::kDocker) return kind;
  switch (images_) {
    case ImageRunner::kDocker:
      return SandboxKind::kDocker;
    case ImageRunner::kOci:
      return SandboxKind::kOci;
    case ImageRunner::kAuto:
      return oci_offers(options_, environment.image) && oci_works(environment.image)
                 ? SandboxKind::kOci
                 : SandboxKind::kDocker;
  }
  PROCTOR_ASSERT(false);
}

// A runtime that is installed may still be forbidden what it needs, in a container for example: one
// empty command tells, before a run depends on it.
bool Engines::oci_works(const std::string& image) {
  const Result<SandboxEngine*> engine = get_proved(SandboxKind::kOci);
  if (!engine.ok()) return false;
  const std::lock_guard lock(mutex_);
  if (oci_works_) return *oci_works_;
  const Status works = probe_engine(**engine, image);
  oci_works_ = works.ok();
  if (!*oci_works_) log::warn("images run under Docker only: " + works.error().detail);
  return *oci_works_;
}

Result<SandboxEngine*> Engines::engine_for(const EngineWish& wish) {
  const Environment& environment = wish.environment;
  if (wish.isolation == Isolation::kUserspace) {
    if (environment.image.empty())
      return Error{Errc::kInvalid, "isolation in user space: the contract names no image"};
    if (images_ == ImageRunner::kDocker)
      return Error{Errc::kUnavailable,
                   "isolation in user space: this worker's images are Docker's (--images)"};
    return userspace_for(environment.image);
  }
  const SandboxKind kind = kind_for(environment);
  if (kind == SandboxKind::kNull && null_ == Null::kForbidden) {
    return Error{Errc::kInvalid, "sandbox null: only for benchmarks (proctor-worker --allow-null)"};
  }
  if (runs_images(kind) && environment.image.empty()) {
    return Error{Errc::kInvalid, "sandbox docker: the contract names no image"};
  }
  if (kind == SandboxKind::kOci && !oci_offers(options_, environment.image)) {
    // Another host may have it: no fault of the contract's.
    PROCTOR_TRY([[maybe_unused]] SandboxEngine* const runtime, get_proved(kind));
    return Error{Errc::kUnavailable, "image " + environment.image +
                                         " is not in this host's store " +
                                         options_.images.string() + " (see proctor images import)"};
  }
  if (kind == SandboxKind::kDocker && !docker_answers(options_.docker_socket)) {
    return Error{Errc::kUnavailable, "no Docker Engine answers at " + options_.docker_socket +
                                         " for image " + environment.image};
  }
  return get_proved(kind);
}

Result<SandboxEngine*> Engines::wait_for(const EngineWish& wish, std::stop_token cancel) {
  constexpr std::chrono::milliseconds kPoll{500};
  const auto until = std::chrono::steady_clock::now() + engine_wait_;
  for (bool said = false;; said = true) {
    Result<SandboxEngine*> engine = engine_for(wish);
    if (engine.ok()) {
      if (said) log::info("the Docker Engine answers again");
      return engine;
    }
    const bool away = wish.isolation == Isolation::kKernel &&
                      kind_for(wish.environment) == SandboxKind::kDocker &&
                      engine.error().code == Errc::kUnavailable &&
                      !is_refuted(SandboxKind::kDocker);
    if (!away || cancel.stop_requested() || until <= std::chrono::steady_clock::now())
      return engine;
    if (!said) log::warn(engine.error().detail + ": waiting for it");
    pause_for(kPoll, cancel);
  }
}

Result<SandboxEngine*> Engines::get(const Runtime& runtime) {
  const std::lock_guard lock(mutex_);
  if (const auto it = open_.find(runtime); it != open_.end()) return it->second.get();
  const SandboxOptions options = options_of(runtime);
  // Its proof, which is a command too, says whether it works; nobody gets it before.
  PROCTOR_TRY(auto engine, runtime.kind == SandboxKind::kBubblewrap
                               ? open_untried_bubblewrap_engine(options)
                               : open_sandbox_engine(runtime.kind, options));
  if (runtime.kind == SandboxKind::kDocker && docker_unclean_) {
    PROCTOR_CHECK_OK(engine->clean_up(*docker_unclean_));
    docker_unclean_.reset();
    log::info("what an earlier life left in the Docker Engine is gone");
  }
  return open_.emplace(runtime, std::move(engine)).first->second.get();
}

Result<SandboxEngine*> Engines::get_proved(const Runtime& runtime) {
  PROCTOR_TRY(SandboxEngine* const engine, get(runtime));
  PROCTOR_CHECK_OK(proved(runtime, *engine));
  return get(runtime);  // the proof may have opened it anew
}

// With what does not work here left out.  Requires: nobody was given the one before.
Result<SandboxEngine*> Engines::try_again(const Runtime& runtime) {
  PROCTOR_TRY(auto engine, open_sandbox_engine(runtime.kind, options_of(runtime)));
  const std::lock_guard lock(mutex_);
  return (open_[runtime] = std::move(engine)).get();
}

// Asked once in a life: a runtime that breaks what is promised is mended by whoever runs this host,
// and the next life sees that.  Where nothing can be seen nothing is known against it.
Status Engines::proved(const Runtime& runtime, SandboxEngine& engine) {
  if (runtime.kind == SandboxKind::kNull) return ok_status();  // promises nothing
  Proofs& proofs = proofs_of(runtime);
  const std::lock_guard lock(proofs.mutex);
  if (const auto it = proofs.found.find(runtime); it != proofs.found.end()) return it->second;
  const std::string name = name_of(runtime);
  const SandboxOptions options = options_of(runtime);
  Result<IsolationProof> proof = prove_kind(engine, options);
  if (!proof.ok() && runtime.kind == SandboxKind::kBubblewrap) {
    PROCTOR_TRY(SandboxEngine* const other, try_again(runtime));
    proof = prove_kind(*other, options);
  }
  Status status = ok_status();
  if (!proof.ok() || proof->verdict == IsolationProof::Verdict::kUnseen)
    log::warn(name + ": whether it isolates is not known: " +
              (proof.ok() ? proof->detail : proof.error().detail));
  if (proof.ok() && proof->verdict == IsolationProof::Verdict::kUnfit)
    status = Error{Errc::kUnavailable, proof->detail};
  if (proof.ok() && proof->verdict == IsolationProof::Verdict::kRefuted) {
    status = Error{Errc::kUnavailable, name + " does not isolate on this host: " + proof->detail};
    proofs.refuted.insert(runtime);
  }
  return proofs.found.emplace(runtime, std::move(status)).first->second;
}

bool Engines::is_refuted(const Runtime& runtime) {
  Proofs& proofs = proofs_of(runtime);
  const std::lock_guard lock(proofs.mutex);
  return proofs.refuted.contains(runtime);
}

bool Engines::offers(SandboxKind kind) const {
  if (kind == SandboxKind::kDocker)
    return images_ != ImageRunner::kOci && docker_answers(options_.docker_socket);
  if (kind == SandboxKind::kOci)
    return images_ != ImageRunner::kDocker && oci_any_image(options_).has_value();
  return true;
}

void Engines::clean_up(const std::set<std::string>& keep) {
  // Whatever an earlier life used, with whichever options.  Its control groups are one owner's in
  // every kind, so after one kind the others have only folders left: nobody opens them for that.
  bool groups_are_clean = false;
  for (const Runtime& runtime : {Runtime(SandboxKind::kBubblewrap), kUserspace,
                                 Runtime(SandboxKind::kOci), Runtime(SandboxKind::kDocker)}) {
    if (runtime.kind == SandboxKind::kDocker && !docker_answers(options_.docker_socket)) {
      remove_stale_docker_folders();
      const std::lock_guard lock(mutex_);
      docker_unclean_ = keep;
      continue;
    }
    if (runtime.kind == SandboxKind::kOci && groups_are_clean) {
      if (!runtime.userspace) remove_left_oci_folders();
      continue;
    }
    const Result<SandboxEngine*> engine = get(runtime);
    if (!engine.ok()) continue;
    const Status done = (*engine)->clean_up(keep);
    groups_are_clean = groups_are_clean || (runtime.kind == SandboxKind::kBubblewrap && done.ok());
    if (!done.ok()) log::warn("clean up " + name_of(runtime) + ": " + done.error().detail);
  }
}

std::vector<std::string> Engines::features() {
  std::vector<std::string> out;
  for (const SandboxKind kind :
       {SandboxKind::kBubblewrap, SandboxKind::kOci, SandboxKind::kDocker}) {
    if (!offers(kind)) continue;
    const Result<SandboxEngine*> engine = get_proved(kind);
    if (!engine.ok()) {
      not_to_be_had(kind, engine.error());
      // A coordinator tells it to whoever asks why nobody runs his task.
      if (is_refuted(kind)) out.push_back("unfit:" + std::string(to_string(kind)));
      continue;
    }
    out.push_back("sandbox:" + std::string(to_string(kind)));
    if (kind == SandboxKind::kOci)
      for (std::string& image : oci_images(options_)) out.push_back(std::move(image));
  }
  if (offers_userspace()) out.push_back("isolation:userspace");
  if (is_refuted(kUserspace)) out.push_back("unfit:userspace");
  return out;
}

// Asked again and again: said once.
void Engines::not_to_be_had(SandboxKind kind, const Error& why) {
  const std::lock_guard lock(mutex_);
  if (!told_.insert(kind).second) return;
  log::warn(std::string(to_string(kind)) + " is not to be had here: " + why.detail);
}
}  // namespace proctor
