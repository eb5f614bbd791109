#pragma once
// A real repository, a contract about it, methods, and a real proctor-worker in a folder of its
// own.
#include <doctest/doctest.h>

#include <csignal>
#include <optional>

#include "common/base/subprocess.h"
#include "common/contract/contract_digest.h"
#include "common/contract/cost_model_parser.h"
#include "tests/integration/worker/fake_coordinator.h"
#include "tests/support/paths.h"

namespace proctor::testing {

constexpr const char* kReference =
    "diff --git a/calc.sh b/calc.sh\n--- a/calc.sh\n+++ b/calc.sh\n@@ -1 +1 @@\n-echo $(($1 - "
    "$2))\n+echo $(($1 + $2))\n";

inline std::string run_git(const fs::path& dir, std::vector<std::string> args) {
  CommandSpec spec;
  spec.argv = {"git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"};
  spec.argv.insert(spec.argv.end(), args.begin(), args.end());
  spec.cwd = dir;
  auto out = run_for_output(spec);
  REQUIRE_MESSAGE(out.ok(), (out.ok() ? "" : out.error().detail));
  std::string text = *out;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

struct Scene {
  Scene() {
    REQUIRE(make_dirs(repository).ok());
    run_git(repository, {"init", "-q"});
    write("calc.sh", "echo $(($1 - $2))\n");
    write("tests/t.sh", "test \"$(sh calc.sh 2 3)\" = 5\n");
    run_git(repository, {"add", "-A"});
    run_git(repository, {"commit", "-qm", "broken"});
    contract.id = "add";
    contract.title = "Addition subtracts";
    contract.briefing = "calc.sh A B must print the sum.";
    contract.type = "bug_fix";
    contract.strata = {{"language", "shell"}, {"type", "bug_fix"}};
    contract.repository.source = repository.string();
    contract.repository.commit = run_git(repository, {"rev-parse", "HEAD"});
    contract.files = {{"accept.sh", 0755, "sh tests/t.sh && test \"$(sh calc.sh 40 2)\" = 42\n"},
                      {"fix.patch", 0644, kReference}};
    contract.reference_patch = "fix.patch";
    contract.policy.protected_ = {"tests/**"};
    contract.policy.wall = std::chrono::seconds(60);
    contract.checks = {check("own-tests", "sh tests/t.sh"),
                       check("hidden", "sh $PROCTOR_CONTRACT/accept.sh")};
    settings.campaign = "camp1";
    settings.run_cap = MicroUsd::from_micros(1'000'000);
    settings.cost_model = fallback_cost_model();
  }

  // A worker that is killed leaves mounts and control groups to its next life, and there is none.
  ~Scene() {
    CommandSpec clean_up;
    clean_up.argv = {(build_dir() / "proctor-worker").string(),
                     "--clean-up",
                     "--name",
                     "w1",
                     "--root",
                     (temp.path() / "root").string(),
                     "--docker-socket",
                     docker.string()};
    CHECK(run_command(clean_up).value().success());
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  static Check check(const std::string& id, const std::string& command) {
    Check c;
    c.id = id;
    c.command = command;
    c.timeout = std::chrono::seconds(120);
    return c;
  }
  void write(const std::string& path, std::string_view bytes) const {
    REQUIRE(make_dirs((repository / path).parent_path()).ok());
    REQUIRE(write_file(repository / path, bytes, Durability::kLazy).ok());
  }
  Method method(const std::string& name, Method::Kind kind, const std::string& command = "") {
    Method m;
    m.name = name;
    m.kind = kind;
    m.command = command;
    m.digest = digest_of(m);
    return m;
  }

  // Puts the bundles where the worker may ask for them; the assignment of one try.
  wire::Assignment assignment(FakeCoordinator& coordinator, const Method& m, std::uint32_t run,
                              std::uint32_t no = 1) {
    contract.digest = digest_of(contract);
    coordinator.offer(contract.digest, make_bundle(contract, temp.path()));
    coordinator.offer(m.digest, make_bundle(m));
    coordinator.offer(digest_of(settings), make_bundle(settings));
    wire::Assignment a;
    a.attempt = {RunId(run), AttemptNo(no)};
    a.run_name = "add/" + m.name + "/r1";
    a.contract = contract.digest;
    a.method = m.digest;
    a.replicate = 1;
    a.seed = 7;
    a.ask = settings.run_cap;
    return a;
  }
  Digest settings_digest() const { return digest_of(settings); }

  Child start_worker(std::vector<std::string> more = {}) {
    CommandSpec spec;
    spec.argv = before;
    const std::vector<std::string> words = {program.string(),
                                            "--connect",
                                            "ipc://" + socket.string(),
                                            "--slots",
                                            "2",
                                            "--name",
                                            "w1",
                                            "--root",
                                            (temp.path() / "root").string(),
                                            "--docker-socket",
                                            docker.string()};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    auto child = Child::start(spec, temp.path() / "worker.log", Child::Lifetime::kDiesWithParent);
    REQUIRE_MESSAGE(child.ok(), (child.ok() ? "" : child.error().detail));
    return std::move(child).value();
  }
  std::string log() const {
    auto bytes = read_file(temp.path() / "worker.log", 1 << 20);
    return bytes.ok() ? *bytes : "";
  }
  fs::path spool() const { return temp.path() / "root/workers/w1/spool/camp1"; }

  TempDir temp = TempDir::create("pw").value();
  fs::path repository = temp.path() / "repository";
  fs::path socket = temp.path() / "s";
  fs::path docker = temp.path() / "no-engine";
  fs::path program = build_dir() / "proctor-worker";
  std::vector<std::string> before;  // of what starts it
  Contract contract;
  Settings settings;
};

inline AttemptId id(std::uint32_t run, std::uint32_t no = 1) {
  return {RunId(run), AttemptNo(no)};
}

}  // namespace proctor::testing
