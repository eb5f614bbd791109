// What an agent says to the proxy that is its only way out: whatever passes names one host, to us
// and to the server, and a body ends in one place in whatever pieces it comes.
#include "worker/network/proxy_request.h"

#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::proxy_request {

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

void check_head(const ProxyRequest& request) {
  const std::string_view head = request.head;
  PROCTOR_ASSERT(head_length(head) == head.size());
  PROCTOR_ASSERT(count(head, "\n") == count(head, "\r\n") &&
                 count(head, "\r") == count(head, "\r\n"));
  std::string place = to_string(request.target);
  if (request.target.port == 80) place.resize(place.rfind(':'));
  PROCTOR_ASSERT(count(head, "\r\nhost:") == 1);
  PROCTOR_ASSERT(count(head, "\r\nhost: " + place + "\r\n") == 1);
  PROCTOR_ASSERT(count(head, "\r\nconnection:") == 1 && count(head, "\r\nproxy-") == 0);
  PROCTOR_ASSERT(count(head, "\r\ncontent-length:") + count(head, "\r\ntransfer-encoding:") <= 1);
}

// How many bytes belong to the body, or minus one.
std::ptrdiff_t body_length(HttpFraming body, std::string_view bytes, std::size_t piece) {
  BodyScanner scanner(body);
  std::ptrdiff_t used = 0;
  while (!bytes.empty() && !scanner.done()) {
    const auto fed = scanner.feed(bytes.substr(0, piece));
    if (!fed.ok()) return -1;
    used += static_cast<std::ptrdiff_t>(*fed);
    bytes.remove_prefix(*fed);
  }
  return used;
}

void target(std::string_view bytes) {
  const std::size_t piece = 1 + take_byte(bytes) % 32U;
  const std::size_t length = head_length(bytes);
  if (length == 0) return;
  const auto request = parse_proxy_request(bytes.substr(0, length));
  if (!request.ok()) return;
  PROCTOR_ASSERT(
      parse_net_host(request->target.host.address && !request->target.host.address->is_v4()
                         ? "[" + request->target.host.text + "]"
                         : request->target.host.text) == request->target.host);
  PROCTOR_ASSERT(request->tunnel == request->head.empty());
  if (!request->tunnel) check_head(*request);
  bytes.remove_prefix(length);
  PROCTOR_ASSERT(body_length(request->body, bytes, piece) ==
                 body_length(request->body, bytes, bytes.size() + 1));
}

}  // namespace proctor::fuzz::proxy_request
