#pragma once
// What of the host the attacks reach for: a file, sockets that listen with and without a path, a
// port on the loopback.  Owns them; nobody answers there.  Fails with errno_error's codes.
#include <string>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {

class Bait {
 public:
  // In `dir`, which no sandbox shows.
  static Result<Bait> lay(const fs::path& dir);
  // "secret=... engine=... port=... abstract=... mark=...": the attacks' words.
  std::string words() const;

 private:
  fs::path secret_, socket_;
  std::string abstract_, program_;
  int port_ = 0;
  UniqueFd file_socket_, abstract_socket_, tcp_;
};

}  // namespace proctor
