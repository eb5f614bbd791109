#include "worker/selftest/selftest.h"

#include <unistd.h>

#include <functional>
#include <utility>

#include "worker/sandbox/cgroup.h"
#include "worker/selftest/isolation_proof.h"
#include "worker/selftest/loaded_image.h"
#include "worker/workspace/bounded_disk.h"
#include "worker/workspace/probe.h"

namespace proctor {
namespace {

std::string control_groups() {
  const CgroupLayout layout = cgroups_here();
  if (!layout.v1.empty()) return "version 1";
  return layout.v2.mount.empty() ? "none" : "version 2";
}

std::string workspaces(const fs::path& dir) {
  std::string works, does_not;
  for (const WorkspaceKind kind : kWorkspaceKinds) {
    const Status probe = probe_workspaces(dir, kind);
    const std::string name(to_string(kind));
    if (probe.ok()) works += (works.empty() ? "" : ", ") + name;
    if (!probe.ok()) does_not += "; no " + name + ": " + probe.error().detail;
  }
  return works + does_not;
}

std::string disks(const fs::path& dir) {
  const auto bounded = BoundedDisks::open(dir / "disks", dir);
  return bounded.ok() ? "can be bounded (--bounded-disks)" : bounded.error().detail;
}

class Selftest {
 public:
  Selftest(const SelftestOptions& options, const fs::path& dir)
      : options_(options),
        dir_(dir),
        sandbox_{"selftest-" + std::to_string(::getpid()), options.docker_socket, dir / "store",
                 true, options.oci_runtime} {}

  KindReport bubblewrap() {
    return attack(SandboxKind::kBubblewrap, [] { return Result<std::string>(""); });
  }

  KindReport oci() {
    return attack(SandboxKind::kOci, [&] { return import_attack_image(sandbox_.images, dir_); });
  }

  KindReport docker() {
    if (!docker_answers(options_.docker_socket)) {
      KindReport report;
      report.kind = to_string(SandboxKind::kDocker);
      report.missing = "no Docker Engine answers at " + options_.docker_socket;
      return report;
    }
    LoadedImage image(options_.docker_socket);
    return attack(SandboxKind::kDocker, [&]() -> Result<std::string> {
      PROCTOR_CHECK_OK(image.load());
      return image.id();
    });
  }

 private:
  using MakeImage = std::function<Result<std::string>()>;

  KindReport attack(SandboxKind kind, const MakeImage& make_image) {
    KindReport report;
    report.kind = to_string(kind);
    auto engine = open_sandbox_engine(kind, sandbox_);
    if (!engine.ok()) {
      report.missing = engine.error().detail;
      return report;
    }
    if (kind == SandboxKind::kOci)
      if (const auto proof = prove_kind(**engine, sandbox_);
          proof.ok() && proof->verdict == IsolationProof::Verdict::kUnfit) {
        report.missing = proof->detail;
        return report;
      }
    report.limits = (*engine)->enforcement();
    // Workers offer it from here on, whatever keeps us from attacking it.
    if (const Status done = attack(**engine, make_image, report); !done.ok())
      report.cases.push_back(
          {"attack", "the attacks can be tried", {.detail = done.error().detail}});
    return report;
  }

  Status attack(SandboxEngine& engine, const MakeImage& make_image, KindReport& report) {
    SandboxSpec base;
    PROCTOR_TRY(base.image, make_image());
    const fs::path dir = dir_ / report.kind;
    PROCTOR_CHECK_OK(make_dirs(dir));
    PROCTOR_TRY(Containment suite, Containment::prepare(engine, base, dir));
    for (const ContainmentCase& what : containment_cases())
      report.cases.push_back({what.name, what.promise, suite.run(what)});
    return ok_status();
  }

  const SelftestOptions& options_;
  const fs::path& dir_;
  SandboxOptions sandbox_;
};

}  // namespace

Result<SelftestReport> run_selftest(const SelftestOptions& options) {
  const auto begun = std::chrono::steady_clock::now();
  PROCTOR_TRY(const TempDir dir, TempDir::create("proctor-selftest", options.scratch));
  std::error_code ec;
  fs::permissions(dir.path(), fs::perms(0755), ec);  // the user in a container is not us
  SelftestReport report;
  report.root = ::geteuid() == 0;
  report.cgroups = control_groups();
  report.workspaces = workspaces(dir.path());
  report.disks = disks(dir.path());
  Selftest selftest(options, dir.path());
  report.kinds = {selftest.bubblewrap(), selftest.oci(), selftest.docker()};
  report.took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun);
  return report;
}

}  // namespace proctor
