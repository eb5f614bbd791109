#include "coordinator/cli/busy_cores.h"

#include <algorithm>

namespace proctor::cli {

BusyCores::BusyCores() {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < cores; ++i)
    threads_.emplace_back([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
      }
    });
}

}  // namespace proctor::cli
