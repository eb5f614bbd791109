#pragma once
// SharedNetwork: a network of its own, with a loopback and no way to anywhere, that several
// sandboxes are in together: a check and the services beside it.  Two of them have nothing in
// common, so that the same port is free in each.  Made by SandboxEngine::open_network().
//
// It ends with its last sandbox and this object, also when the worker is killed; what the engine
// itself keeps of it is found by its label, as every sandbox is.  One object, one thread.
#include <cstdint>
#include <string>

#include "common/base/result.h"

namespace proctor {

class SharedNetwork {
 public:
  SharedNetwork() = default;
  SharedNetwork(const SharedNetwork&) = delete;
  SharedNetwork& operator=(const SharedNetwork&) = delete;
  virtual ~SharedNetwork() = default;  // after the sandboxes in it
  // Does somebody accept connections at this port of its loopback now?  The connection is closed at
  // once.  kUnavailable: it cannot be asked.
  virtual Result<bool> accepts(std::uint16_t port) = 0;
  // The container that keeps it; empty: none does.
  virtual std::string holder() const { return {}; }
};

}  // namespace proctor
