#pragma once
// An attempt whose worker is killed under it, the life that goes on with it, and what came of it.
#include <fstream>
#include <functional>

#include "common/trace/archive.h"
#include "common/trace/evidence.h"
#include "common/trace/verify.h"
#include "tests/integration/worker/scene.h"

namespace proctor::testing {

struct LeftScene : Scene {
  // One more check, which lasts until its worker has been killed however slow the machine is: it
  // waits for a file, in a folder of the host that the sandbox is shown, to have something in it.
  void hold_acceptance() {
    REQUIRE(make_dirs(gate()).ok());
    REQUIRE(write_file(gate() / "open", "", Durability::kLazy).ok());
    contract.environment.toolchains.push_back({gate().string(), "/opt/gate"});
    Check held = check("held", "until [ -s /opt/gate/open ]; do sleep 0.1; done");
    held.timeout = std::chrono::seconds(180);
    contract.checks.push_back(held);
  }
  fs::path gate() const { return temp.path() / "gate"; }
  const wire::RunningAttempt* seen(const FakeCoordinator& c) const {
    if (c.syncs.empty() || c.syncs.back().running.empty()) return nullptr;
    return &c.syncs.back().running[0];
  }
  // Kills the worker once its only attempt is where `there` wants it.
  void kill_when(FakeCoordinator& c, Child worker,
                 const std::function<bool(const wire::RunningAttempt&)>& there) {
    REQUIRE_MESSAGE(c.until([&] { return seen(c) != nullptr && there(*seen(c)); }), log());
    worker.signal(SIGKILL);
    CHECK(worker.wait(std::chrono::seconds(180)) == 128 + SIGKILL);
    c.buried.insert(c.syncs.back().boot);
    c.syncs.clear();
  }
  // Lets go what hold_acceptance() holds, in the lives that follow.
  void let_go() const {
    if (!fs::exists(gate())) return;
    std::ofstream open(gate() / "open", std::ios::app);  // in place: commands see that
    open << "open\n" << std::flush;
    REQUIRE(open.good());
  }
  // A worker is given this one attempt, and killed once it is there.
  void leave(FakeCoordinator& c, const Method& m,
             const std::function<bool(const wire::RunningAttempt&)>& there,
             const std::vector<std::string>& options = {}) {
    Child worker = start_worker(options);
    REQUIRE(c.connected());
    c.assign({assignment(c, m, 4)}, settings_digest());
    kill_when(c, std::move(worker), there);
    let_go();
  }
  struct Ended {
    wire::ResultMessage result;
    std::string said, events, manifest;  // by the agent; the trace
  };
  // The run directory, which must verify.
  Ended ended(FakeCoordinator& c, AttemptId attempt) {
    REQUIRE_MESSAGE(c.has_result(attempt), log());
    Ended out{c.results.at(attempt), "", "", ""};
    CAPTURE(out.result.rationale);
    CAPTURE(log());
    const fs::path file = temp.path() / "got.tar.zst", dir = temp.path() / "got";
    REQUIRE(write_file(file, c.archives.at(attempt)).ok());
    REQUIRE(unpack_archive(file, dir).ok());
    const VerifyResult verified = verify_run(
        dir, out.result.report, [&](const Usage& u) { return price(settings.cost_model, u); });
    for (const VerifyProblem& problem : verified.problems) FAIL_CHECK(to_string(problem));
    if (auto said = read_file(dir / "agent/stdout", 1 << 20); said.ok()) out.said = *said;
    out.events = read_file(dir / kEventsFile, 1 << 24).value();
    out.manifest = read_file(dir / kManifestFile, 1 << 20).value();
    return out;
  }
  void stop(FakeCoordinator& c, Child& worker) {
    worker.signal(SIGTERM);
    CHECK(c.until([&] { return c.leaves == 1; }));
    CHECK(worker.wait(std::chrono::seconds(180)) == 0);
    CHECK_FALSE(fs::exists(temp.path() / "root/workers/w1/runs"));
    CHECK(fs::is_empty(temp.path() / "root/workers/w1/meters/camp1"));
  }
  // How often `word` is in `text`.
  static std::size_t count(const std::string& text, const std::string& word) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++n;
    return n;
  }
};

}  // namespace proctor::testing
