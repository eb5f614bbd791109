// A disk that is full or may not be written: a clear error, no half-done state, and resume goes on.
#include <sys/mount.h>
#include <unistd.h>

#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

// A file system of its own over a folder.  Not ok: this machine does not let us mount.
class SmallDisk {
 public:
  SmallDisk(fs::path at, const std::string& size) : at_(std::move(at)) {
    REQUIRE(make_dirs(at_).ok());
    ok_ = ::mount("tmpfs", at_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (ok_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  bool ok() const { return ok_; }
  bool remount(unsigned long flags, const std::string& size) const {
    return ::mount("tmpfs", at_.c_str(), "tmpfs", MS_REMOUNT | flags, ("size=" + size).c_str()) ==
           0;
  }

 private:
  fs::path at_;
  bool ok_ = false;
};

void not_run() {
  MESSAGE("not run: this machine does not let us mount a tmpfs");
}

CampaignShape two_methods() {
  CampaignShape shape;
  shape.methods = {gated_method("gated"), "noop"};
  shape.replicates = 2;
  return shape;
}

}  // namespace

TEST_SUITE("coordinator") {
  TEST_CASE(
      "a disk that fills in the middle loses nothing and the campaign goes on when there is room") {
    const CampaignScene scene(two_methods());
    const SmallDisk disk(scene.state(), "64m");
    if (!disk.ok()) return not_run();
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    {  // everything that is left
      const fs::path file = scene.state() / "ballast";
      CommandSpec fill;
      fill.argv = {"dd", "if=/dev/zero", "of=" + file.string(), "bs=4k"};
      CHECK(must(run_command(fill)).exit_code != 0);
    }
    scene.open_gate();
    // Whoever writes first meets it: the journal (the campaign stops with 4, at once or while there
    // is room again) or a worker (whose result waits until there is room).  Neither may lose
    // anything.
    std::optional<int> ended = run.wait(5s);
    fs::remove(scene.state() / "ballast");
    if (!ended) ended = run.wait(180s);
    REQUIRE_MESSAGE(ended.has_value(), scene.said());
    CHECK_MESSAGE((*ended == 0 || *ended == 4), scene.said());
    if (*ended == 4) {
      const CommandOutcome resumed = scene.run("resume");
      CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
    }
    check_books(scene, {.runs = 4, .attempts = Expected::Attempts::kAny});
  }

  TEST_CASE("a disk that is full from the start is said and leaves nothing half done") {
    CampaignShape shape = two_methods();
    shape.methods = {"noop"};
    const CampaignScene scene(shape);
    const SmallDisk disk(scene.state(), "16k");
    if (!disk.ok()) return not_run();
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 4, ran.err);
    REQUIRE(disk.remount(0, "64m"));
    const CommandOutcome again = scene.run("run");
    CHECK_MESSAGE(again.exit_code == 0, again.err);
    check_books(scene, {.runs = 2});
  }

  TEST_CASE("a read-only state folder is said and leaves nothing half done") {
    CampaignShape shape = two_methods();
    shape.methods = {"noop"};
    const CampaignScene scene(shape);
    const SmallDisk disk(scene.state(), "64m");
    if (!disk.ok()) return not_run();
    REQUIRE(disk.remount(MS_RDONLY, "64m"));
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE((ran.exit_code == 2 || ran.exit_code == 4), ran.err);
    CHECK_MESSAGE(contains(ran.err, ".proctor"), ran.err);
    CHECK_MESSAGE(contains(ran.err, "Read-only file system"), ran.err);
    REQUIRE(disk.remount(0, "64m"));
    const CommandOutcome again = scene.run("run");
    CHECK_MESSAGE(again.exit_code == 0, again.err);
    check_books(scene, {.runs = 2});
  }
}
