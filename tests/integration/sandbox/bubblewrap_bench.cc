#include <doctest/doctest.h>
#include <unistd.h>

#include "tests/integration/sandbox/engine_under_test.h"
#include "tests/support/bubblewrap_here.h"

namespace proctor::testing {
namespace {

class BubblewrapBench final : public Bench {
 public:
  BubblewrapBench(TempDir dir, std::string owner, std::unique_ptr<SandboxEngine> engine)
      : dir_(std::move(dir)), owner_(std::move(owner)), engine_(std::move(engine)) {}
  SandboxEngine& engine() override { return *engine_; }
  const fs::path& scratch() override { return dir_.path(); }
  SandboxSpec spec() override {
    SandboxSpec s;
    s.label = "17.2-agent";
    s.workspace = dir_.path() / "workspace";
    if (auto user = OwnUser::take();
        engine_->has_own_users() && user.ok() && (*user)->view(scratch()).ok())
      s.user = *user;  // as runs have it
    s.env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/home/proctor"}};
    return s;
  }
  std::vector<std::string> leftovers() override { return busy_groups_of(owner_); }

 private:
  TempDir dir_;
  std::string owner_;
  std::unique_ptr<SandboxEngine> engine_;
};

}  // namespace

std::unique_ptr<Bench> make_bubblewrap_bench() {
  auto dir = TempDir::create("proctor-sandbox-test");
  REQUIRE(dir.ok());
  REQUIRE(make_dirs(dir->path() / "workspace").ok());
  SandboxOptions options;
  options.owner = "test-" + std::to_string(::getpid());
  auto engine = open_sandbox_engine(SandboxKind::kBubblewrap, options);
  if (!engine.ok()) {
    not_run_without_bubblewrap(engine.error().detail);
    return nullptr;
  }
  return std::make_unique<BubblewrapBench>(std::move(*dir), options.owner, std::move(*engine));
}

}  // namespace proctor::testing
