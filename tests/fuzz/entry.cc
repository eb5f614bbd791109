// libFuzzer's way in.  All targets are one program, which builds in a fraction of the time of
// twenty; PROCTOR_FUZZ_TARGET in the environment says which one it is.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/fuzz/targets.h"

namespace {

using Target = void (*)(std::string_view bytes);
Target chosen = nullptr;

Target find(std::string_view name) {
#define PROCTOR_FUZZ_ENTRY(known) \
  if (name == #known) return proctor::fuzz::known::target;
  PROCTOR_FUZZ_TARGETS(PROCTOR_FUZZ_ENTRY)
#undef PROCTOR_FUZZ_ENTRY
  return nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* name = std::getenv("PROCTOR_FUZZ_TARGET");
  chosen = find(name == nullptr ? "" : name);
  if (chosen != nullptr) return 0;
  std::fputs("PROCTOR_FUZZ_TARGET names no target: see tests/fuzz/run\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen({reinterpret_cast<const char*>(data), size});
  return 0;
}
