#include "tests/hostile/weak_runc.h"

namespace proctor::testing {

// The Engine's containers are made by the runc of its PATH.
WeakKind weak_kind() {
  WeakKind kind{"docker", "runc", "bwrap"};
  kind.likewise = "oci";
  kind.engine = PROCTOR_DOCKER_WORDS;
  kind.script = weak_runc_script();
  kind.weaknesses = weak_configurations();
  return kind;
}

}  // namespace proctor::testing
