#pragma once
// A Docker Engine of the test's own, which can be killed and started anew over the same data. While
// it lives PROCTOR_DOCKER_SOCKET names it, for us and for the programs we start.
#include <optional>

#include "tests/support/programs.h"

namespace proctor::testing {

class OwnEngine {
 public:
  // Can this machine run one?  (root, dockerd)
  static bool possible();
  OwnEngine();
  OwnEngine(const OwnEngine&) = delete;
  OwnEngine& operator=(const OwnEngine&) = delete;
  ~OwnEngine();  // its containers end with it

  void start();
  void kill();  // SIGKILL: nobody tells its containers

 private:
  bool answers() const;
  fs::path socket() const { return dir_.path() / "sock"; }
  TempDir dir_;
  std::string before_;  // PROCTOR_DOCKER_SOCKET
  std::optional<Child> network_, child_;
};

}  // namespace proctor::testing
