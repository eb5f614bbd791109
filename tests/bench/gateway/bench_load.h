#pragma once
// Clients of a bench: calls at fixed times whatever the answers do, calls as fast as answers come,
// and streams.  Threads of this process, which have ended when a function returns.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace proctor::bench {

// Where calls go: a Unix socket, or a port where `path` is empty.
struct Target {
  std::string path;
  std::uint16_t port = 0;
  std::string token = "none";
};
inline constexpr std::size_t kConnections = 16;  // what a session lets go on at a time
inline constexpr std::size_t kSmall = 1'024, kAgent = 90 * 1'024;  // bytes of a request

// Milliseconds of each call from the time at which it should have begun, sorted: a call that waits
// for the one before it has waited.
std::vector<double> calls_at_rate(const Target& target, std::size_t bytes, double per_s,
                                  double seconds);
// Calls in a second.
double calls_at_will(const Target& target, std::size_t bytes, double seconds);

struct Streamed {
  std::vector<double> first_ms;  // from the request to the first event
  std::vector<double> event_us;  // from the provider's hand to ours
};
// One stream on each connection; sorted.
Streamed streams(const Target& target);

// Of a sorted list.
double quantile(const std::vector<double>& sorted, double q);

}  // namespace proctor::bench
