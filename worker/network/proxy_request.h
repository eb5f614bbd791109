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

namespace proctor {
inline constexpr std::size_t kProxyHeadBytes = std::size_t{32} << 10;
inline constexpr std::size_t kProxyHeadersMax = 100;

// What follows the head and still belongs to the request.
struct RequestBody {
  enum class Kind { kNone, kLength, kChunked };
  Kind kind = Kind::kNone;
  std::uint64_t bytes = 0;  // kLength
};

struct ProxyRequest {
  std::string method;
  bool tunnel = false;  // CONNECT: bytes both ways from here on
  ProxyTarget target;
  // What the server is sent instead: path only, our own Host, no word to or about proxies, one
  // request per connection.  Empty for a tunnel.
  std::string head;
  RequestBody body;
};

// How many bytes of `bytes` are the head, with its empty line; 0: not all of it is here.
std::size_t head_length(std::string_view bytes);
// `head` as head_length() found it.
Result<ProxyRequest> parse_proxy_request(std::string_view head);

// Follows a request's body through the bytes that come.
class BodyScanner {
 public:
  explicit BodyScanner(RequestBody body);
  // How many of the bytes belong to the request; less than all only when done().
  // kInvalid: not chunks as agreed.
  Result<std::size_t> feed(std::string_view bytes);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State { kLength, kSize, kExtension, kSizeEnd, kData, kDataEnd, kTrailer, kDone };
  Status on_byte(char c);
  Status end_of_size();
  State state_ = State::kDone;
  std::uint64_t left_ = 0;
  std::size_t digits_ = 0, spoken_ = 0;  // of a size; of extensions and trailers in all
  std::size_t line_ = 0;                 // of a trailer
  char before_ = 0;
};
}  // namespace proctor
