#pragma once
// ToolServer: the socket on which a run's agent speaks MCP, one message a line, as a client's
// "stdio" server does behind a copying program.  In a folder of its own, which is of one run, so
// that nobody needs a token.  Decides nothing.
//
// Its clients are foreign code: their number, a line, and what they leave unread are bounded, and
// nothing that one does ends the server or the run.  One thread that accepts and one for each
// client; calls of tools take turns, everything else is answered at once.
// Errors: kUnavailable, the socket cannot be had.
#include <memory>
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/tools/tool_session.h"

namespace proctor {

inline constexpr std::size_t kToolClientsMax = 8;

class ToolServer {
 public:
  // Makes `dir`/socket; `dir` exists and has none.  `session` outlives this, and is called on the
  // threads of this, one at a time.
  static Result<std::unique_ptr<ToolServer>> start(const fs::path& dir, ToolSession& session,
                                                   std::string instructions);
  ToolServer(const ToolServer&) = delete;
  ToolServer& operator=(const ToolServer&) = delete;
  // Cuts every client off and waits for the call under way.
  ~ToolServer();

 private:
  struct Impl;
  explicit ToolServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace proctor
