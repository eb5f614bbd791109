#pragma once
// Keeps every core of this host busy while it lives: the load under which checks are screened.
#include <thread>
#include <vector>

namespace proctor::cli {

class BusyCores {
 public:
  BusyCores();  // one spinning thread for each core
  BusyCores(const BusyCores&) = delete;
  BusyCores& operator=(const BusyCores&) = delete;
  ~BusyCores() = default;  // each thread is asked to stop and waited for

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace proctor::cli
