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

// Follows a request's body through the bytes that come.
class BodyScanner {
 public:
  explicit BodyScanner(HttpFraming body) : body_(body) {}
  // How many of the bytes belong to the request; less than all only when done().
  // kInvalid: not chunks as agreed.
  Result<std::size_t> feed(std::string_view bytes);
  bool done() const {
    return body_.kind == HttpFraming::Kind::kChunked ? chunks_.done() : body_.bytes == 0;
  }

 private:
  HttpFraming body_;  // `bytes`: still to come
  ChunkReader chunks_;
};
}  // namespace proctor
