// What tests take for their own on a machine that others use too.
#include "tests/support/leftovers.h"

#include <sys/mount.h>
#include <unistd.h>

#include <csignal>

#include "common/base/subprocess.h"
#include "tests/support/programs.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// A process in a mount namespace of its own that nobody has started, as one of another campaign:
// `inside` is the script that it begins with.
class Stranger {
 public:
  explicit Stranger(const std::string& inside) {
    CommandSpec spec;
    // Whoever starts it ends after it has left its group, for that is killed then.
    spec.argv = {"sh", "-c",
                 "setsid unshare -m --propagation slave sh -c \"$0\" >/dev/null 2>&1 & "
                 "until grep -qx sleep /proc/$!/comm; do sleep 0.01; done; echo $!",
                 inside + " exec sleep 600"};
    pid_ = std::stoi(must(run_for_output(spec)));
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() { ::kill(pid_, SIGKILL); }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

struct MountedFolder {
  MountedFolder() {
    must(make_dirs(dir.path() / "m"));
    must(make_dirs(dir.path() / "shown"));
    mounted = ::mount("none", (dir.path() / "m").c_str(), "tmpfs", 0, nullptr) == 0;
    if (!mounted) MESSAGE("not run: mounting needs root");
  }
  MountedFolder(const MountedFolder&) = delete;
  MountedFolder& operator=(const MountedFolder&) = delete;
  ~MountedFolder() {
    if (mounted) ::umount2((dir.path() / "m").c_str(), MNT_DETACH);
  }
  TempDir dir = must(TempDir::create("proctor-leftovers"));
  bool mounted = false;
};

}  // namespace

TEST_SUITE("test support") {
  TEST_CASE("a process of another campaign that has our mounts too is not ours") {
    const MountedFolder folder;
    if (!folder.mounted) return;
    const Stranger other("");
    const auto seen =
        read_file("/proc/" + std::to_string(other.pid()) + "/mountinfo", std::size_t{1} << 20);
    REQUIRE(contains(must(seen), folder.dir.path().string()));
    CHECK(sandboxed_of(folder.dir.path()).empty());
    CHECK(processes_of(folder.dir.path()).empty());
    CHECK(contains(leftovers_of(folder.dir.path(), folder.dir.path()), "mount "));
    CHECK_FALSE(contains(leftovers_of(folder.dir.path(), folder.dir.path()), "process "));
  }

  TEST_CASE("a process of another campaign is not ours where our folder is a mount's top") {
    const MountedFolder folder;
    if (!folder.mounted) return;
    const Stranger other("");
    CHECK(sandboxed_of(folder.dir.path() / "m").empty());
  }

  TEST_CASE("a sandbox that was left alone is ours, and so is one that we started") {
    const MountedFolder folder;
    if (!folder.mounted) return;
    const Stranger left("mount --bind '" + (folder.dir.path() / "shown").string() + "' /mnt &&");
    CHECK(sandboxed_of(folder.dir.path()) == std::vector<pid_t>{left.pid()});
    CommandSpec spec;
    spec.argv = {"unshare", "-m", "sleep", "600"};
    Child started = must(Child::start(spec, {}, Child::Lifetime::kDiesWithParent));
    CHECK(eventually([&] { return sandboxed_of(folder.dir.path()).size() == 2; }));
    started.signal(SIGKILL);
    CHECK(started.wait(std::chrono::seconds(180)).has_value());
    CHECK(eventually([&] { return sandboxed_of(folder.dir.path()).size() == 1; }));
  }

  TEST_CASE("workers are told by their command line and the folder in it") {
    const TempDir dir = must(TempDir::create("proctor-leftovers"));
    CommandSpec spec;
    spec.argv = {
        "sh", "-c", "sleep 600; :", "proctor-worker", "--connect", (dir.path() / "sock").string()};
    Child worker = must(Child::start(spec, {}, Child::Lifetime::kDiesWithParent));
    const TempDir another = must(TempDir::create("proctor-leftovers"));
    CHECK(workers_of(another.path()).empty());
    CHECK(eventually([&] { return workers_of(dir.path()) == std::vector<pid_t>{worker.pid()}; }));
  }

  TEST_CASE("an agent that has started others is one agent") {
    const TempDir dir = must(TempDir::create("proctor-programs"));
    const std::string word = "PROGRAMS_OF=" + dir.path().string();
    CHECK(programs_with({word}) == 0);
    CommandSpec spec;
    spec.argv = {"env", word, "ALSO=1", "sh", "-c", "sleep 600 & sleep 600 & wait"};
    Child one = must(Child::start(spec, dir.path() / "one", Child::Lifetime::kDiesWithParent));
    const std::string pid = std::to_string(one.pid());
    const auto children = [&] {
      return output_of({"sh", "-c", "cat /proc/" + pid + "/task/" + pid + "/children | wc -w"});
    };
    REQUIRE(eventually([&] { return children() == "2"; }));
    CHECK(programs_with({word}) == 1);
    CHECK(programs_with({word, "ALSO="}) == 1);
    CHECK(programs_with({word, "ALSO=2"}) == 0);
    Child other = must(Child::start(spec, dir.path() / "other", Child::Lifetime::kDiesWithParent));
    CHECK(eventually([&] { return programs_with({word}) == 2; }));
    one.signal(SIGKILL);
    other.signal(SIGKILL);
  }
}
