// When the suite dares what: an engine that isolates nothing, and runs nothing but what stands
// still.
#include "worker/selftest/containment.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <thread>

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

// Says and ends as it is told, after so long; what is not an attack costs as long as the host is
// slow.
struct Told {
  std::string said;
  ExecOutcome::End end = ExecOutcome::End::kTimedOut;
  std::chrono::milliseconds attack{0}, nothing{0};
};

class TellingEngine final : public SandboxEngine {
 public:
  explicit TellingEngine(Told told) : told_(std::move(told)) {}
  SandboxKind kind() const override { return SandboxKind::kBubblewrap; }
  Result<std::unique_ptr<Sandbox>> open(const SandboxSpec&) override {
    return std::unique_ptr<Sandbox>(std::make_unique<Telling>(told_));
  }
  std::map<std::string, std::string> enforcement() const override { return {}; }
  Status clean_up(const std::set<std::string>&) override { return ok_status(); }

 private:
  struct Telling final : Sandbox {
    explicit Telling(const Told& t) : told(t) {}
    Result<ExecOutcome> run(const ExecSpec& exec, std::stop_token) override {
      const bool attacks = exec.command.find("/attack ") != std::string::npos;
      PROCTOR_CHECK_OK(write_file(exec.stdout_file, attacks ? told.said : "", Durability::kLazy));
      PROCTOR_CHECK_OK(write_file(exec.stderr_file, "", Durability::kLazy));
      std::this_thread::sleep_for(attacks ? told.attack : told.nothing);
      ExecOutcome outcome;
      if (attacks) outcome.end = told.end;
      return outcome;
    }
    const Told& told;
  };
  Told told_;
};

// What comes of an attack that may be stopped by its time limit, of a millisecond.
ContainmentResult result_of(const Told& told) {
  const TempDir dir = TempDir::create("containment").value();
  TellingEngine engine(told);
  auto suite = Containment::prepare(engine, {}, dir.path());
  REQUIRE(suite.ok());
  ContainmentCase what{"hoarder",
                       "more is not to be had",
                       "hold",
                       {ExecOutcome::End::kTimedOut, ExecOutcome::End::kMemory}};
  what.harmless = true;
  what.timeout = std::chrono::milliseconds(1);
  return suite->run(what);
}

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

  TEST_CASE("an attack whose time is over is judged by what it had") {
    using End = ExecOutcome::End;
    CHECK(result_of({"3 MiB in sockets\n", End::kTimedOut}).verdict == Verdict::kContained);
    const ContainmentResult had = result_of({"BEYOND: 9 MiB, where 4 are allowed\n"});
    CHECK(had.verdict == Verdict::kEscaped);
    CHECK(had.detail.find("and it had 9 MiB, where 4 are allowed") != std::string::npos);
    // Somebody found it too much in time.
    CHECK(result_of({"BEYOND: 9 MiB, where 4 are allowed\n", End::kMemory}).verdict ==
          Verdict::kContained);
    CHECK(result_of({"ESCAPED: 9 MiB\n", End::kMemory}).verdict == Verdict::kEscaped);
  }

  TEST_CASE("how long an engine needs to end an attack is held against what nothing costs then") {
    using std::chrono::milliseconds;
    const Told late{"", ExecOutcome::End::kTimedOut, milliseconds(4'000), milliseconds(0)};
    const ContainmentResult alone = result_of(late);
    CHECK(alone.verdict == Verdict::kEscaped);
    CHECK(alone.detail.find("ms to end it") != std::string::npos);
    Told loaded = late;
    loaded.nothing = milliseconds(1'000);  // the host is slow in everything
    CHECK(result_of(loaded).verdict == Verdict::kContained);
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
