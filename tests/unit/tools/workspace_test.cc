#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/tools/workspace_tools.h"

namespace proctor {
namespace {

class WorkScene {
 public:
  explicit WorkScene(WorkspaceRules rules = {})
      : dir_(TempDir::create("tools").value()), rules_(std::move(rules)) {
    REQUIRE(make_dirs(top()).ok());
  }
  fs::path top() const { return dir_.path() / "work"; }
  fs::path outside() const { return dir_.path() / "secret"; }
  void put(const std::string& path, std::string_view bytes) const {
    REQUIRE(make_dirs((top() / path).parent_path()).ok());
    REQUIRE(write_file(top() / path, bytes, Durability::kLazy).ok());
  }
  std::string get(const std::string& path) const {
    return read_file(top() / path, std::size_t{32} << 20).value();
  }
  WorkspaceTools tools() const { return WorkspaceTools::open(top(), rules_).value(); }

 private:
  TempDir dir_;
  WorkspaceRules rules_;
};

bool has(const ToolOutcome& outcome, std::string_view text) {
  CAPTURE(outcome.text);
  return outcome.text.find(text) != std::string::npos;
}

constexpr const char* kPatch =
    "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    "--- /dev/null\n+++ b/new/n.txt\n@@ -0,0 +1 @@\n+new\n"
    "--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";

}  // namespace

TEST_SUITE("workspace tools") {
  TEST_CASE("a folder is listed by name and depth, without .git") {
    WorkScene scene;
    scene.put("b.txt", "12345");
    scene.put("a/x/deep.txt", "1");
    scene.put(".git/config", "secret");
    REQUIRE(::symlink("/etc", (scene.top() / "link").c_str()) == 0);
    REQUIRE(::mkfifo((scene.top() / "pipe").c_str(), 0600) == 0);
    const WorkspaceTools tools = scene.tools();
    CHECK(tools.list({}).text == "a/\nb.txt  5\nlink  (a link)\npipe  (no file)\n");
    CHECK(tools.list({"", 3, 100}).text ==
          "a/\na/x/\na/x/deep.txt  1\nb.txt  5\nlink  (a link)\npipe  (no file)\n");
    CHECK(tools.list({"a", 1, 100}).text == "a/x/\n");
    CHECK(has(tools.list({"", 3, 2}), "a/\na/x/\n[there is more"));
    CHECK(tools.list({"link", 1, 100}).failed);
    CHECK(tools.list({"none", 1, 100}).failed);
    CHECK(tools.list({"b.txt", 1, 100}).failed);
  }

  TEST_CASE("a long path is told whole, and what is told is bounded") {
    WorkScene scene;
    const std::string deep = std::string(200, 'a') + "/" + std::string(200, 'b');
    for (int i = 0; i < 900; ++i) scene.put(deep + "/f" + std::to_string(i), "x\n");
    const WorkspaceTools tools = scene.tools();
    CHECK(has(tools.list({"", 3, 3}), deep + "/f0  2\n"));
    const ToolOutcome all = tools.list({"", 3, 2'000});
    CHECK(all.text.size() < 300'000);
    CHECK(has(all, "[there is more"));
    CHECK(has(tools.search({"x", "", "", true, 1}), deep + "/f0:1: x\n"));
  }

  TEST_CASE("a file is read by lines, and what is no text is named by its digest") {
    WorkScene scene;
    scene.put("a.txt", "one\ntwo\nthree\n");
    scene.put("b.bin", std::string("a\0b", 3));
    const WorkspaceTools tools = scene.tools();
    CHECK(tools.read({"a.txt", 1, 100}).text == "1\tone\n2\ttwo\n3\tthree\n");
    CHECK(tools.read({"a.txt", 2, 1}).text == "2\ttwo\n[lines 2 to 2 of 3]\n");
    CHECK(has(tools.read({"a.txt", 9, 1}), "the file has 3 lines"));
    CHECK(has(tools.read({"b.bin", 1, 1}), "no text: 3 bytes, SHA-256 "));
    CHECK(has(tools.read({"none", 1, 1}), "there is no none"));
    CHECK(tools.read({"none", 1, 1}).failed);
  }

  TEST_CASE("lines are found by pattern and glob, in files alone") {
    WorkScene scene;
    scene.put("src/a.py", "import os\nx = 1\n");
    scene.put("src/b.txt", "x = 2\n");
    scene.put("b.bin", std::string("x = 3\n\0", 7));
    scene.put(".git/c", "x = 4\n");
    const WorkspaceTools tools = scene.tools();
    CHECK(tools.search({"^x = \\d$", "", "", false, 200}).text ==
          "src/a.py:2: x = 1\nsrc/b.txt:1: x = 2\n[2 lines in 2 files, 1 file not searched]\n");
    CHECK(tools.search({"x = ", "", "*.py", true, 200}).text ==
          "src/a.py:2: x = 1\n[1 line in 1 file]\n");
    CHECK(has(tools.search({"x = ", "", "src/**/*.txt", true, 200}), "src/b.txt:1: x = 2\n"));
    CHECK(has(tools.search({"x = ", "src", "", true, 1}), "[1 line in 1 file; there may be more]"));
    CHECK(has(tools.search({"x", "src/a.py", "", true, 200}), "src/a.py:2: x = 1\n[1 line"));
    CHECK(has(tools.search({"nowhere", "", "", true, 200}), "[0 lines in 2 files"));
    CHECK(tools.search({"(", "", "", false, 200}).failed);
    CHECK(has(tools.search({"x", "none", "", true, 200}), "there is no none"));
  }

  TEST_CASE("a file is written, its mode stays, and the change is told by digests") {
    WorkScene scene;
    const WorkspaceTools tools = scene.tools();
    const ToolOutcome made = tools.write({"new/dir/a.sh", "true\n"});
    CHECK(made.text == "new/dir/a.sh: 5 bytes, created");
    REQUIRE(made.changes.size() == 1);
    CHECK(made.changes[0].path == "new/dir/a.sh");
    CHECK_FALSE(made.changes[0].before);
    CHECK(made.changes[0].after == sha256("true\n"));
    REQUIRE(::chmod((scene.top() / "new/dir/a.sh").c_str(), 0755) == 0);
    const ToolOutcome again = tools.write({"new/dir/a.sh", "false\n"});
    CHECK(again.text == "new/dir/a.sh: 6 bytes, replaced");
    CHECK(again.changes[0].before == sha256("true\n"));
    struct stat st {};
    REQUIRE(::stat((scene.top() / "new/dir/a.sh").c_str(), &st) == 0);
    CHECK((st.st_mode & 0777U) == 0755U);
    CHECK(scene.get("new/dir/a.sh") == "false\n");
    CHECK(has(tools.write({"new/dir", "x"}), "new/dir is a folder"));
    CHECK(has(tools.write({"new/dir/a.sh/x", "x"}), "not a folder"));
  }

  TEST_CASE("an edit applies where its text is there exactly as often as said") {
    WorkScene scene;
    scene.put("a.py", "x = 1\ny = 1\n");
    const WorkspaceTools tools = scene.tools();
    const ToolOutcome done = tools.edit({"a.py", "y = 1", "y = 2", 1});
    CHECK(done.text == "a.py: 1 replacement, line 2");
    CHECK(scene.get("a.py") == "x = 1\ny = 2\n");
    CHECK(done.changes.size() == 1);
    const ToolOutcome no = tools.edit({"a.py", "=", "==", 1});
    CHECK(no.failed);
    CHECK(no.changes.empty());
    CHECK(has(no, "2 times and not 1, at lines 1, 2"));
    CHECK(scene.get("a.py") == "x = 1\ny = 2\n");
    CHECK(tools.edit({"none.py", "a", "b", 1}).failed);
  }

  TEST_CASE("a patch applies to all of its files or to none") {
    WorkScene scene;
    scene.put("a.txt", "one\ntwo\n");
    scene.put("gone.txt", "gone\n");
    const WorkspaceTools tools = scene.tools();
    const ToolOutcome done = tools.patch({kPatch});
    CHECK(done.text == "a.txt, changed\nnew/n.txt, created\ngone.txt, removed\n");
    CHECK(scene.get("a.txt") == "one\n2\n");
    CHECK(scene.get("new/n.txt") == "new\n");
    CHECK_FALSE(fs::exists(scene.top() / "gone.txt"));
    REQUIRE(done.changes.size() == 3);
    CHECK_FALSE(done.changes[1].before);
    CHECK_FALSE(done.changes[2].after);

    WorkScene other;
    other.put("a.txt", "one\ntwo\n");
    other.put("gone.txt", "not what it says\n");
    const ToolOutcome no = other.tools().patch({kPatch});
    CHECK(no.failed);
    CHECK(no.changes.empty());
    CHECK(has(no, "hunk 1 (line 13 of the patch) does not fit gone.txt"));
    CHECK(other.get("a.txt") == "one\ntwo\n");
    CHECK_FALSE(fs::exists(other.top() / "new/n.txt"));
    other.put("new/n.txt", "there");
    CHECK(has(other.tools().patch({kPatch}), "which is there already"));
  }

  TEST_CASE("no link is followed out of the workspace, and nothing but files is opened") {
    WorkScene scene;
    REQUIRE(write_file(scene.outside(), "outside\n").ok());
    scene.put("dir/keep", "x");
    REQUIRE(::symlink("../secret", (scene.top() / "link").c_str()) == 0);
    REQUIRE(::symlink("..", (scene.top() / "up").c_str()) == 0);
    REQUIRE(::mkfifo((scene.top() / "pipe").c_str(), 0600) == 0);
    const WorkspaceTools tools = scene.tools();
    for (const char* path : {"link", "up/secret", "pipe"}) {
      CAPTURE(path);
      CHECK(tools.read({path, 1, 10}).failed);
      CHECK(tools.write({path, "mine"}).failed);
      CHECK(tools.edit({path, "outside", "mine", 1}).failed);
      CHECK(tools.search({"outside", path, "", true, 10}).text.find("outside\n") ==
            std::string::npos);
    }
    const std::string patch = "--- a/up/secret\n+++ b/up/secret\n@@ -1 +1 @@\n-outside\n+mine\n";
    CHECK(tools.patch({patch}).failed);
    CHECK(tools.search({"outside", "", "", true, 10}).text == "[0 lines in 1 file]\n");
    CHECK(read_file(scene.outside(), 100).value() == "outside\n");
  }

  TEST_CASE("what is protected, or not writable, is refused at once") {
    WorkScene scene({.writable = {"src"}, .guarded = {"src/tests"}});
    scene.put("src/a.py", "x\n");
    scene.put("src/tests/t.py", "x\n");
    scene.put("other.py", "x\n");
    const WorkspaceTools tools = scene.tools();
    CHECK_FALSE(tools.write({"src/a.py", "y\n"}).failed);
    CHECK(has(tools.write({"src/tests/t.py", "y\n"}), "Refused: src/tests/t.py is protected"));
    CHECK(has(tools.edit({"src/tests/t.py", "x", "y", 1}), "Refused"));
    CHECK(has(tools.write({"other.py", "y\n"}), "lets nobody change other.py"));
    const std::string patch =
        "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-y\n+z\n"
        "--- a/other.py\n+++ b/other.py\n@@ -1 +1 @@\n-x\n+z\n";
    CHECK(has(tools.patch({patch}), "Refused"));
    CHECK(scene.get("src/a.py") == "y\n");
    CHECK(scene.get("other.py") == "x\n");
    CHECK_FALSE(tools.read({"other.py", 1, 1}).failed);
  }
}

}  // namespace proctor
