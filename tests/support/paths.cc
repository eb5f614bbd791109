#include "tests/support/paths.h"

namespace proctor::testing {

fs::path source_dir() {
  return PROCTOR_SOURCE_DIR;
}
fs::path build_dir() {
  return PROCTOR_BUILD_DIR;
}

}  // namespace proctor::testing
