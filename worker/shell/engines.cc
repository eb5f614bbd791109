#include "worker/shell/engines.h"

#include <condition_variable>
#include <utility>

#include "common/base/assert.h"
#include "common/base/log.h"

namespace proctor {

SandboxKind wanted_sandbox(const Environment& environment) {
  switch (environment.sandbox) {
    case Environment::Sandbox::kAuto:
      return environment.image.empty() ? SandboxKind::kBubblewrap : SandboxKind::kDocker;
    case Environment::Sandbox::kBubblewrap:
      return SandboxKind::kBubblewrap;
    case Environment::Sandbox::kDocker:
      return SandboxKind::kDocker;
    case Environment::Sandbox::kNull:
      return SandboxKind::kNull;
  }
  PROCTOR_ASSERT(false);
}

Result<SandboxEngine*> Engines::engine_for(const Environment& environment) {
  const SandboxKind kind = wanted_sandbox(environment);
  if (kind == SandboxKind::kNull && null_ == Null::kForbidden) {
    return Error{Errc::kInvalid, "sandbox null: only for benchmarks (proctor-worker --allow-null)"};
  }
  if (kind == SandboxKind::kDocker && environment.image.empty()) {
    return Error{Errc::kInvalid, "sandbox docker: the contract names no image"};
  }
  if (kind == SandboxKind::kDocker && !docker_answers(options_.docker_socket)) {
    return Error{Errc::kUnavailable, "no Docker Engine answers at " + options_.docker_socket +
                                         " for image " + environment.image};
  }
  return get(kind);
}

Result<SandboxEngine*> Engines::wait_for(const Environment& environment, std::stop_token cancel) {
  constexpr std::chrono::milliseconds kPoll{500};
  const auto until = std::chrono::steady_clock::now() + engine_wait_;
  std::mutex nobody_elses;
  std::condition_variable_any woken;
  for (bool said = false;; said = true) {
    Result<SandboxEngine*> engine = engine_for(environment);
    if (engine.ok()) {
      if (said) log::info("the Docker Engine answers again");
      return engine;
    }
    const bool away = wanted_sandbox(environment) == SandboxKind::kDocker &&
                      engine.error().code == Errc::kUnavailable;
    if (!away || cancel.stop_requested() || until <= std::chrono::steady_clock::now())
      return engine;
    if (!said) log::warn(engine.error().detail + ": waiting for it");
    std::unique_lock lock(nobody_elses);
    woken.wait_for(lock, cancel, kPoll, [] { return false; });
  }
}

Result<SandboxEngine*> Engines::get(SandboxKind kind) {
  const std::lock_guard lock(mutex_);
  if (const auto it = open_.find(kind); it != open_.end()) return it->second.get();
  PROCTOR_TRY(auto engine, open_sandbox_engine(kind, options_));
  return open_.emplace(kind, std::move(engine)).first->second.get();
}

void Engines::clean_up() {
  for (const SandboxKind kind : {SandboxKind::kBubblewrap, SandboxKind::kDocker}) {
    if (kind == SandboxKind::kDocker && !docker_answers(options_.docker_socket)) continue;
    const Result<SandboxEngine*> engine = get(kind);
    if (!engine.ok()) continue;
    if (const Status done = (*engine)->clean_up(); !done.ok()) {
      log::warn("clean up " + std::string(to_string(kind)) + ": " + done.error().detail);
    }
  }
}

std::vector<std::string> Engines::features() {
  std::vector<std::string> out;
  for (const SandboxKind kind : {SandboxKind::kBubblewrap, SandboxKind::kDocker}) {
    if (kind == SandboxKind::kDocker && !docker_answers(options_.docker_socket)) continue;
    const Result<SandboxEngine*> engine = get(kind);
    if (engine.ok()) {
      out.push_back("sandbox:" + std::string(to_string(kind)));
    } else {
      not_to_be_had(kind, engine.error());
    }
  }
  return out;
}

// Asked again and again: said once.
void Engines::not_to_be_had(SandboxKind kind, const Error& why) {
  const std::lock_guard lock(mutex_);
  if (!told_.insert(kind).second) return;
  log::warn(std::string(to_string(kind)) + " is not to be had here: " + why.detail);
}

}  // namespace proctor
