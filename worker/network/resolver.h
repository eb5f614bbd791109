#pragma once
// Names to addresses, by the host's own resolver configuration, in a way that ends when it is told
// to: a run must not wait for a name server of its agent's choosing.  Thread-safe.
// Fails with kNotFound (there is no such name) and kUnavailable (no answer in time, told to stop).
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "common/base/net_host.h"
#include "common/base/result.h"

namespace proctor {
inline constexpr std::size_t kAddressesMax = 16;  // of one name

// `stop` is a descriptor that turns readable when the answer is no longer wanted.
using Resolve = std::function<Result<std::vector<IpAddress>>(
    const std::string& name, int stop, std::chrono::steady_clock::time_point deadline)>;

Result<std::vector<IpAddress>> resolve_name(const std::string& name, int stop,
                                            std::chrono::steady_clock::time_point deadline);
}  // namespace proctor
