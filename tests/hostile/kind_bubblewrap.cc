#include <doctest/doctest.h>

#include "tests/hostile/kind.h"
#include "tests/support/bubblewrap_here.h"
#include "worker/sandbox/sandbox.h"

namespace proctor::testing {
namespace {

struct Bubblewrap final : Kind {
  std::string image() const override { return ""; }
};

}  // namespace

std::unique_ptr<Kind> make_bubblewrap_kind() {
  const auto engine =
      open_sandbox_engine(SandboxKind::kBubblewrap, {.owner = "test-hostile", .images = {}});
  if (engine.ok()) return std::make_unique<Bubblewrap>();
  not_run_without_bubblewrap(engine.error().detail);
  return nullptr;
}

}  // namespace proctor::testing
