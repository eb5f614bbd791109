#pragma once
// What every bench needs: to end with a message when something is not as it must be, and to know
// how much memory a process has.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "common/base/result.h"

namespace proctor::bench {

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result.ok()) give_up(result.error().detail);
  return std::move(result).value();
}
inline void must(const Status& status) {
  if (!status.ok()) give_up(status.error().detail);
}

// The `proctor` to measure: $PROCTOR_BIN, else the one built with the bench.
inline std::string program(const char* built) {
  const char* from_env = std::getenv("PROCTOR_BIN");
  return from_env != nullptr ? from_env : built;
}

// The nth argument, counted from 1.
inline std::uint32_t number_of(int argc, char** argv, int nth, std::uint32_t otherwise) {
  return nth < argc ? static_cast<std::uint32_t>(std::strtoul(argv[nth], nullptr, 10)) : otherwise;
}

// The machine-wide monotonic clock: processes can compare.
inline std::int64_t mono_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
inline double seconds_since(std::int64_t ns) {
  return static_cast<double>(mono_ns() - ns) / 1e9;
}

inline void wait_for(const char* what, const std::function<bool()>& condition,
                     std::chrono::seconds at_most = std::chrono::seconds(60)) {
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (!condition()) {
    if (until < std::chrono::steady_clock::now())
      give_up(std::string("waited in vain for ") + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// Resident memory in bytes; 0: there is no such process.
inline double resident_bytes(const std::string& process = "self") {
  std::ifstream statm("/proc/" + process + "/statm");
  std::uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace proctor::bench
