// A real proctor-worker with real git and bubblewrap, and a coordinator that the test plays.
#include <algorithm>

#include "common/trace/manifest.h"
#include "tests/integration/worker/small_disk.h"
#include "tests/integration/worker/travelled.h"
#include "tests/support/paths.h"
#include "worker/sandbox/sandbox.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("worker") {
  TEST_CASE("gc makes room and says what it did") {
    Scene scene;
    {
      FakeCoordinator coordinator(scene.socket, 3);
      Child worker = scene.start_worker({"--once"});
      REQUIRE(coordinator.connected());
      coordinator.assign(
          {scene.assignment(coordinator, scene.method("noop", Method::Kind::kNoop), 1)},
          scene.settings_digest());
      REQUIRE_MESSAGE(coordinator.has_result(id(1)), scene.log());
      CHECK(coordinator.until([&] { return coordinator.leaves == 1; }));
      CHECK(worker.wait(std::chrono::seconds(180)) == 0);
    }
    const auto gc = [&](std::vector<std::string> more) {
      CommandSpec spec;
      spec.argv = {(build_dir() / "proctor-worker").string(), "gc", "--root",
                   (scene.temp.path() / "root").string()};
      spec.argv.insert(spec.argv.end(), more.begin(), more.end());
      return run_command(spec).value();
    };
    const CommandOutcome kept = gc({"--max", "1GiB"});
    CHECK(kept.success());
    CHECK(kept.out.starts_with("2 mirrors, trees and setups, "));
    CHECK(kept.out.find("; removed 0, 0.0 MiB; 0 in use\n") != std::string::npos);
    CHECK(gc({}).out.find("; removed 2, ") != std::string::npos);
    CHECK(gc({}).out == "0 mirrors, trees and setups, 0.0 MiB; removed 0, 0.0 MiB; 0 in use\n");
    const CommandOutcome bad = gc({"--max", "much"});
    CHECK(bad.exit_code == 2);
    CHECK(bad.err.find("--max much") != std::string::npos);
  }

  TEST_CASE("an agent whose provider has no room says so by the code its method names") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 3);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    Method full = scene.method("full", Method::Kind::kCommand, "exit 75");
    coordinator.assign({scene.assignment(coordinator, full, 1)}, scene.settings_digest());
    full.overload_exit = 75;
    full.digest = digest_of(full);
    coordinator.assign({scene.assignment(coordinator, full, 2)}, scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(1)), scene.log());
    REQUIRE_MESSAGE(coordinator.has_result(id(2)), scene.log());
    CHECK_FALSE(coordinator.results.at(id(1)).overload);
    CHECK(coordinator.results.at(id(1)).outcome == RunOutcome::kFailure);
    CHECK(coordinator.results.at(id(2)).overload);
    CHECK(coordinator.results.at(id(2)).termination == Termination::kModelOverloaded);
    CHECK(coordinator.results.at(id(2)).infrastructure);
    CHECK(coordinator.results.at(id(2)).outcome == RunOutcome::kInvalid);
    CHECK_FALSE(coordinator.archives.at(id(2)).empty());  // its evidence is kept
  }

  TEST_CASE("noop fails and reference succeeds and a command is judged by what it changed") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 3);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    CHECK(coordinator.syncs[0].worker == WorkerId("w1"));
    // The first may come before it knows whom it offers its slots to.
    CHECK(coordinator.until([&] { return coordinator.syncs.back().slots == 2; }));
    const Method command =
        scene.method("scripted", Method::Kind::kCommand,
                     "grep -q sum \"$PROCTOR_BRIEFING_FILE\" && echo 'echo $(($1 + $2))' > calc.sh"
                     " && echo true > tests/t.sh && test \"$PROCTOR_SEED\" = 7 && exit 3");
    coordinator.assign(
        {scene.assignment(coordinator, scene.method("noop", Method::Kind::kNoop), 0),
         scene.assignment(coordinator, scene.method("reference", Method::Kind::kReference), 1),
         scene.assignment(coordinator, command, 2)},
        scene.settings_digest());
    for (std::uint32_t run = 0; run < 3; ++run) {
      CAPTURE(run);
      REQUIRE_MESSAGE(coordinator.has_result(id(run)), scene.log());
      const wire::ResultMessage& r = coordinator.results.at(id(run));
      CAPTURE(r.rationale);
      CHECK(r.outcome == (run == 0 ? RunOutcome::kFailure : RunOutcome::kSuccess));
      CHECK(r.termination == Termination::kCompleted);
      CHECK(r.epoch == Epoch(3));
      CHECK_FALSE(r.infrastructure);
    }
    const fs::path dir = unpacked(scene, coordinator, id(2));
    const RunReport report = report_of(dir, coordinator.results.at(id(2)).report);
    CHECK(report.run_name == "add/scripted/r1");
    CHECK(report.commit == scene.contract.repository.commit);
    CHECK(report.usage == coordinator.results.at(id(2)).usage);
    CHECK(report.usage.tool_calls == 1);
    CHECK(report.violations == std::vector<std::string>{"protected: tests/t.sh"});
    REQUIRE(report.checks.size() == 2);
    CHECK(report.checks[1].outcome == CheckOutcome::kPass);
    const std::vector<TraceEvent> events = events_of(dir, report);
    REQUIRE(find(events, "briefing") != nullptr);
    CHECK(find(events, "briefing")
              ->payload.at("text")
              .get<std::string>()
              .find("must print the sum") != std::string::npos);
    REQUIRE(find(events, "tool") != nullptr);
    CHECK(find(events, "tool")->actor == Actor::kAgent);
    CHECK(find(events, "tool")->payload.at("exit_code") == 3);
    CHECK(find(events, "tool")->payload.at("ceiling_ms") == 60'000);
    REQUIRE(find(events, "termination") != nullptr);
    CHECK(find(events, "termination")->payload.at("evidence") == find(events, "tool")->seq);
    CHECK(find(events, "mutation") != nullptr);
    CHECK(find(events, "acceptance")->payload.at("id") == "own-tests");
    const std::string patch = read_file(dir / kPatchFile, 1 << 20).value();
    CHECK(patch.find("+echo $(($1 + $2))") != std::string::npos);
    auto manifest = parse_json(read_file(dir / kManifestFile, 1 << 20).value());
    REQUIRE(manifest.ok());
    CHECK(check_manifest(*manifest).ok());
    worker.signal(SIGTERM);
    REQUIRE(coordinator.until([&] { return coordinator.leaves == 1; }));
    CHECK(worker.wait(std::chrono::seconds(180)) == 0);
  }

  TEST_CASE("a worker whose disk is full begins nothing and says so until there is room") {
    Scene scene;
    const std::optional<SmallDisk> disk = SmallDisk::over(scene.temp.path() / "root");
    if (!disk) return;
    FakeCoordinator coordinator(scene.socket, 3);
    Child worker = scene.start_worker();
    const auto offers = [&] {
      return !coordinator.syncs.empty() &&
             std::ranges::count(coordinator.syncs.back().features, "sandbox:bubblewrap") == 1;
    };
    REQUIRE(coordinator.until(offers));
    disk->fill();
    const auto noop = scene.method("noop", Method::Kind::kNoop);
    coordinator.assign({scene.assignment(coordinator, noop, 0)}, scene.settings_digest());
    // Given back, not failed; and nobody assigns to who offers no sandbox.
    REQUIRE_MESSAGE(coordinator.until([&] {
      return std::ranges::any_of(coordinator.syncs, [](const wire::Sync& sync) {
        return std::ranges::count(sync.declined, id(0)) == 1;
      });
    }),
                    scene.log());
    REQUIRE(coordinator.until([&] { return !offers(); }));
    CHECK(coordinator.deliveries.empty());
    CHECK_MESSAGE(
        scene.log().find("nothing is begun here until there is room") != std::string::npos,
        scene.log());
    disk->clear();
    REQUIRE_MESSAGE(coordinator.until(offers), scene.log());
    coordinator.assign({scene.assignment(coordinator, noop, 1)}, scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(1)), scene.log());
    CHECK(coordinator.results.at(id(1)).termination == Termination::kCompleted);
    worker.signal(SIGTERM);
    REQUIRE(coordinator.until([&] { return coordinator.leaves == 1; }));
    CHECK(worker.wait(std::chrono::seconds(180)) == 0);
  }

  TEST_CASE(
      "workspaces have users of their own in runs, and not in probes alone, where this host can") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 3);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    coordinator.assign(
        {scene.assignment(coordinator, scene.method("noop", Method::Kind::kNoop), 1)},
        scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(1)), scene.log());
    const fs::path dir = unpacked(scene, coordinator, id(1));
    const auto manifest = parse_json(read_file(dir / kManifestFile, 1 << 20).value());
    REQUIRE(manifest.ok());
    const auto engine = open_sandbox_engine(SandboxKind::kBubblewrap, {.owner = "manifest-test"});
    REQUIRE(engine.ok());
    const auto user = OwnUser::take();
    const bool own =
        (*engine)->has_own_users() && user.ok() && (*user)->view(scene.temp.path()).ok();
    CHECK(manifest->at("environment").at("enforcement").at("users") == (own ? "own" : "one"));
    const Digest& report = coordinator.results.at(id(1)).report;
    for (const TraceEvent& event : events_of(dir, report_of(dir, report)))
      if (event.type == "workspace.opened")
        CHECK(event.payload.at("users") == (own ? "own" : "one"));
    worker.signal(SIGTERM);
    REQUIRE(coordinator.until([&] { return coordinator.leaves == 1; }));
    CHECK(worker.wait(std::chrono::seconds(180)) == 0);
  }

  TEST_CASE("slots whose sandboxes are one user are refused unless the operator insists") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 3);
    scene.before = {"env", "-u", "PROCTOR_SHARE_USER"};
    Child refused = scene.start_worker({"--one-user"});  // with two slots
    CHECK(refused.wait(std::chrono::seconds(180)) == 2);
    for (const char* word : {"--slots 2", "--one-user", "--slots 1", "--share-user"})
      CHECK_MESSAGE(scene.log().find(word) != std::string::npos, scene.log());
    Child worker = scene.start_worker({"--one-user", "--share-user"});
    REQUIRE_MESSAGE(coordinator.connected(), scene.log());
    worker.signal(SIGTERM);
    REQUIRE(coordinator.until([&] { return coordinator.leaves == 1; }));
    CHECK(worker.wait(std::chrono::seconds(180)) == 0);
  }

  TEST_CASE("a result file of twenty million bytes is read") {
    Scene scene;
    Check tap = Scene::check("tap",
                             "{ echo 1..1; head -c 20000000 /dev/zero | tr '\\0' x | fold -w 1000;"
                             " echo; echo 'ok 1 - a'; } > \"$PROCTOR_RESULTS/out.tap\"");
    tap.reader = ResultReader::kTap;
    tap.result_file = "out.tap";
    tap.fail_to_pass = {"a"};
    scene.contract.checks = {tap};
    FakeCoordinator coordinator(scene.socket, 3);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    coordinator.assign(
        {scene.assignment(coordinator, scene.method("noop", Method::Kind::kNoop), 0)},
        scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), scene.log());
    CAPTURE(coordinator.results.at(id(0)).rationale);
    CHECK(coordinator.results.at(id(0)).outcome == RunOutcome::kSuccess);
  }

  TEST_CASE("an agent that runs out of time is stopped and its tree is judged") {
    Scene scene;
    scene.contract.policy.wall = std::chrono::seconds(5);
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const Method slow = scene.method("slow", Method::Kind::kCommand,
                                     "echo 'echo $(($1 + $2))' > calc.sh; sleep 60");
    coordinator.assign({scene.assignment(coordinator, slow, 0)}, scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), scene.log());
    CHECK(coordinator.results.at(id(0)).termination == Termination::kAgentTimeout);
    CHECK(coordinator.results.at(id(0)).outcome == RunOutcome::kSuccess);
  }

  TEST_CASE("a cancelled attempt ends as cancelled and says so") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const Method slow = scene.method("slow", Method::Kind::kCommand, "sleep 60");
    coordinator.assign({scene.assignment(coordinator, slow, 0)}, scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.until([&] {
      const auto& running = coordinator.syncs.back().running;
      return running.size() == 1 && running[0].stage == wire::Stage::kAgent &&
             running[0].sandbox_started;
    }),
                    scene.log());
    coordinator.say(wire::Cancel{Epoch(0), {id(0)}, "of an old life"});
    coordinator.say(wire::Cancel{Epoch(1), {id(0)}, "no longer wanted"});
    REQUIRE(coordinator.has_result(id(0)));
    CHECK(coordinator.results.at(id(0)).termination == Termination::kOperatorCancel);
    CHECK(coordinator.results.at(id(0)).outcome == RunOutcome::kInvalid);
    CHECK(coordinator.results.at(id(0)).rationale == "no longer wanted");
    const fs::path dir = unpacked(scene, coordinator, id(0));
    const RunReport report = report_of(dir, coordinator.results.at(id(0)).report);
    CHECK_FALSE(report.checks.at(0).outcome.has_value());
    const std::vector<TraceEvent> events = events_of(dir, report);
    REQUIRE(find(events, "cancel.asked") != nullptr);
    CHECK(find(events, "cancel.asked")->payload.at("reason") == "no longer wanted");
    CHECK(report.evidence_seq == find(events, "cancel.asked")->seq);
  }

  TEST_CASE("an attempt that ends at its snapshot points to the event that says why") {
    Scene scene;
    scene.contract.repository.tree = std::string(40, 'f');
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    coordinator.assign(
        {scene.assignment(coordinator, scene.method("noop", Method::Kind::kNoop), 0)},
        scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), scene.log());
    CHECK(coordinator.results.at(id(0)).outcome == RunOutcome::kInvalid);
    const fs::path dir = unpacked(scene, coordinator, id(0));
    const RunReport report = report_of(dir, coordinator.results.at(id(0)).report);
    const std::vector<TraceEvent> events = events_of(dir, report);
    REQUIRE(find(events, "snapshot.refused") != nullptr);
    CHECK(0 < report.evidence_seq);
    CHECK(report.evidence_seq == find(events, "snapshot.refused")->seq);
  }

  TEST_CASE("an assignment that comes twice or late or from an old epoch runs once") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 5);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const auto a = scene.assignment(coordinator, scene.method("noop", Method::Kind::kNoop), 0);
    const auto old = scene.assignment(coordinator, scene.method("noop", Method::Kind::kNoop), 1);
    coordinator.say(wire::Assign{Epoch(4), scene.settings_digest(), {old}});
    coordinator.assign({a}, scene.settings_digest());
    coordinator.assign({a, a}, scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), scene.log());
    REQUIRE(coordinator.until([&] { return coordinator.syncs.back().unacked.empty(); }));
    coordinator.assign({a}, scene.settings_digest());
    const std::size_t chunks = coordinator.chunks;
    REQUIRE(coordinator.next_sync());
    CHECK(coordinator.syncs.back().running.empty());
    CHECK(coordinator.syncs.back().unacked.empty());
    CHECK(coordinator.deliveries.size() == 1);
    CHECK(coordinator.chunks == chunks);
  }

  TEST_CASE("garbage from a coordinator disturbs nothing") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const auto a =
        scene.assignment(coordinator, scene.method("reference", Method::Kind::kReference), 0);
    const std::string good = wire::encode(wire::Assign{Epoch(1), scene.settings_digest(), {a}});
    for (std::size_t cut = 1; cut < good.size(); ++cut) coordinator.say_bytes(good.substr(0, cut));
    coordinator.say_bytes(std::string(1000, '\xff'));
    coordinator.say(wire::Leave{WorkerId("w1"), BootId(1)});
    coordinator.say(wire::Bundle{Digest(), "never asked for", 0, 0});
    coordinator.say(wire::ChunkAck{id(9), 5});
    coordinator.say(wire::Ack{{id(9)}});
    coordinator.say(wire::SyncReply{Epoch(1), "../escape", 100, {}, {}, {}, false});
    coordinator.bundles[a.contract] = "not the contract";
    coordinator.assign({a}, scene.settings_digest());
    REQUIRE(
        coordinator.until([&] { return 1 < coordinator.wants; }));  // refused, and asked for again
    coordinator.bundles[a.contract] = make_bundle(scene.contract, scene.temp.path());
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), scene.log());
    CHECK(coordinator.results.at(id(0)).outcome == RunOutcome::kSuccess);
    CHECK_FALSE(fs::exists(scene.temp.path() / "root/workers/w1/escape"));
  }

  TEST_CASE("an unknown commit is invalid and another host may know it") {
    Scene scene;
    scene.contract.repository.commit = std::string(40, 'a');
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const Method noop = scene.method("noop", Method::Kind::kNoop);
    coordinator.assign({scene.assignment(coordinator, noop, 0)}, scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), scene.log());
    CHECK(coordinator.results.at(id(0)).outcome == RunOutcome::kInvalid);
    CHECK(coordinator.results.at(id(0)).termination == Termination::kInfrastructure);
    CHECK(coordinator.results.at(id(0)).infrastructure);
    CHECK(coordinator.results.at(id(0)).rationale.find("is not in the repository") !=
          std::string::npos);
  }

  TEST_CASE("a contract that a newer build wrote is declined, so that another worker may try") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 3);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const Method noop = scene.method("noop", Method::Kind::kNoop);
    wire::Assignment a = scene.assignment(coordinator, noop, 1);
    std::string form = canonical_form(scene.contract);
    REQUIRE(form.find("\"briefing\":") != std::string::npos);
    form.replace(form.find("\"briefing\":"), 11, "\"aftertime\":1,\"briefing\":");
    std::string body = "proctor-bundle 1 contract " + std::to_string(form.size()) + " 0\n" + form;
    for (const ReferencedFile& file : scene.contract.files) body += file.bytes;
    a.contract = sha256(form);
    coordinator.offer(a.contract, sha256(body).hex() + "\n" + body);
    coordinator.assign({a}, scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(a.attempt), scene.log());
    const wire::ResultMessage& result = coordinator.results.at(a.attempt);
    CHECK(result.infrastructure);
    CHECK_MESSAGE(result.rationale.find("cannot read what the run needs") != std::string::npos,
                  result.rationale);
    CHECK_MESSAGE(result.rationale.find("aftertime") != std::string::npos, result.rationale);
  }

  TEST_CASE(
      "an attempt whose image cannot run here now is given back before anything of it began") {
    Scene scene;
    scene.contract.environment.image = "sha256:" + std::string(64, 'b');
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const Method noop = scene.method("noop", Method::Kind::kNoop);
    coordinator.assign({scene.assignment(coordinator, noop, 0)}, scene.settings_digest());
    const auto given_back = [&] {
      return coordinator.syncs.back().declined == std::vector<AttemptId>{id(0)};
    };
    REQUIRE_MESSAGE(coordinator.until(given_back), scene.log());
    CHECK(coordinator.syncs.back().slots == 2);  // it takes others
    CHECK(coordinator.syncs.back().running.empty());
    CHECK(scene.log().find("is given back: no Docker Engine answers") != std::string::npos);
    CHECK(scene.log().find(scene.contract.environment.image) != std::string::npos);
    // The answer to that Sync was read: it is not said for ever.
    REQUIRE(coordinator.until([&] { return coordinator.syncs.back().declined.empty(); }));
    CHECK(coordinator.results.empty());
  }

  TEST_CASE("a campaign that names the worker's own folder as a toolchain is not shown it") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 3);
    const fs::path link = scene.temp.path() / "link";
    fs::create_symlink(scene.temp.path() / "root/workers", link);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const Method noop = scene.method("noop", Method::Kind::kNoop);
    std::uint32_t run = 0;
    for (const fs::path& named : {scene.temp.path() / "root", link, scene.temp.path()}) {
      CAPTURE(named.string());
      scene.contract.environment.toolchains = {{named.string(), "/opt/tools"}};
      coordinator.assign({scene.assignment(coordinator, noop, run)}, scene.settings_digest());
      const std::vector<AttemptId> back = {id(run)};
      REQUIRE_MESSAGE(coordinator.until([&] { return coordinator.syncs.back().declined == back; }),
                      scene.log());
      CHECK(scene.log().find("files of this worker's own are there") != std::string::npos);
      REQUIRE(coordinator.until([&] { return coordinator.syncs.back().declined.empty(); }));
      ++run;
    }
    CHECK(coordinator.results.empty());
  }

  TEST_CASE("a worker that is refused leaves with exit code 2") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    coordinator.say(wire::Refuse{"another worker has this name"});
    CHECK(worker.wait(std::chrono::seconds(180)) == 2);
    CHECK(scene.log().find("another worker has this name") != std::string::npos);
  }
}
