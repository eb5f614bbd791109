#pragma once
// Bytes both ways between a client and the server it was connected to, until one of them ends.
// Blocking; one thread.  Internal to this room.
#include <string>
#include <string_view>

#include "worker/network/proxy_connection.h"
#include "worker/network/proxy_request.h"

namespace proctor {

struct Relayed {
  std::uint64_t sent = 0, received = 0;
  std::string cut;  // why it was ended by us; empty: it was not
};

// `first` goes to the server before anything else; `early` is what the client had said behind its
// head.  A tunnel lasts until both sides have ended; a request until the server has, and nothing
// the client says behind its body is passed on.
Relayed relay(const ProxyContext& context, int client, int server, const ProxyRequest& request,
              std::string_view early);

}  // namespace proctor
