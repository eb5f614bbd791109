#include "tests/hostile/kind.h"

#include "tests/hostile/weak.h"
#include "tests/integration/sandbox/engine_under_test.h"

namespace proctor::testing {

std::unique_ptr<Kind> make_kind(Tools tools) {
  switch (sandbox_under_test()) {
    case SandboxKind::kBubblewrap:
      return make_bubblewrap_kind();
    case SandboxKind::kDocker:
      return make_docker_kind(tools);
    case SandboxKind::kOci:
      return make_oci_kind(tools);
    case SandboxKind::kNull:
      break;
  }
  return nullptr;
}

WeakKind weak_kind() {
  switch (sandbox_under_test()) {
    case SandboxKind::kDocker:
      return weak_docker();
    case SandboxKind::kOci:
      return weak_oci();
    case SandboxKind::kBubblewrap:
    case SandboxKind::kNull:
      break;
  }
  return weak_bubblewrap();
}

}  // namespace proctor::testing
