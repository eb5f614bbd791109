#pragma once
// What one request to the proxy came to: evidence, so nothing of it is a URL's path, a header or a
// credential.
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace proctor {

struct ProxyRecord {
  enum class Verdict {
    kAllowed,      // connected
    kDenied,       // by the allow-list, or for the address its name led to
    kMalformed,    // no request that could be judged
    kUnreachable,  // allowed, and nobody there
  };
  Verdict verdict = Verdict::kMalformed;
  std::string method;  // "CONNECT", "GET"; empty: not known
  std::string host;    // as normalised; empty: not known
  std::uint16_t port = 0;
  std::string why;             // of all but kAllowed, and of one that was cut off
  std::string address;         // connected to
  std::uint64_t sent = 0;      // to the server, bytes
  std::uint64_t received = 0;  // from it
  std::chrono::milliseconds wall{0};
};
std::string_view to_string(ProxyRecord::Verdict verdict);

}  // namespace proctor
