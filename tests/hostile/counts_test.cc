// What the kernel counts by user, or for all of a host: one sandbox takes all of it that it can
// have, and its neighbour does one ordinary thing with it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "common/base/owned.h"
#include "tests/integration/sandbox/run_command.h"
#include "tests/support/programs.h"
#include "worker/sandbox/host_lack.h"
#include "worker/selftest/attack_program.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr const char* kProgramAt = "/opt/counts";

// A sandbox with the attacks in it, and a workspace of its own on the host.
struct Place {
  Place(Bench& b, const std::string& name) : bench(b), dir(b.scratch() / name), spec(b.spec()) {
    REQUIRE(make_dirs(dir / "program").ok());
    REQUIRE(make_dirs(dir / "workspace").ok());
    fs::permissions(bench.scratch(), fs::perms(0755));
    fs::permissions(dir / "workspace", fs::perms(0777));  // the user inside may be another
    REQUIRE(write_file(dir / "program/attack", attack_program(), Durability::kLazy, 0755).ok());
    spec.label += "-" + name;
    spec.workspace = dir / "workspace";
    spec.workspace_volume.clear();
    spec.memory_bytes = std::uint64_t{512} << 20;
    spec.mounts.push_back({dir / "program", kProgramAt, false});
  }

  Said run(const std::string& words, std::chrono::milliseconds timeout,
           std::stop_token cancel = {}) const {
    ExecSpec exec;
    exec.command = "exec " + std::string(kProgramAt) + "/attack " + words;
    exec.timeout = timeout;
    exec.stdout_file = dir / "out";
    exec.stderr_file = dir / "err";
    return testing::run(bench, spec, exec, std::move(cancel));
  }

  // As a check has it with its services.
  void share_network() { spec.shared = must(bench.engine().open_network("17.2-net", spec.image)); }

  Bench& bench;
  fs::path dir;
  SandboxSpec spec;
};

// Where sandboxes have users of their own: as those who have none.
enum class Who { kAsRuns, kOneUser };

// Holds all there is of it for as long as the object lives.
class Taker {
 public:
  Taker(Bench& bench, const std::string& what, std::shared_ptr<SharedNetwork> network = nullptr,
        Who who = Who::kAsRuns)
      : place_(bench, "taker-" + what.substr(0, what.find(' '))) {
    place_.spec.shared = std::move(network);
    if (who == Who::kOneUser) place_.spec.user.reset();
    (void)fs::remove(place_.spec.workspace / "held");
    thread_ = std::jthread([this, what](std::stop_token stop) {
      said_ = place_.run("hold what=" + what, std::chrono::minutes(2), std::move(stop)).out;
      over_ = true;
    });
    while (!over_ && !fs::exists(place_.spec.workspace / "held"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  bool over() const { return over_; }
  // "128 Too many open files"
  std::string held() const {
    const auto text = read_file(place_.spec.workspace / "held", 1 << 10);
    return text.ok() ? *text : "nothing: " + said_;
  }

 private:
  Place place_;
  std::string said_;
  std::atomic<bool> over_{false};
  std::jthread thread_;
};

// Docker's containers are all the host's root to the kernel; who is not root has one number only.
enum class Without { kRootToo, kRootNot };
enum class Network { kEachItsOwn, kShared };
void check_own(const std::string& what, Without root = Without::kRootToo,
               Network network = Network::kEachItsOwn) {
  const auto bench = make_bench();
  if (!bench) return;
  const bool docker = bench->engine().kind() == SandboxKind::kDocker;
  if (!docker && ::geteuid() == 0) CHECK(bench->engine().enforcement().at("user_counts") != "none");
  Place neighbour(*bench, "neighbour-" + what.substr(0, what.find(' ')));
  if (network == Network::kShared) neighbour.share_network();
  const Said alone = neighbour.run("need what=" + what, std::chrono::seconds(120));
  INFO(alone.out << alone.err);
  if (alone.out.find("ESCAPED") != std::string::npos) {
    MESSAGE("left out: no sandbox here has " << what << ": " << alone.out);
    return;
  }
  const Taker taker(*bench, what, network == Network::kShared ? neighbour.spec.shared : nullptr);
  REQUIRE_FALSE(taker.over());
  MESSAGE("held: " << taker.held());
  const Said said = neighbour.run("need what=" + what, std::chrono::seconds(120));
  if (docker || (::geteuid() != 0 && root == Without::kRootNot)) {
    MESSAGE("counted with the host's here: " << said.out);
    return;
  }
  CHECK_MESSAGE(said.out == "DONE\n", said.out << said.err);
}

// Is it given without a limit of its own?
bool is_unlimited(const char* sysctl) {
  const auto text = read_file(sysctl, 100);
  return text.ok() && *text == "0\n";
}

// What the host cannot give to another sandbox now that has no user of its own.
std::string lack(Bench& bench) {
  SandboxSpec spec = bench.spec();
  spec.user.reset();
  const auto said = host_lack(bench.engine(), spec, bench.scratch() / "lacks", std::stop_token());
  REQUIRE_MESSAGE(said.ok(), said.error().detail);
  return *said;
}

// What no namespace divides: each sandbox's own where it has a user of its own; elsewhere nobody's
// failure, and known as that.
void check_noticed(const std::string& what, const std::string& name) {
  const auto bench = make_bench();
  if (!bench) return;
  if (bench->engine().has_own_users()) check_own(what);
  if (bench->userspace()) return;  // divides all of it
  if (host_lack_before().find(name) != std::string::npos) {
    MESSAGE("left out: this host has no more " << name << " before anybody takes any");
    return;
  }
  CHECK(lack(*bench).find(name) == std::string::npos);
  {
    const Taker taker(*bench, what, nullptr, Who::kOneUser);
    MESSAGE("held: " << taker.held());
    CHECK(lack(*bench).find(name) != std::string::npos);
  }
  CHECK(lack(*bench).find(name) == std::string::npos);
}

// As whoever is shown the same file does, by a descriptor to read.
class Locker {
 public:
  explicit Locker(const fs::path& file) : fd_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    REQUIRE(fd_.valid());
    REQUIRE(::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0);
  }

 private:
  UniqueFd fd_;
};

}  // namespace

TEST_SUITE("counts") {
  TEST_CASE("files that all sandboxes share and others have locked are known for what lacks") {
    const auto bench = make_bench();
    if (!bench || bench->userspace()) return;  // whose locks are its own
    const fs::path tools = bench->scratch() / "tools";
    REQUIRE(make_dirs(tools / "below").ok());
    REQUIRE(write_file(tools / "below/compiler", "x", Durability::kLazy, 0755).ok());
    SandboxSpec spec = bench->spec();
    spec.mounts.push_back({tools, kProgramAt, false});
    std::vector<fs::path> lockable = {tools, tools / "below/compiler"};
    const bool own = bench->engine().enforcement().at("inodes") == "own";
    if (bench->engine().kind() == SandboxKind::kBubblewrap && !own)
      lockable.insert(lockable.end(), {"/usr", "/usr/bin/env"});
    const auto lacking = [&](const std::set<HeldLock>& earlier = {}) {
      const auto said =
          host_lack(bench->engine(), spec, bench->scratch() / "lacks", std::stop_token(), earlier);
      REQUIRE_MESSAGE(said.ok(), said.error().detail);
      return *said;
    };
    for (const fs::path& file : lockable) {
      CAPTURE(file.string());
      const std::string name = "an unlocked " + file.string();
      CHECK(lacking().find(name) == std::string::npos);
      std::set<HeldLock> earlier;
      {
        const Locker locker(file);
        CHECK(lacking().find(name) != std::string::npos);
        earlier = locks_held();
        CHECK(locks_to_know(bench->engine()).empty() == own);
      }
      CHECK(lacking().find(name) == std::string::npos);
      CHECK(lacking(earlier).find(name) != std::string::npos);
    }
    const fs::path alone = bench->scratch() / "alone";  // which nobody else is shown
    REQUIRE(write_file(alone, "x", Durability::kLazy).ok());
    const Locker locker(alone);
    CHECK(lacking().find("unlocked") == std::string::npos);
    if (locks_held().count(kMoreLocks) == 0)
      CHECK((lacking({kMoreLocks}).find("locks few enough") != std::string::npos) == !own);
    if (!own) return;
    // What each is shown with inodes of its own nobody else can lock for it.
    const Locker of_host("/usr/bin/env"), of_tools(tools / "below/compiler");
    CHECK(lacking().find("unlocked /usr/bin/env") == std::string::npos);
    CHECK(lacking().find("below/compiler") != std::string::npos);
    spec.mounts.back().shared = true;
    CHECK(lacking().find("below/compiler") == std::string::npos);
  }
  TEST_CASE("inotify instances are each sandbox's own") {
    check_own("inotify");
  }
  TEST_CASE("inotify instances are each sandbox's own in a network that several share") {
    check_own("inotify", Without::kRootToo, Network::kShared);
  }
  TEST_CASE("fanotify groups are each sandbox's own") {
    check_own("fanotify");
  }
  TEST_CASE("pending signals are each sandbox's own") {
    check_own("signals");
  }
  TEST_CASE("message queues are each sandbox's own") {
    check_own("messages", Without::kRootNot);
  }
  TEST_CASE("locked shared memory is each sandbox's own") {
    check_own("locked", Without::kRootNot);
  }
  TEST_CASE("terminals that one sandbox takes leave some for its neighbour") {
    check_own("terminals", Without::kRootNot);
  }
  TEST_CASE("descriptors in flight that others hold are known for what lacks") {
    check_noticed("descriptors", "descriptors on their way through sockets");
  }
  TEST_CASE("pages in pipes that others hold are known for what lacks") {
    if (is_unlimited("/proc/sys/fs/pipe-user-pages-soft")) {
      MESSAGE("left out: no user's pages in pipes are limited here");
      return;
    }
    check_noticed("pipes", "pages in pipes");
  }
  TEST_CASE("pages in pipes are each sandbox's own where they are memory and nothing else") {
    if (!is_unlimited("/proc/sys/fs/pipe-user-pages-soft")) {
      MESSAGE("left out: they are limited by user here; ops/sysctl.conf has them otherwise");
      return;
    }
    check_own("pipes most=4000");  // four times what is left by default, in half its memory
  }
  TEST_CASE("watches of epoll that one sandbox's memory holds leave some for its neighbour") {
    // A million and more, for half of its memory; that is all of the host's where it has 5 GiB.
    check_own("polls most=4800");
  }
  TEST_CASE("what sandboxes of Docker hold of what is counted by user is known for what lacks") {
    const auto bench = make_bench();
    if (!bench || bench->engine().kind() != SandboxKind::kDocker) return;
    check_noticed("inotify", "inotify instances");
    check_noticed("terminals", "terminals");
    check_noticed("signals", "pending signals");
  }
  TEST_CASE("contexts of asynchronous input and output are the whole host's and nobody's here") {
    const auto bench = make_bench();
    if (!bench || bench->engine().kind() == SandboxKind::kDocker) return;
    const Said said = Place(*bench, "aio").run("need what=aio", std::chrono::seconds(120));
    CHECK(said.out.starts_with("ESCAPED: no aio"));
  }
}
