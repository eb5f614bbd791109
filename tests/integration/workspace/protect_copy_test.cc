// Copies of a workspace that programs of the candidate's have written to: what is put back there.
#include <fcntl.h>

#include "tests/integration/workspace/fixture.h"
#include "worker/workspace/copy_tree.h"

namespace proctor {
namespace {

using namespace testing;

using Names = std::vector<std::string>;

// Copied as a container is shown it: all of the workspace, or its tests.
struct Copied {
  Copied(const TempDir& temp, const std::string& part_) : part(part_) {
    store = open_store(temp.path() / "store");
    const Repo repo = make_repo(temp.path() / "repo");
    ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
    put(ws->dir() / "tests/made-by-setup", "x\n");
    made = ws->made_under({"tests/**"}, temp.path() / "keep").value();
    put(ws->dir() / "tests/own/judge.py", "judge\n");
    put(ws->dir() / "src/judge.sh", "judge\n", 0755);
    REQUIRE(make_dirs(dir / part).ok());
    CopiedFiles files;
    REQUIRE(copy_tree(ws->dir() / part, dir / part, files).ok());
    for (const auto& [path, file] : files) known[part.empty() ? path : part + '/' + path] = file;
  }
  Names again(const Names& globs = {"tests/**"}) {
    const auto changed = ws->restore_copy({dir, part, known}, globs, made, placed);
    REQUIRE_MESSAGE(changed.ok(), (changed.ok() ? "" : changed.error().detail));
    return *changed;
  }
  fs::path tests() const { return dir / "tests"; }

  std::unique_ptr<WorkspaceStore> store;
  std::unique_ptr<Workspace> ws;
  std::string part;
  TempDir copy = temp_dir();
  fs::path dir = copy.path();
  CopiedFiles known;
  MadeUnder made;
  std::map<std::string, PlacedFile> placed = {{"tests/own/judge.py", {"judge\n", 0644}},
                                              {"src/judge.sh", {"judge\n", 0755}}};
};

TEST_SUITE("workspace") {
  TEST_CASE("protected files of a copy are put back, and the rest of it is left as it is") {
    for (const std::string part : {"", "tests"}) {
      CAPTURE(part);
      const TempDir temp = temp_dir();
      Copied copy(temp, part);
      CHECK(copy.again().empty());
      const fs::path tests = copy.tests();
      put(tests / "test_a.py", "assert False\n");
      put(tests / "own/judge.py", "jokes\n");
      put(tests / "conftest.py", "planted\n");
      put(tests / "__pycache__/test_a.cpython-311.pyc", "x\n");
      put(tests / "planted/deep/er", "x\n");
      fs::remove(tests / "made-by-setup");
      if (part.empty()) put(copy.dir / "src/built.o", "mine\n");
      if (part.empty()) put(copy.dir / "src/judge.sh", "jokes\n");
      Names changed = {"tests/__pycache__/test_a.cpython-311.pyc",
                       "tests/conftest.py",
                       "tests/made-by-setup",
                       "tests/own/judge.py",
                       "tests/planted/deep/er",
                       "tests/test_a.py"};
      if (part.empty()) changed.insert(changed.begin(), "src/judge.sh");
      CHECK(copy.again() == changed);
      CHECK(slurp(tests / "test_a.py") == "assert True\n");
      CHECK(slurp(tests / "own/judge.py") == "judge\n");
      CHECK(slurp(tests / "made-by-setup") == "x\n");
      CHECK_FALSE(fs::exists(tests / "conftest.py"));
      CHECK_FALSE(fs::exists(tests / "planted"));
      CHECK(fs::exists(copy.dir / "src") == part.empty());  // no more than the copy is to have
      if (part.empty()) {
        CHECK(slurp(copy.dir / "src/built.o") == "mine\n");
        CHECK(slurp(copy.dir / "src/judge.sh") == "judge\n");
      }
      CHECK(copy.again().empty());
      // Nothing is protected, and what the contract places is its own all the same.
      put(tests / "own/judge.py", "jokes\n");
      CHECK(copy.again({}) == Names{"tests/own/judge.py"});
      CHECK(slurp(tests / "own/judge.py") == "judge\n");
    }
  }

  TEST_CASE("whatever stands in a copy where protected files must be gives way, unfollowed") {
    for (const std::string part : {"", "tests"}) {
      CAPTURE(part);
      const TempDir temp = temp_dir();
      Copied copy(temp, part);
      const fs::path tests = copy.tests(), test = tests / "test_a.py";
      const fs::path outside = temp.path() / "outside";
      put(outside / "test_a.py", "assert False\n");
      put(outside / "judge.py", "assert False\n");
      const auto is_put_back = [&](const std::string& name) {
        CAPTURE(name);
        const Names changed = copy.again();
        CHECK(std::ranges::find(changed, name) != changed.end());
        CHECK(slurp(test) == "assert True\n");
        CHECK(fs::is_regular_file(fs::symlink_status(test)));
        CHECK(fs::hard_link_count(test) == 1);
        CHECK(slurp(tests / "own/judge.py") == "judge\n");
        CHECK(fs::is_directory(fs::symlink_status(tests / "own")));
        CHECK(fs::is_directory(fs::symlink_status(tests)));
        CHECK(slurp(outside / "test_a.py") == "assert False\n");
        CHECK(slurp(outside / "judge.py") == "assert False\n");
        CHECK(copy.again().empty());
      };
      fs::remove(test);
      fs::create_symlink(outside / "test_a.py", test);
      is_put_back("tests/test_a.py");
      fs::remove(test);
      REQUIRE(::mkfifo(test.c_str(), 0666) == 0);
      is_put_back("tests/test_a.py");
      fs::remove(test);
      REQUIRE(make_dirs(test / "folder").ok());
      is_put_back("tests/test_a.py");
      fs::remove(test);
      put(tests.parent_path() / "twin", "assert False\n");
      fs::create_hard_link(tests.parent_path() / "twin", test);
      is_put_back("tests/test_a.py");
      fs::remove_all(tests / "own");
      fs::create_directory_symlink(outside, tests / "own");
      is_put_back("tests/own/judge.py");
      REQUIRE(::chmod(test.c_str(), 0) == 0);
      REQUIRE(::chmod((tests / "own").c_str(), 0) == 0);
      is_put_back("tests/test_a.py");
      fs::remove_all(tests);
      fs::create_directory_symlink(outside, tests);
      is_put_back("tests/test_a.py");
    }
  }

  TEST_CASE("a copy that is nested beyond all bounds is nobody's want of anything") {
    const TempDir temp = temp_dir();
    Copied copy(temp, "");
    fs::path deep = copy.tests();
    for (int i = 0; i < 130; ++i) deep /= "d";
    REQUIRE(make_dirs(deep).ok());
    CHECK_FALSE(copy.again({"**/*.py"}).empty());
    CHECK(slurp(copy.tests() / "test_a.py") == "assert True\n");
    CHECK(copy.again({"**/*.py"}).empty());
  }
}

}  // namespace
}  // namespace proctor
