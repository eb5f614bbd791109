// When the suite dares what: an engine that isolates nothing, and runs nothing but what stands
// still.
#include "worker/selftest/containment.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "common/base/subprocess.h"
#include "worker/selftest/isolation_proof.h"

using namespace proctor;

namespace {

using Verdict = ContainmentResult::Verdict;

struct Seen {
  int opened = 0;
  std::vector<std::string> commands;
};

// Nothing is between the command and the host.
class NoSandbox final : public Sandbox {
 public:
  NoSandbox(SandboxSpec spec, Seen& seen, bool visible)
      : spec_(std::move(spec)), seen_(seen), visible_(visible) {}
  Result<ExecOutcome> run(const ExecSpec& exec, std::stop_token cancel) override {
    seen_.commands.push_back(exec.command);
    ExecOutcome outcome;
    if (exec.command.find("/attack stand ") == std::string::npos) return outcome;
    if (!visible_) {
      // As of an engine on another machine: it says that it stands, and nobody is to be seen.
      PROCTOR_CHECK_OK(write_file(exec.stdout_file, "STANDS\n", Durability::kLazy));
      while (!cancel.stop_requested()) ::usleep(1000);
      outcome.end = ExecOutcome::End::kCancelled;
      return outcome;
    }
    std::string command = exec.command;
    const std::string at = kAttackAt;
    command.replace(command.find(at), at.size(), spec_.mounts.front().host.string());
    CommandSpec spec;
    spec.argv = {"/bin/sh", "-c", command};
    PROCTOR_TRY(Child child,
                Child::start(spec, exec.stdout_file, Child::Lifetime::kDiesWithParent));
    while (!cancel.stop_requested() && child.running()) ::usleep(1000);
    outcome.end = ExecOutcome::End::kCancelled;
    return outcome;  // the child is killed
  }

 private:
  SandboxSpec spec_;
  Seen& seen_;
  bool visible_;
};

class NoEngine final : public SandboxEngine {
 public:
  NoEngine(Seen& seen, bool visible) : seen_(seen), visible_(visible) {}
  SandboxKind kind() const override { return SandboxKind::kBubblewrap; }
  Result<std::unique_ptr<Sandbox>> open(const SandboxSpec& spec) override {
    ++seen_.opened;
    return std::unique_ptr<Sandbox>(std::make_unique<NoSandbox>(spec, seen_, visible_));
  }
  std::map<std::string, std::string> enforcement() const override { return {}; }
  Status clean_up(const std::set<std::string>&) override { return ok_status(); }

 private:
  Seen& seen_;
  bool visible_;
};

std::vector<ContainmentResult> all_cases(Seen& seen, bool visible) {
  const TempDir dir = TempDir::create("containment").value();
  NoEngine engine(seen, visible);
  auto suite = Containment::prepare(engine, {}, dir.path());
  REQUIRE(suite.ok());
  std::vector<ContainmentResult> out;
  for (const ContainmentCase& what : containment_cases()) out.push_back(suite->run(what));
  return out;
}

void check_untried(const std::vector<ContainmentResult>& results, const Seen& seen) {
  std::size_t harmless = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (containment_cases()[i].harmless) ++harmless;
    if (!containment_cases()[i].harmless) CHECK(results[i].verdict == Verdict::kNotTried);
  }
  CHECK(seen.commands.size() == harmless);
}

}  // namespace

TEST_SUITE("containment") {
  TEST_CASE("nothing that harms is tried before the proof") {
    const TempDir dir = TempDir::create("containment").value();
    Seen seen;
    NoEngine engine(seen, true);
    auto suite = Containment::prepare(engine, {}, dir.path());
    REQUIRE(suite.ok());
    for (const ContainmentCase& what : containment_cases())
      if (!what.harmless) CHECK(suite->run(what).verdict == Verdict::kNotTried);
    CHECK(seen.opened == 0);
  }

  TEST_CASE("what is no sandbox at all is found and nothing that harms is tried in it") {
    Seen seen;
    const auto results = all_cases(seen, true);
    CHECK(results.front().verdict == Verdict::kEscaped);
    for (const char* part : {"the pid namespace is the host's", "there is no filter",
                             "/ of the host is to be seen at /"})
      CHECK_MESSAGE(results.front().detail.find(part) != std::string::npos, results.front().detail);
    check_untried(results, seen);
  }

  TEST_CASE("what is not to be seen from here is not proved") {
    Seen seen;
    const auto results = all_cases(seen, false);
    CHECK(results.front().verdict == Verdict::kNotTried);
    CHECK(results.front().detail.find("not to be seen") != std::string::npos);
    check_untried(results, seen);
    // Nor is it when nothing has escaped in between.
    const TempDir dir = TempDir::create("containment").value();
    NoEngine engine(seen, false);
    auto suite = Containment::prepare(engine, {}, dir.path());
    REQUIRE(suite.ok());
    CHECK(suite->run(containment_cases().front()).verdict == Verdict::kNotTried);
    CHECK(suite->run(containment_cases().back()).verdict == Verdict::kNotTried);
  }
}
