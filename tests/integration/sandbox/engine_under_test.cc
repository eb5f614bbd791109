#include "tests/integration/sandbox/engine_under_test.h"

#include <doctest/doctest.h>

#include <cstdlib>

namespace proctor::testing {

SandboxKind sandbox_under_test() {
  const char* word = std::getenv("PROCTOR_TEST_SANDBOX");  // NOLINT(concurrency-mt-unsafe)
  for (const SandboxKind kind : {SandboxKind::kBubblewrap, SandboxKind::kDocker, SandboxKind::kOci})
    if (word != nullptr && to_string(kind) == word) return kind;
  FAIL("PROCTOR_TEST_SANDBOX has to name the kind of sandbox: bubblewrap, docker or oci");
  return SandboxKind::kNull;
}

std::unique_ptr<Bench> make_bench() {
  switch (sandbox_under_test()) {
    case SandboxKind::kBubblewrap:
      return make_bubblewrap_bench();
    case SandboxKind::kDocker:
      return make_docker_bench();
    case SandboxKind::kOci:
      return make_oci_bench();
    case SandboxKind::kNull:
      break;
  }
  return nullptr;
}

}  // namespace proctor::testing
