#pragma once
// BoxNetwork: the shared network of sandboxes whose runtime is a process of ours.  A network
// namespace that nobody but these descriptors and the sandboxes holds: nothing of it can be left
// over.  Without root it lies in a user namespace of its own, which is entered first.
// Fails with kUnavailable: namespaces cannot be had, no process.
// Source: network_namespaces(7), user_namespaces(7), setns(2).
#include <memory>

#include "common/base/owned.h"
#include "worker/sandbox/shared_network.h"
#include "worker/sandbox/user_counts.h"

namespace proctor {

class BoxNetwork final : public SharedNetwork {
 public:
  static Result<std::shared_ptr<SharedNetwork>> make();
  Result<bool> accepts(std::uint16_t port) override;
  // The calling process is in it from now on.  Async-signal-safe; for a child between fork and
  // exec.
  bool enter() const;
  // What comes after: who is in this network's own user namespace enters none beside it, only one
  // below.  Likewise.
  bool enter_counts(const UserCounts& counts) const;

 private:
  BoxNetwork(UniqueFd user, UniqueFd network)
      : user_(std::move(user)), network_(std::move(network)) {}
  UniqueFd user_, network_;  // user_: invalid where the namespace belongs to ours
};

}  // namespace proctor
