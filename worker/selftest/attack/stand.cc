// Attacks nobody: stands still, so that the host can look at a process of this sandbox.
#include <sys/prctl.h>
#include <unistd.h>

#include "worker/selftest/attack/attack.h"
#include "worker/selftest/stand_name.h"

namespace attack {

// The name comes first: who reads the line below finds a process of that name on its own kernel.
void stand(const Arguments&) {
  ::prctl(PR_SET_NAME, proctor::kStandName, 0, 0, 0);
  note("%s", proctor::kStandsLine);
  for (;;) ::pause();
}

}  // namespace attack
