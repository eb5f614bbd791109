#include "tests/hostile/weak_runc.h"

namespace proctor::testing {

WeakKind weak_kind() {
  WeakKind kind{"oci", "runc", "bwrap"};
  kind.script = weak_runc_script();
  kind.weaknesses = weak_configurations();
  return kind;
}

}  // namespace proctor::testing
