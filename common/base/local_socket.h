#pragma once
// Unix sockets in folders whose paths may be longer than the 107 bytes of an address.
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace proctor {

// A listening, non-blocking stream socket `dir`/socket that anybody who sees the folder may connect
// to; `dir` exists and has none.  kUnavailable, beginning with `what`.
Result<UniqueFd> listen_in(const fs::path& dir, int backlog, const std::string& what);
// Connected to `dir`/socket.  kUnavailable, likewise.
Result<UniqueFd> connect_in(const fs::path& dir, const std::string& what);

}  // namespace proctor
