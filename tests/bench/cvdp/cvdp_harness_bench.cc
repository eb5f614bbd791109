// cvdp.harness_overhead and cvdp.golden64_speedup (docs/cvdp.md): `proctor cvdp run` beside
// `docker compose run`, by harness.py.
#include <unistd.h>

#include "tests/bench/bench_support.h"

// scripts/bench looks for the names of figures here.
constexpr const char* kFigures[] = {"cvdp.harness_overhead", "cvdp.golden64_speedup"};

int main() {
  std::printf("%s, %s\n", kFigures[0], kFigures[1]);
  std::fflush(stdout);
  const std::string proctor = proctor::bench::program(PROCTOR_BUILT);
  ::execlp("python3", "python3", PROCTOR_HARNESS_SCRIPT, proctor.c_str(), PROCTOR_SOURCE_DIR,
           static_cast<char*>(nullptr));
  proctor::bench::give_up("no python3");
}
