#pragma once
// Which sandbox an environment asks for, said once for who plans, who checks a host and who runs
// it.  Pure.
#include "common/contract/contract.h"

namespace proctor {

// Never kAuto.  A host may run images by another runtime than Docker's: that is a worker's matter.
inline Environment::Sandbox wanted_sandbox(const Environment& e) {
  if (e.sandbox != Environment::Sandbox::kAuto) return e.sandbox;
  return e.image.empty() ? Environment::Sandbox::kBubblewrap : Environment::Sandbox::kDocker;
}

}  // namespace proctor
