#pragma once
// The head of one request to the proxy: CONNECT, or plain HTTP with an absolute URL.  What is
// ambiguous is refused rather than repaired: a proxy that reads a request otherwise than the server
// behind it is no filter.  Pure; any thread.
// Fails with kInvalid and a text that names neither user information nor header values.
// Source: RFC 9110, RFC 9112 (sections 3 and 6), RFC 3986.
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "worker/network/allow_list.h"
#include "worker/network/http_message.h"

namespace proctor {
struct ProxyRequest {
  std::string method;
  bool tunnel = false;  // CONNECT: bytes both ways from here on
  ProxyTarget target;
  // What the server is sent instead: path only, our own Host, no word to or about proxies, one
  // request per connection.  Empty for a tunnel.
  std::string head;
  HttpFraming body;
};

// `head` as head_length() found it.
Result<ProxyRequest> parse_proxy_request(std::string_view head);
}  // namespace proctor
