#pragma once
// WayOut: what a sandbox with an allow-list is given instead of a network.  Its network is empty;
// it is shown a folder with the socket of a FilterProxy and the program that connects a port of its
// own loopback to that (forward/main.cc), and its environment names this port as the proxy for http
// and https.  There is nothing else to reach: not the host's loopback, not a name server, not a
// neighbour.  The same in every kind of sandbox; no bridges, no address pools, nothing on the host
// but a folder.
// Blocking; one thread.  Fails with kUnavailable, kInvalid (an entry of the list).
#include <memory>

#include "worker/network/filter_proxy.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
inline constexpr const char* kNetworkAt = "/proctor/network";
inline constexpr const char* kProxyUrl = "http://127.0.0.1:3128";

// The inner end of a way out, in a folder that the sandbox is shown at `shown_at` with a socket: a
// port of its loopback leads there.  Several ways of one sandbox have one inner end.
Status put_forward_program(const fs::path& dir);
void add_way(SandboxSpec& spec, const std::string& port, const std::string& shown_at);

class WayOut {
 public:
  // Fills `dir`, which exists and is empty, or is as an earlier life of this worker left it.
  // `on_record`: as in FilterProxy.
  static Result<std::unique_ptr<WayOut>> open(const fs::path& dir, FilterProxy::Options options,
                                              FilterProxy::OnRecord on_record);
  WayOut(const WayOut&) = delete;
  WayOut& operator=(const WayOut&) = delete;
  ~WayOut();  // everything that still goes through it is cut off

  // Sandboxes of this spec have this way out as long as this object lives.
  void give_to(SandboxSpec& spec) const;

 private:
  WayOut(fs::path dir, std::unique_ptr<FilterProxy> proxy);
  fs::path dir_;
  std::unique_ptr<FilterProxy> proxy_;
};
}  // namespace proctor
