#include <string>

#include "tests/hostile/weak_runc.h"

namespace proctor::testing {

WeakKind weak_oci() {
  WeakKind kind{"oci", "runc", "bwrap"};
  kind.script = weak_runc_script();
  kind.weaknesses = weak_configurations();
  // In a user namespace of its own a container cannot be given what is the host's: that goes first.
  const std::string host_users =
      R"(-e 's/{"path":"[^"]*","type":"user"},//' -e 's/,{"path":"[^"]*","type":"user"}//')"
      R"( -e 's/"uidMappings":/"no-users":/' -e 's/"gidMappings":/"no-groups":/' )";
  for (Weakness& weak : kind.weaknesses) weak.changes = host_users + weak.changes;
  kind.weaknesses.push_back({"no user namespace", "the user namespace is the host's", host_users});
  return kind;
}

}  // namespace proctor::testing
