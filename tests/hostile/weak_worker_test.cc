// A worker whose sandboxes are weakened on purpose offers none of that kind.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "tests/hostile/hostile_campaign.h"
#include "tests/hostile/weak.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// For the programs that we start, as long as this lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* had = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    if (had != nullptr) before_ = had;
    ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    } else {
      ::unsetenv(name_);  // NOLINT(concurrency-mt-unsafe)
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_SUITE("weakened") {
  TEST_CASE("a worker does not offer a kind that it saw broken and explain says why") {
    const WeakKind kind = weak_kind();
    if (!may_weaken(kind)) return;
    const auto images = make_kind();
    if (!images) return;
    // Nothing of it runs: a root that can be written is the least that a host could be harmed by.
    const auto weak = std::ranges::find_if(kind.weaknesses, [](const Weakness& w) {
      return std::string_view(w.name) == "a writable root";
    });
    REQUIRE(weak != kind.weaknesses.end());
    const TempDir dir = must(TempDir::create("worker-weak"));
    const Variable path("PATH", lay_weak_program(dir.path(), kind, weak->changes) +
                                    ":/usr/sbin:/usr/bin:/sbin:/bin");
    const Variable engine("PROCTOR_DOCKER_SOCKET", "/nonexistent/docker.sock");
    const auto scene = hostile_scene(
        *images, {{"waits", ":", "failure"}}, {},
        "checks:\n  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 20s}\n");
    Child run = scene->start("run");
    CHECK_MESSAGE(eventually([&] {
                    return contains(scene->run("explain", {"add/waits/r1"}).out,
                                    "which does not isolate there (proctor-worker selftest");
                  }),
                  scene->run("explain", {"add/waits/r1"}).out << scene->said());
    CHECK(eventually(
        [&] { return contains(scene->run("status").out, "which does not isolate there"); }));
    CHECK(contains(scene->worker_log("local-1"), "does not isolate on this host: "));
    CHECK(scene->granted() == 0);
    run.signal(SIGINT);
    CHECK(run.wait(std::chrono::seconds(180)).has_value());
    scene->require_nothing_left();
  }
}
