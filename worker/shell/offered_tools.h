#pragma once
// The tools of a run as an agent in a sandbox finds them: a folder, shown read-only at kToolsAt,
// with the socket on which they are served by MCP, the program that any MCP client starts as a
// "stdio" server (`forward --stdio`), and a file that says so in the words of many clients.
//
// Its calls are done on the threads of its server, one at a time; everything here is for the slot's
// thread.  The hooks' owners outlive close().
// Errors: kUnavailable, the socket cannot be had, or the workspace not opened.
#include <memory>
#include <stop_token>

#include "worker/shell/run_tools.h"
#include "worker/tools/tool_session.h"

namespace proctor {

inline constexpr const char* kToolsAt = "/proctor/tools";

class OfferedTools {
 public:
  // In `dir`, which is empty or as an earlier life left it.  `run`: whoever ends it ends the call
  // under way and all further ones.
  static Result<std::unique_ptr<OfferedTools>> open(const fs::path& dir, RunToolPlace place,
                                                    ToolSessionRules rules, RunToolHooks hooks,
                                                    std::chrono::milliseconds time,
                                                    const std::stop_token& run);
  OfferedTools(const OfferedTools&) = delete;
  OfferedTools& operator=(const OfferedTools&) = delete;
  ~OfferedTools();  // close()

  void show_in(SandboxSpec& spec) const;
  // Nobody is served any more, and no command runs.  May be called again.
  void close();
  // After close().
  RunTools& work() { return *work_; }

 private:
  explicit OfferedTools(fs::path dir) : dir_(std::move(dir)) {}
  const fs::path dir_;
  std::stop_source stop_;
  std::unique_ptr<std::stop_callback<std::function<void()>>> run_;
  std::unique_ptr<RunTools> work_;
  std::unique_ptr<ToolServer> server_;
};

}  // namespace proctor
