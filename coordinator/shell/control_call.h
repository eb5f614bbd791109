#pragma once
// The operator's end of the control socket (control_server.h): one question and its answer.
//
// An act that nobody takes up in time is withdrawn, and then it is never done: the coordinator says
// that it takes it up before it does (ControlRequest::taken), and the kernel decides whether that
// word or our hanging up came first.  So a coordinator that hangs, or is stopped, does nothing
// later of which its operator was told that it was not done. Any thread; blocks as long as the
// patience says.
#include <chrono>
#include <functional>

#include "common/base/files.h"
#include "coordinator/shell/control_protocol.h"

namespace proctor {

struct ControlPatience {
  std::chrono::milliseconds notice{2'000};     // of silence, until `waits` is called, once
  std::chrono::milliseconds taken{10'000};     // until an act is taken up, a question answered
  std::chrono::milliseconds answered{75'000};  // longer than the server lets a question lie
};

struct ControlHeard {
  enum class What {
    kAnswer,
    kNothing,  // it was withdrawn: nothing is done, and nothing will be
    kTaken,    // it was taken up, and how it ended nobody has said
  };
  What what = What::kNothing;
  ControlAnswer answer{};  // of kAnswer
  bool ended = false;      // the other end has gone, and not our patience
};

// Sends the request, as an act unless it only asks (kActExplain).  Errors are connect_control()'s;
// kInvalid: it is too long; kCorrupt: the answer is none.
Result<ControlHeard> call_control(const fs::path& socket, ControlRequest request,
                                  const ControlPatience& patience,
                                  const std::function<void()>& waits);

}  // namespace proctor
