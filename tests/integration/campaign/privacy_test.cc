// What of a campaign other users of the host see: neither the secrets its agents are given, nor
// anything that was made of it.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "tests/integration/campaign/secrets_scene.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// What somebody else could do with what we made in the campaign's folder; one line for each.
// `given`: what its user wrote.
std::string open_to_others(const CampaignScene& scene, const std::set<fs::path>& given) {
  std::string seen;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(scene.folder(), ec), end; it != end; it.increment(ec)) {
    const fs::path& path = it->path();
    if (given.contains(path)) {
      if (path == scene.repository()) it.disable_recursion_pending();
      continue;
    }
    struct stat st {};
    if (::lstat(path.c_str(), &st) != 0) continue;
    if (!S_ISLNK(st.st_mode) && (st.st_mode & 077U) != 0)
      seen += path.string() + " " + std::to_string(st.st_mode & 0777U) + "\n";
    // Trees and workspaces below are for the users of sandboxes; nobody else enters it.
    if (path == scene.state() / "workers") it.disable_recursion_pending();
  }
  return seen;
}

std::set<fs::path> all_in(const fs::path& folder) {
  std::set<fs::path> out;
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(folder))
    out.insert(e.path());
  return out;
}

// What `nobody` reads of the folder, by name.
std::string read_by_nobody(const fs::path& folder) {
  return output_of(
      {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c",
       "find \"$0\" -type f -readable ! -path '*/repo/*' 2>/dev/null || :", folder.string()});
}

}  // namespace

TEST_SUITE("privacy") {
  TEST_CASE("a declared secret is in no argument, no file and no foreign environment") {
    SecretsScene("").run_and_check();
  }

  TEST_CASE("nothing that is made of a campaign is open to other users of the host") {
    CampaignShape shape;
    shape.methods = {"noop", solving_method("solver")};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    const mode_t before = ::umask(0);  // it hides nothing
    const std::set<fs::path> given = all_in(scene.folder());
    REQUIRE(::chmod(scene.temp().c_str(), 0755) == 0);  // others may come as far as the campaign
    const CommandOutcome ran = scene.run("run");
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err);
    CHECK(open_to_others(scene, given) == "");
    for (const char* command : {"report", "verify", "status", "project", "resume"}) {
      CAPTURE(command);
      scene.run(command);
      CHECK(open_to_others(scene, given) == "");
    }
    CHECK(scene.run("keygen", {"--worker", "w1"}).exit_code == 0);
    CHECK(open_to_others(scene, given) == "");
    if (::geteuid() == 0) {
      const std::string found = read_by_nobody(scene.folder());
      CHECK(contains(found, "campaign.yaml"));  // the user's own is as he wrote it
      for (const char* ours : {"runs/", "reports/", ".proctor", "registration.json", ".csv"})
        CHECK_FALSE(contains(found, ours));
    }
    ::umask(before);
  }

  TEST_CASE("a folder of somebody else in /tmp is not given the socket of the workers") {
    // A campaign so deep that the socket's address would be too long in its own folder.
    const std::string usual = fs::temp_directory_path();
    const TempDir dir = must(TempDir::create("deep"));
    const fs::path deep = dir.path() / std::string(90, 'd');
    REQUIRE(make_dirs(deep).ok());
    ::setenv("TMPDIR", deep.c_str(), 1);
    const CampaignScene scene(gated_shape(1));
    ::setenv("TMPDIR", usual.c_str(), 1);
    const fs::path squatted =
        fs::path("/tmp") / ("proctor-" + std::to_string(::getuid()) + "-" +
                            sha256(fs::canonical(scene.folder()).string()).short_hex());
    REQUIRE(make_dirs(squatted).ok());
    REQUIRE(::chmod(squatted.c_str(), 0777) == 0);
    const CommandOutcome refused = scene.run("run");
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(contains(refused.err, squatted.string() + ": expected a folder of ours alone"),
                  refused.err);
    REQUIRE(fs::remove(squatted));
    scene.open_gate();
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    struct stat st {};
    REQUIRE(::lstat(squatted.c_str(), &st) == 0);
    CHECK((st.st_mode & 077U) == 0);
    REQUIRE(remove_tree(squatted).ok());
  }

  TEST_CASE("while it runs neither its journal nor its sockets nor its status are open") {
    const CampaignScene scene(gated_shape(1));
    const std::set<fs::path> given = all_in(scene.folder());
    const mode_t before = ::umask(0);
    Child running = scene.start("run");
    ::umask(before);
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    REQUIRE(fs::exists(scene.state() / "journal.sqlite-wal"));
    CHECK(open_to_others(scene, given) == "");
    scene.open_gate();
    CHECK(running.wait(std::chrono::seconds(180)) == 0);
    CHECK(open_to_others(scene, given) == "");
    scene.require_nothing_left();
  }
}
