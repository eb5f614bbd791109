#include "tests/hostile/weak_runc.h"

namespace proctor::testing {

// The Engine's containers are made by the runc of its PATH.
WeakKind weak_docker() {
  WeakKind kind{"docker", "runc", "bwrap"};
  kind.likewise = "oci";
  kind.engine = PROCTOR_DOCKER_WORDS;
  kind.script = weak_runc_script();
  kind.weaknesses = weak_configurations();
  // Of the other kind of containers our own first process has it, out of the runtime's reach.
  kind.weaknesses.push_back(
      {"no filter", "there is no filter of system calls", "-e 's/\"seccomp\":/\"no-seccomp\":/'"});
  return kind;
}

}  // namespace proctor::testing
