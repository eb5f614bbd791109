// What of a campaign other users of the host see: neither the secrets its agents are given, nor
// anything that was made of it.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <set>

#include "tests/integration/campaign/secrets_scene.h"
#include "tests/support/provider_server.h"

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

// A repository behind a server that wants a password, as git reads plain files over HTTP.  While
// git waits for an answer, all arguments on this machine are looked at.
class GuardedRepository {
 public:
  explicit GuardedRepository(const fs::path& git_dir)
      : server_([this, git_dir](const ProviderServer::Heard& asked, std::size_t) {
          const std::string seen = arguments_with(kWord);
          const std::lock_guard lock(mutex_);
          in_arguments_ += seen;
          ProviderSays says;
          // user:sesame-9@hunter2
          if (!contains(asked.head, "Basic dXNlcjpzZXNhbWUtOUBodW50ZXIy")) {
            says.status = 401;
            says.headers = "WWW-Authenticate: Basic realm=\"x\"\r\n";
            return says;
          }
          ++let_in_;
          const auto file =
              read_file(git_dir / asked.path.substr(1, asked.path.find('?') - 1), 1 << 20);
          says.status = file.ok() ? 200 : 404;
          says.body = file.ok() ? *file : "";
          return says;
        }) {}
  static constexpr const char* kWord = "sesame-9";  // of the password
  std::string url(const std::string& user = "user:sesame-9%40hunter2@") const {
    std::string out = server_.at();
    return out.insert(out.find("://") + 3, user);
  }
  std::size_t let_in() const {
    const std::lock_guard lock(mutex_);
    return let_in_;
  }
  std::string in_arguments() const {
    const std::lock_guard lock(mutex_);
    return in_arguments_;
  }

 private:
  static std::string arguments_with(const std::string& word) {
    std::string seen;
    std::error_code ec;
    for (fs::directory_iterator it("/proc", ec), end; !ec && it != end; it.increment(ec)) {
      const auto line = read_file(it->path() / "cmdline", 1 << 20);
      if (line.ok() && contains(*line, word)) seen += *line + "\n";
    }
    return seen;
  }
  mutable std::mutex mutex_;
  std::string in_arguments_;
  std::size_t let_in_ = 0;
  ProviderServer server_;  // ends first
};

std::set<fs::path> files_with(const fs::path& folder, const std::string& word) {
  std::set<fs::path> seen;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    if (it->symlink_status(ec).type() != fs::file_type::regular) continue;
    const auto bytes = read_file(it->path(), std::size_t{64} << 20);
    if (bytes.ok() && contains(*bytes, word)) seen.insert(it->path());
  }
  return seen;
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

  TEST_CASE("the password of a repository's URL is in no output, no argument and no file of ours") {
    CampaignShape shape;
    shape.methods = {"noop", "reference", solving_method("solver")};
    shape.replicates = 1;
    shape.workers = 1;
    const CampaignScene scene(shape);
    output_of({"git", "update-server-info"}, scene.repository());
    const GuardedRepository guarded(scene.repository() / ".git");
    const std::string word = GuardedRepository::kWord;
    const std::string given = scene.read(scene.contract());
    const auto with_source = [&](const std::string& source) {
      scene.write(scene.contract(), given);
      scene.edit(scene.contract(), "../repo", source);
    };
    // Also where something is wrong with it, and it is told what.
    const std::string commit = given.substr(given.find("commit: \"") + 9, 40);
    for (const std::string& wrong :
         {guarded.url("sesame-9:wrong@"), "htps://user:" + word + "@h/x",
          "https://u:" + word + "@/x", "ssh://user:" + word + "@127.0.0.1:1/x",
          guarded.url("") + "?token=" + word, guarded.url("user:1/" + word + "@"),
          "user:" + word + "@127.0.0.1:x", "htps://user:" + word + std::string(80, 'x') + "@h/x"}) {
      CAPTURE(wrong);
      with_source(wrong);
      const CommandOutcome checked = scene.run("check");
      CHECK(checked.exit_code == 2);
      CHECK_FALSE(contains(checked.out + checked.err, word));
    }
    with_source(guarded.url());
    scene.edit(scene.contract(), commit, std::string(40, 'a'));
    const CommandOutcome absent = scene.run("check");
    CHECK_MESSAGE(contains(absent.err, "has no commit aaaa"), absent.err);
    CHECK_FALSE(contains(absent.out + absent.err, word));

    with_source(guarded.url());
    const std::size_t before = guarded.let_in();
    CHECK(scene.run("check").exit_code == 0);
    CHECK(before < guarded.let_in());
    std::string said;
    const auto says = [&](const std::string& command, const std::vector<std::string>& more = {}) {
      const CommandOutcome done = scene.run(command, more);
      said += "\n" + command + ":\n" + done.out + done.err;
      return done.exit_code;
    };
    CHECK(says("try", {"add", "solver"}) == 0);
    CHECK(says("run") == 0);
    CHECK(says("verify") == 0);
    for (const char* command : {"status", "report", "list", "story", "project", "budget", "power",
                                "leaderboard", "resume", "plan", "selfcheck", "screen"})
      says(command);
    for (const char* command : {"status", "report", "list", "story"}) says(command, {"--json"});
    for (const char* command : {"explain", "logs", "diff"}) says(command, {"add/solver/r1"});
    CHECK_FALSE(contains(said, word));
    CHECK(guarded.in_arguments() == "");
    // The contract is kept as it was written, or its digest would be another's: for us alone.
    const std::set<fs::path> files = files_with(scene.temp(), word);
    CHECK(files.contains(scene.state() / "registered/contracts/add.yaml"));
    for (const fs::path& file : files) {
      CAPTURE(file);
      if (file == scene.contract()) continue;
      CHECK((contains(file.string(), "/registered/") || contains(file.string(), "/bundles/")));
      struct stat st {};
      CHECK((::lstat(file.c_str(), &st) == 0 && (st.st_mode & 077U) == 0));
    }
    scene.require_nothing_left();
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
