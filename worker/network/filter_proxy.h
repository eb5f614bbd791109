#pragma once
// The proxy that is a sandbox's only way out, and its record of each request.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/base/words.h"
#include "worker/network/resolver.h"

namespace proctor {
// How one request to the proxy ended: evidence, so nothing of it is a URL's path, a header or a
// credential.
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
constexpr auto words(ProxyRecord::Verdict) {
  return std::to_array<Word<ProxyRecord::Verdict>>(
      {{"allowed", ProxyRecord::Verdict::kAllowed},
       {"denied", ProxyRecord::Verdict::kDenied},
       {"malformed", ProxyRecord::Verdict::kMalformed},
       {"unreachable", ProxyRecord::Verdict::kUnreachable}});
}

// The bounds of one FilterProxy.
struct ProxyBounds {
  std::size_t connections = 64;  // at a time; others wait
  std::uint64_t requests = 100'000;
  std::uint64_t bytes = std::uint64_t{16} << 30;  // of all connections, both directions
  std::chrono::milliseconds head{20'000};         // from connecting to the end of the head
  std::chrono::milliseconds connect{20'000};      // resolving and connecting
  std::chrono::milliseconds idle{180'000};        // neither direction moves
};

// FilterProxy: the only way out of one sandbox.  An HTTP proxy on a Unix socket in a folder of its
// own, which asks an AllowList about every request, resolves the name itself, judges the addresses
// and connects to one of those it has judged.  Its clients are foreign code: head, time, idleness,
// connections, requests and bytes are bounded, and nothing a client does ends more than its own
// connection.
// One thread that accepts and one for each connection, from start() to the destructor, which cuts
// all of them off and joins them.  `on_record` is called on those threads, one at a time, once for
// every request, when it has ended.
// Fails with kUnavailable (no socket), kInvalid (an entry).
class FilterProxy {
 public:
  struct Options {
    std::vector<std::string> allow;
    ProxyBounds bounds{};
    Resolve resolve = resolve_name;
    // The clock of `idle` and `head`; one that stands still while the sandbox does.
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };
  using OnRecord = std::function<void(const ProxyRecord&)>;

  // Makes `dir`/socket; `dir` exists and has none.
  static Result<std::unique_ptr<FilterProxy>> start(const fs::path& dir, Options options,
                                                    OnRecord on_record);
  FilterProxy(const FilterProxy&) = delete;
  FilterProxy& operator=(const FilterProxy&) = delete;
  ~FilterProxy();

 private:
  struct Impl;
  explicit FilterProxy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};
}  // namespace proctor
