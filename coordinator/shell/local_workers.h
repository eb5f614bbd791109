#pragma once
// LocalWorkers: proctor-worker processes on this machine, for `proctor run`.
// They do not die with the coordinator: killed, it is resumed, and they hand over what they did.
// One that nobody comes back for gives up by itself.
#include <string>
#include <vector>

#include "common/base/subprocess.h"
#include "coordinator/shell/state_folder.h"

namespace proctor {

struct LocalWorkersSpec {
  StateFolder folder;
  std::string endpoint;
  std::uint32_t workers = 2;
  std::uint32_t slots = 2;
  std::vector<std::string> extra;  // further arguments of each
};

class LocalWorkers {
 public:
  // kNotFound: the worker program is not beside this one nor on PATH.
  static Result<LocalWorkers> start(const LocalWorkersSpec& spec);
  LocalWorkers(LocalWorkers&&) noexcept = default;
  LocalWorkers& operator=(LocalWorkers&&) noexcept = default;
  ~LocalWorkers() = default;  // what still runs is killed (Child)
  // The campaign is over: waits a while for each to leave, then ends it.
  void stop();

 private:
  LocalWorkers() = default;
  std::vector<Child> children_;
};

}  // namespace proctor
