#include "worker/sandbox/exit_status.h"

#include <signal.h>

#include <algorithm>
#include <iterator>

namespace proctor {

void set_exit(ExecOutcome& out, int code) {
  constexpr int kDeaths[] = {SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,  SIGFPE, SIGKILL,
                             SIGSEGV, SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGXFSZ, SIGSYS};
  const int signal = code - 128;
  const bool died = std::find(std::begin(kDeaths), std::end(kDeaths), signal) != std::end(kDeaths);
  out.end = died ? ExecOutcome::End::kSignalled : ExecOutcome::End::kExited;
  out.signal = died ? signal : 0;
  out.exit_code = code;
}

}  // namespace proctor
