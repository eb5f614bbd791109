#include "worker/selftest/selftest.h"

#include <unistd.h>

#include <utility>

#include "common/images/image_store.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/docker_http.h"
#include "worker/selftest/attack_image.h"
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

// The attack's image in an engine, and out of it again.
class LoadedImage {
 public:
  LoadedImage(std::string socket, AttackImage image)
      : socket_(std::move(socket)), image_(std::move(image)) {}
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;
  ~LoadedImage() {
    if (loaded_) (void)call("DELETE", "/images/" + image_.id + "?force=1", "").ok();
  }
  Status load() {
    PROCTOR_CHECK_OK(call("POST", "/images/load?quiet=1", image_.archive));
    loaded_ = true;
    return ok_status();
  }
  const std::string& id() const { return image_.id; }

 private:
  Status call(const char* method, const std::string& target, const std::string& body) const {
    const auto deadline = DockerConnection::Clock::now() + std::chrono::seconds(20);
    PROCTOR_TRY(DockerConnection c, DockerConnection::open(socket_, deadline));
    PROCTOR_TRY(const HttpReply reply, c.call(method, "/v1.41" + target, body, deadline));
    if (reply.status <= 299) return ok_status();
    return Error{Errc::kUnavailable, "docker engine: " + std::to_string(reply.status)};
  }
  std::string socket_;
  AttackImage image_;
  bool loaded_ = false;
};

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

  KindReport bubblewrap() { return attack(SandboxKind::kBubblewrap, ""); }

  KindReport oci() {
    const AttackImage image = make_attack_image("proctor-selftest:oci");
    const Status imported = import(image);
    if (imported.ok()) return attack(SandboxKind::kOci, image.id);
    KindReport report;
    report.kind = to_string(SandboxKind::kOci);
    report.missing = imported.error().detail;
    return report;
  }

  KindReport docker() {
    KindReport report;
    report.kind = to_string(SandboxKind::kDocker);
    if (!docker_answers(options_.docker_socket)) {
      report.missing = "no Docker Engine answers at " + options_.docker_socket;
      return report;
    }
    // Every process its own: another selftest may remove its.
    LoadedImage image(options_.docker_socket,
                      make_attack_image("proctor-selftest:p" + std::to_string(::getpid())));
    const Status loaded = image.load();
    if (loaded.ok()) return attack(SandboxKind::kDocker, image.id());
    report.missing = loaded.error().detail;
    return report;
  }

 private:
  Status import(const AttackImage& image) const {
    const fs::path archive = dir_ / "image.tar";
    PROCTOR_CHECK_OK(write_file(archive, image.archive, Durability::kLazy));
    PROCTOR_TRY(const ImageStore store, ImageStore::open(sandbox_.images));
    PROCTOR_TRY([[maybe_unused]] const auto imported, store.import_archive(archive));
    return ok_status();
  }

  KindReport attack(SandboxKind kind, const std::string& image) {
    KindReport report;
    report.kind = to_string(kind);
    auto engine = open_sandbox_engine(kind, sandbox_);
    if (!engine.ok()) {
      report.missing = engine.error().detail;
      return report;
    }
    report.limits = (*engine)->enforcement();
    SandboxSpec base;
    base.image = image;
    const fs::path dir = dir_ / report.kind;
    if (const Status made = make_dirs(dir); !made.ok()) {
      report.missing = made.error().detail;
      return report;
    }
    auto suite = Containment::prepare(**engine, base, dir);
    if (!suite.ok()) {
      report.missing = suite.error().detail;
      return report;
    }
    for (const ContainmentCase& what : containment_cases())
      report.cases.push_back({what.name, what.promise, suite->run(what)});
    return report;
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
