#pragma once
// Which OCI runtime this test binary is about: that of its name, else $PROCTOR_OCI_RUNTIME, else
// the engine's own choice.
#include <cstdlib>
#include <string>

namespace proctor::testing {

inline std::string oci_runtime_under_test() {
#ifdef PROCTOR_TEST_OCI_RUNTIME
  return PROCTOR_TEST_OCI_RUNTIME;
#else
  const char* runtime = std::getenv("PROCTOR_OCI_RUNTIME");  // NOLINT(concurrency-mt-unsafe)
  return runtime == nullptr ? "" : runtime;
#endif
}

}  // namespace proctor::testing
