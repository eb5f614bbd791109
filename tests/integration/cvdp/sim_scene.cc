#include "tests/integration/cvdp/sim_scene.h"

#include <unistd.h>

#include <cstdlib>

#include "common/images/image_store.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/sandbox/sandbox.h"

namespace proctor::testing {
namespace {

constexpr const char* kSocket = "PROCTOR_DOCKER_SOCKET";

std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}
void set(const char* name, const std::string& value) {
  if (value.empty())
    ::unsetenv(name);
  else
    ::setenv(name, value.c_str(), 1);
}
std::string engine_socket() {
  const std::string named = value_of(kSocket);
  return named.empty() ? "/var/run/docker.sock" : named;
}

}  // namespace

ImagesOf::ImagesOf(Runner runner, const fs::path& store)
    : empty_(must(TempDir::create("proctor-no-images"))),
      store_before_(value_of(kImageStoreVariable)),
      socket_before_(value_of(kSocket)) {
  if (runner == Runner::kOci) {
    set(kImageStoreVariable, store.string());
    set(kSocket, "/nonexistent/docker.sock");
  } else {
    set(kImageStoreVariable, empty_.path().string());
  }
}

ImagesOf::~ImagesOf() {
  set(kImageStoreVariable, store_before_);
  set(kSocket, socket_before_);
}

bool have_oci(const char* test) {
  if (::geteuid() == 0 && !find_on_path("runc").empty()) return true;
  MESSAGE("not run: OCI sandboxes need root and runc (" << test << ")");
  return false;
}

bool have_docker(const char* test) {
  if (docker_answers(engine_socket())) return true;
  MESSAGE("not run: no Docker Engine answers at " << engine_socket() << " (" << test << ")");
  return false;
}

std::string line_of(const ShellProblem& problem) {
  Json harness = problem.more;
  harness["docker-compose.yml"] = problem.compose;
  Json context = problem.context;
  context["rtl/a.sv"] = "x\n";
  return Json{{"id", problem.id},     {"categories", {"cid003", "easy"}},
              {"system_message", ""}, {"prompt", "Make it y."},
              {"context", context},   {"patch", {{"rtl/a.sv", "@@ -1 +1 @@\n-x\n+y"}}},
              {"harness", harness}}
             .dump() +
         "\n";
}

std::string compose_words(const std::string& command) {
  std::string escaped;
  for (const char c : command) escaped += c == '$' ? std::string("$$") : std::string(1, c);
  return "[sh, -c, " + Json(escaped).dump() + "]";
}

std::string service(const std::string& image, const std::string& command, const std::string& more) {
  return "services:\n  direct:\n    image: " + image + "\n    command: " + compose_words(command) +
         "\n    environment: {PATH: /usr/bin, B: two}\n" + more;
}

}  // namespace proctor::testing
