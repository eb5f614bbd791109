#include "worker/shell/selftest_command.h"

#include <unistd.h>

#include <cstdio>

#include "common/base/command_line.h"
#include "common/base/log.h"
#include "common/base/namespaces.h"
#include "worker/selftest/selftest.h"

namespace proctor {
namespace {

constexpr int kYes = 0, kNo = 1, kBadInput = 2, kInfrastructure = 4;

}  // namespace

int selftest(int argc, char** argv) {
  cli::CommandLine app;
  SelftestOptions options;
  options.docker_socket = "/var/run/docker.sock";
  bool json = false;
  app.name("proctor-worker selftest");
  app.description(
      "Says what this host offers (workspaces, sandboxes, who keeps which limit), attacks its own\n"
      "sandboxes as a hostile agent would, and says in the last line whether untrusted agents may\n"
      "run here. First a process stands still in each kind of sandbox and is looked at from\n"
      "outside; what would harm a host is tried only where that shows it isolated, and no more\n"
      "after an escape. A line for each kind says what escaped and what to do; a kind that this\n"
      "host does not have is no failure. Takes half a minute; leaves nothing.\n\n"
      "Example: proctor-worker selftest && echo this host is fit");
  app.footer(
      "Exit codes: 0 every kind offered here contains all, 1 one does not, or there is none; 2 bad "
      "use, 4 it could not be tried.");
  app.add_flag("--json", json, "the report as one JSON object");
  app.add_option("--docker-socket", options.docker_socket, "of the Docker Engine")
      .envname("PROCTOR_DOCKER_SOCKET")
      .capture_default_str();
  app.add_option("--oci-runtime", options.oci_runtime, "runc or runsc; default: runc")
      .envname("PROCTOR_OCI_RUNTIME")
      .one_of({"runc", "runsc"});
  app.add_option(
      "--scratch", options.scratch,
      "folder to work in, best on the disk of the worker's root (default: the system's)");
  if (const auto ended = app.parse(argc, argv, kBadInput)) return *ended;
  log::init("selftest", log::Level::kError);
  if (::geteuid() != 0) (void)enter_own_mounts();  // as a worker does; the report says what works
  const Result<SelftestReport> report = run_selftest(options);
  if (!report.ok()) {
    std::fprintf(stderr, "proctor-worker selftest: %s\n", report.error().detail.c_str());
    return kInfrastructure;
  }
  const std::string text = json ? selftest_json(*report).dump(2) + "\n" : selftest_text(*report);
  std::fputs(text.c_str(), stdout);
  return report->untrusted_allowed() ? kYes : kNo;
}

}  // namespace proctor
