// Where a campaign keeps what it makes lie folders and files of its own: behind a link, a pipe or a
// device in their place is somebody else's thing, and nothing waits for it.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

CampaignShape small() {
  CampaignShape shape;
  shape.methods = {"noop"};
  shape.replicates = 1;
  shape.ledger = "journal";
  return shape;
}

// Far beyond what a refusal takes, far below what whoever waits for a pipe needs.
constexpr std::chrono::milliseconds kAtOnce = 60s;

void refuses(const CampaignScene& scene, const std::string& command, const std::string& text,
             std::vector<std::string> more = {}) {
  CAPTURE(command);
  const CommandOutcome out = scene.run(command, std::move(more), kAtOnce);
  CHECK_FALSE(out.timed_out);
  CHECK(out.exit_code == 2);
  CHECK_MESSAGE(contains(out.err, text), (out.out + out.err));
}

}  // namespace

TEST_SUITE("campaign") {
  TEST_CASE("nothing begins or goes on where runs, reports or .proctor are none of its own") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path elsewhere = scene.temp() / "elsewhere";
    for (const char* name : {"runs", "reports", ".proctor"}) {
      CAPTURE(name);
      const fs::path place = scene.folder() / name;
      const std::string must = ", where the campaign's own folder must be: ";
      const std::string linked =
          place.string() + ": a symbolic link" + must + "put the folder that it leads to in its";
      const std::string dangles = place.string() + ": a symbolic link that leads nowhere" + must;
      fs::rename(place, elsewhere);
      fs::create_directory_symlink(elsewhere, place);
      for (const char* command : {"check", "plan", "run", "serve", "resume"})
        refuses(scene, command, linked);
      const CommandOutcome verified = scene.run("verify");
      CHECK(verified.exit_code == 1);
      CHECK_MESSAGE(contains(verified.out, linked), verified.out);
      fs::remove(place);
      fs::create_directory_symlink(scene.temp() / "nowhere", place);
      for (const char* command : {"check", "run", "serve", "resume"})
        refuses(scene, command, dangles);
      fs::remove(place);
      scene.write(place, "x");
      refuses(scene, "check", place.string() + ": a file" + must);
      fs::remove(place);
      fs::rename(elsewhere, place);
      CHECK(scene.run("verify").exit_code == 0);
    }
    CHECK(scene.run("resume").exit_code == 0);
  }

  TEST_CASE("a first run into a runs folder that leads nowhere is refused, and not tried again") {
    const CampaignScene scene(small());
    fs::create_directory_symlink(scene.temp() / "nowhere", scene.folder() / "runs");
    refuses(scene, "run", "runs: a symbolic link that leads nowhere");
    CHECK_FALSE(fs::exists(scene.folder() / "registration.json"));
  }

  TEST_CASE("a pipe, folder, device or link for a file of the journal is named, not waited for") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path journal = scene.state() / "journal.sqlite", away = scene.temp() / "away";
    const std::string run = "add/noop/r1";
    struct Kind {
      const char* word;
      void (*put)(const fs::path&);
    };
    const Kind kinds[] = {
        {"a named pipe", [](const fs::path& at) { REQUIRE(::mkfifo(at.c_str(), 0600) == 0); }},
        {"a folder", [](const fs::path& at) { fs::create_directory(at); }},
        {"a symbolic link", [](const fs::path& at) { fs::create_symlink("/dev/null", at); }},
        {"a symbolic link that leads nowhere",
         [](const fs::path& at) { fs::create_symlink("nowhere", at); }}};
    for (const char* ending : {"", "-wal", "-shm", ".lock"}) {
      const fs::path file = journal.string() + ending;
      const bool was = fs::exists(file);
      if (was) fs::rename(file, away);
      for (const Kind& kind : kinds) {
        kind.put(file);
        const std::string text = file.string() + " is " + kind.word + ", where a file must be";
        CAPTURE(text);
        for (const char* command : {"run", "report"}) refuses(scene, command, text);
        fs::remove_all(file);
      }
      if (was) fs::rename(away, file);
    }
    // Whoever reads, mends or changes the journal in other ways, by the kind that holds up longest.
    for (const char* ending : {"", "-wal", ".lock"}) {
      const fs::path file = journal.string() + ending;
      const bool was = fs::exists(file);
      if (was) fs::rename(file, away);
      REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
      const std::string text = file.string() + " is a named pipe, where a file must be";
      for (const char* command : {"resume", "serve", "verify", "budget", "story", "list"})
        refuses(scene, command, text);
      refuses(scene, "explain", text, {run});
      refuses(scene, "cancel", text, {"all", "--reason", "enough"});
      refuses(scene, "requeue", text, {"all"});
      refuses(scene, "remove-task", text, {"add", "--reason", "it is broken"});
      for (const char* command : {"check", "head", "recover"}) {
        CAPTURE(command);
        CommandSpec spec;
        spec.argv = {proctor_program().string(), "journal", command, scene.folder().string()};
        spec.timeout = kAtOnce;
        const CommandOutcome out = must(run_command(spec));
        CHECK_FALSE(out.timed_out);
        CHECK(out.exit_code == 2);
        CHECK_MESSAGE(contains(out.err, text), (out.out + out.err));
      }
      const CommandOutcome status = scene.run("status", {}, kAtOnce);
      CHECK_FALSE(status.timed_out);
      CHECK_MESSAGE(contains(status.out + status.err, "a named pipe"), (status.out + status.err));
      fs::remove(file);
      if (was) fs::rename(away, file);
    }
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("a campaign on a read-only file system is the host's fault, not its author's") {
    if (::geteuid() != 0) return;  // who may not mount has no such file system here
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const std::string folder = scene.folder().string();
    const std::vector<std::vector<std::string>> acts{
        {"resume", folder}, {"budget", "raise", folder, "global", "61", "--reason", "more"}};
    for (const std::vector<std::string>& act : acts) {
      CAPTURE(act[0]);
      CommandSpec spec;
      spec.argv = {"unshare",
                   "--mount",
                   "--kill-child",
                   "sh",
                   "-c",
                   "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec \"$@\"",
                   folder,
                   proctor_program().string()};
      spec.argv.insert(spec.argv.end(), act.begin(), act.end());
      const CommandOutcome out = must(run_command(spec));
      CHECK(out.exit_code == 4);
      CHECK_MESSAGE(contains(out.err, "Read-only file system"), out.err);
    }
  }
}
