#pragma once
// A user namespace and a mount namespace of this process's own, in which one without root may mount
// what such a namespace allows, overlays.  Users and groups keep their numbers; whoever is
// started by exec(2) has no more rights in it than outside.  All mounts in it go with its last
// process, whatever that dies of.  Nobody outside sees them.
// Source: user_namespaces(7), mount_namespaces(7).
#include "common/base/result.h"

namespace proctor {

// Moves this process into such namespaces, once it is known from a child that one may mount there.
// After an error it is where it was.  kUnavailable: not on this host, or it has threads already.
// Not thread-safe.
Status enter_own_mounts();
// Has it been moved?  Any thread, once enter_own_mounts() has returned.
bool has_own_mounts();

}  // namespace proctor
