// One worker, several campaigns at once: real coordinators, and what their ends and the worker's
// own do to the others.
#include <csignal>
#include <cstdlib>

#include "tests/integration/coordinator/endpoint.h"
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

// Two campaigns whose agents wait at a gate of their own, and a worker's root that is neither's.
struct Two {
  explicit Two(int replicates = 1)
      : root(must(TempDir::create("root"))),
        first(gated_shape(replicates)),
        second(gated_shape(replicates)) {}

  static Child serve(const CampaignScene& scene, std::vector<std::string> more = {},
                     const std::string& life = "proctor") {
    more.insert(more.end(), {"--listen", "tcp://127.0.0.1:0", "--insecure-loopback"});
    return scene.start("serve", more, life);
  }
  Child worker(std::vector<std::string> args, const std::string& slots = "2") const {
    args.insert(args.end(),
                {"--insecure-loopback", "--slots", slots, "--root", root.path().string()});
    return first.start_worker(std::move(args), "w1");
  }
  std::string said() const { return first.said("w1"); }
  static bool runs(const CampaignScene& scene) { return scene.agents_run(1); }
  // What they are is told by the file that this names.
  fs::path file() const { return root.path() / "coordinators"; }
  void name(const std::vector<std::pair<std::string, std::string>>& lines) const {
    std::string text;
    for (const auto& [name, address] : lines) text += name + " " + address + "\n";
    first.write(file(), text);
  }
  static std::int64_t lost(const CampaignScene& scene) {
    return scene.number("SELECT count(*) FROM attempts WHERE state = 'lost'");
  }

  TempDir root;  // goes last: the scene that started the worker unmounts what is left there
  CampaignScene first, second;
};

// What is granted when its slot goes to the other is voided, which costs nothing.
Expected books(std::int64_t runs) {
  return {.runs = runs, .attempts = Expected::Attempts::kAny};
}

void leave(Child& worker, const Two& two) {
  worker.signal(SIGTERM);
  CHECK_MESSAGE(worker.wait(180s) == 0, two.said());
}

}  // namespace

TEST_SUITE("several campaigns") {
  TEST_CASE("a worker of two slots serves two campaigns at once") {
    const Two two;
    Child one = Two::serve(two.first), other = Two::serve(two.second);
    const std::string absent = "tcp://127.0.0.1:9";  // discard: nobody
    Child worker =
        two.worker({"--connect", absent, "--connect", absent + "," + endpoint_of(two.first),
                    "--connect", endpoint_of(two.second)});
    REQUIRE_MESSAGE(eventually([&] { return Two::runs(two.first) && Two::runs(two.second); }),
                    two.said());
    two.first.open_gate();  // that it ends is nothing to the other
    CHECK_MESSAGE(one.wait(300s) == 0, two.first.said());
    two.second.open_gate();
    CHECK_MESSAGE(other.wait(300s) == 0, two.second.said());
    CHECK(worker.running());  // the one that is not there may come
    leave(worker, two);
    for (const CampaignScene* scene : {&two.first, &two.second}) {
      check_books(*scene, books(1));
      scene->require_nothing_left();
    }
  }

  TEST_CASE("one slot goes to and fro, and with both campaigns over the worker ends") {
    const Two two(3);
    two.first.open_gate();
    two.second.open_gate();
    Child one = Two::serve(two.first), other = Two::serve(two.second);
    Child worker = two.worker(
        {"--connect", endpoint_of(two.first), "--connect", endpoint_of(two.second)}, "1");
    CHECK_MESSAGE(one.wait(300s) == 0, two.first.said());
    CHECK_MESSAGE(other.wait(300s) == 0, two.second.said());
    CHECK_MESSAGE(worker.wait(180s) == 0, two.said());
    check_books(two.first, books(3));
    check_books(two.second, books(3));
  }

  TEST_CASE("a coordinator that is killed harms no other and is found where it comes back") {
    const Two two;
    Child one = Two::serve(two.first), other = Two::serve(two.second);
    two.name({{"first", endpoint_of(two.first)}, {"second", endpoint_of(two.second)}});
    Child worker = two.worker({"--connect-file", two.file().string()});
    REQUIRE_MESSAGE(eventually([&] { return Two::runs(two.first) && Two::runs(two.second); }),
                    two.said());
    other.signal(SIGKILL);
    other.wait(60s);
    REQUIRE_MESSAGE(eventually([&] { return contains(two.said(), "is away"); }), two.said());
    two.first.open_gate();
    CHECK_MESSAGE(one.wait(300s) == 0, two.first.said());
    // What runs for the dead one runs on, to its end.
    CHECK(Two::runs(two.second));
    two.second.open_gate();
    other = Two::serve(two.second, {"--resume"}, "again");
    two.name({{"second", endpoint_of(two.second, "again")}});
    CHECK_MESSAGE(other.wait(300s) == 0, (two.second.said("again") + two.said()));
    leave(worker, two);
    for (const CampaignScene* scene : {&two.first, &two.second}) {
      check_books(*scene, books(1));
      CHECK(Two::lost(*scene) == 0);
      scene->require_nothing_left();
    }
  }

  TEST_CASE("a killed worker of two campaigns brings each what is its own") {
    const Two two;
    Child one = Two::serve(two.first), other = Two::serve(two.second);
    two.name({{"first", endpoint_of(two.first)}, {"second", endpoint_of(two.second)}});
    Child worker = two.worker({"--connect-file", two.file().string()});
    REQUIRE_MESSAGE(eventually([&] { return Two::runs(two.first) && Two::runs(two.second); }),
                    two.said());
    worker.signal(SIGKILL);
    worker.wait(60s);
    two.first.open_gate();
    two.second.open_gate();
    Child again = two.worker({"--connect-file", two.file().string()});
    CHECK_MESSAGE(one.wait(300s) == 0, (two.first.said() + two.said()));
    CHECK_MESSAGE(other.wait(300s) == 0, (two.second.said() + two.said()));
    leave(again, two);
    for (const CampaignScene* scene : {&two.first, &two.second}) {
      check_books(*scene, books(1));
      // Told as it was metered: no attempt was lost, and no ceiling charged.
      CHECK(Two::lost(*scene) == 0);
      scene->require_nothing_left();
    }
  }

  TEST_CASE("a file of coordinators is followed while the worker runs") {
    const Two two(2);
    Child one = Two::serve(two.first), other = Two::serve(two.second);
    two.first.write(two.file(), "# nobody yet\n");
    Child worker = two.worker({"--connect-file", two.file().string()}, "1");
    two.name({{"first", endpoint_of(two.first)}});
    REQUIRE_MESSAGE(eventually([&] { return Two::runs(two.first); }), two.said());
    two.first.write(two.file(), "broken\n");
    REQUIRE_MESSAGE(eventually([&] { return contains(two.said(), "coordinators:1:"); }),
                    two.said());
    // Its line goes: what runs there is finished and delivered, nothing more is begun.
    two.name({{"second", endpoint_of(two.second)}});
    REQUIRE_MESSAGE(eventually([&] { return contains(two.said(), "not among them"); }), two.said());
    CHECK(two.second.granted() == 0);  // the one slot is taken
    two.first.open_gate();
    REQUIRE_MESSAGE(eventually([&] { return Two::runs(two.second); }), two.said());
    REQUIRE_MESSAGE(eventually([&] { return two.first.ended() == 1; }), two.first.said());
    CHECK(Two::lost(two.first) == 0);
    // And comes back.
    two.name({{"second", endpoint_of(two.second)}, {"first", endpoint_of(two.first)}});
    two.second.open_gate();
    CHECK_MESSAGE(other.wait(300s) == 0, two.second.said());
    CHECK_MESSAGE(one.wait(300s) == 0, two.first.said());
    leave(worker, two);
    check_books(two.first, books(2));
    check_books(two.second, books(2));
  }

  TEST_CASE("a campaign is not given the secrets of another by naming them") {
    ::setenv("SEVERAL_TOKEN", "a-secret-of-the-first", 1);
    const Two two;
    for (const CampaignScene* scene : {&two.first, &two.second})
      scene->edit(scene->contract(), "environment:\n",
                  "environment:\n  secrets: [SEVERAL_TOKEN]\n");
    Child one = Two::serve(two.first), other = Two::serve(two.second);
    two.name({{"first", endpoint_of(two.first) + " - 1 5 SEVERAL_TOKEN"},
              {"second", endpoint_of(two.second) + " - 1 5 -"}});
    Child worker = two.worker({"--connect-file", two.file().string()});
    ::unsetenv("SEVERAL_TOKEN");
    REQUIRE_MESSAGE(
        eventually([&] { return contains(two.said(), "does not name secret SEVERAL_TOKEN"); }),
        two.said());
    REQUIRE_MESSAGE(eventually([&] { return Two::runs(two.first); }), two.said());
    two.first.open_gate();
    two.second.open_gate();
    CHECK_MESSAGE(one.wait(300s) == 0, two.first.said());
    CHECK(two.second.ended() == 0);
    // With a line that says so it is.
    two.name({{"second", endpoint_of(two.second) + " - 1 5 SEVERAL_TOKEN"}});
    CHECK_MESSAGE(other.wait(300s) == 0, (two.second.said() + two.said()));
    leave(worker, two);
    check_books(two.first, books(1));
    check_books(two.second, books(1));
  }

  TEST_CASE("a coordinator that has two names is served once") {
    const Two two(2);
    Child one = Two::serve(two.first);
    two.name({{"first", endpoint_of(two.first)}, {"twice", endpoint_of(two.first)}});
    Child worker = two.worker({"--connect-file", two.file().string()});
    REQUIRE_MESSAGE(eventually([&] { return contains(two.said(), "is served already"); }),
                    two.said());
    two.first.open_gate();
    CHECK_MESSAGE(one.wait(300s) == 0, two.first.said());
    leave(worker, two);
    check_books(two.first, books(2));
    CHECK(Two::lost(two.first) == 0);
  }

  // Its id is what a coordinator says; who it is, its key proves.
  TEST_CASE("a coordinator that says the id of another's campaign first shuts nobody out") {
    const Two two;
    const CampaignScene& real = two.first;
    REQUIRE(real.run("plan", {"--freeze"}).exit_code == 0);
    const fs::path squat = two.second.temp() / "squat";
    fs::copy(real.folder(), squat, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    REQUIRE(real.run("keygen", {"--worker", "w1"}).exit_code == 0);
    REQUIRE(proctor::testing::proctor({"keygen", squat.string(), "--worker", "w2"}).exit_code == 0);
    real.write(squat / ".proctor/keys/workers.allow",
               real.read(real.state() / "keys/workers.allow"));
    CommandSpec spec;
    spec.argv = {proctor_program().string(), "serve", squat.string(), "--listen",
                 "tcp://127.0.0.1:0"};
    Child squatter = must(
        Child::start(spec, two.second.temp() / "proctor.said", Child::Lifetime::kDiesWithParent));
    const auto line = [](const std::string& name, const CampaignScene& at, const fs::path& state) {
      return name + " " + endpoint_of(at) + " " + (state / "keys/coordinator.pub").string() + "\n";
    };
    const std::string first = line("squatter", two.second, squat / ".proctor");
    real.write(two.file(), first);
    Child worker = real.start_worker(
        {"--connect-file", two.file().string(), "--slots", "2", "--root", two.root.path().string(),
         "--key", (real.state() / "keys/w1.key").string()},
        "w1");
    REQUIRE_MESSAGE(eventually([&] { return contains(two.said(), "serving campaign "); }),
                    two.said());
    // The campaign's own coordinator comes second, and is served beside it.
    Child serve = real.start("serve", {"--again", "--listen", "tcp://127.0.0.1:0"});
    real.write(two.file(), first + line("real", real, real.state()));
    REQUIRE_MESSAGE(eventually([&] { return real.granted() == 1; }), (two.said() + real.said()));
    CHECK_MESSAGE(!contains(two.said(), "is served already"), two.said());
    CHECK_MESSAGE(contains(two.said(), "its coordinator has another key"), two.said());
    // So it is in the worker's next life, which goes on with what is each one's own.
    worker.signal(SIGKILL);
    worker.wait(60s);
    real.open_gate();
    Child again = real.start_worker(
        {"--connect-file", two.file().string(), "--slots", "2", "--root", two.root.path().string(),
         "--key", (real.state() / "keys/w1.key").string()},
        "w1");
    CHECK_MESSAGE(serve.wait(300s) == 0, (two.said() + real.said()));
    CHECK_MESSAGE(squatter.wait(300s) == 0, two.second.said());
    again.signal(SIGTERM);
    CHECK_MESSAGE(again.wait(180s) == 0, two.said());
    check_books(real, books(1));
  }
}
