#pragma once
// Which OCI runtime tests are about: $PROCTOR_OCI_RUNTIME, else the engine's own choice.
#include <cstdlib>
#include <string>

namespace proctor::testing {

inline std::string oci_runtime_under_test() {
  const char* runtime = std::getenv("PROCTOR_OCI_RUNTIME");  // NOLINT(concurrency-mt-unsafe)
  return runtime == nullptr ? "" : runtime;
}

}  // namespace proctor::testing
