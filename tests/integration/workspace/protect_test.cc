// Protected paths after the candidate's code has run: what is put back, and what goes.
#include <fcntl.h>
#include <sys/resource.h>

#include "tests/integration/workspace/fixture.h"
#include "worker/workspace/trusted_part.h"

namespace proctor {
namespace {

using namespace testing;

TEST_SUITE("workspace") {
  TEST_CASE("protected files are put back again with what setup made and nothing beside them") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
      const fs::path dir = ws->dir();
      put(dir / "tests/made-by-setup", "x\n");
      put(dir / "tests/build/product.o", "untouched\n");
      put(dir / "tests/data/x.txt", "setup rewrites this\n");
      REQUIRE(make_dirs(dir / "tests/empty").ok());
      const fs::path keep = temp.path() / "keep" / std::string(to_string(kind));
      const MadeUnder made = ws->made_under({"tests/**"}, keep).value();
      CHECK(made.paths == std::vector<std::string>{"tests/build/", "tests/build/product.o",
                                                   "tests/data/x.txt", "tests/empty/",
                                                   "tests/made-by-setup"});
      const std::map<std::string, PlacedFile> placed = {{"tests/own/judge.py", {"judge\n", 0644}}};
      const auto again = [&] {
        const auto changed = ws->restore_again({"tests/**"}, made, placed);
        REQUIRE_MESSAGE(changed.ok(), (changed.ok() ? "" : changed.error().detail));
        return *changed;
      };
      put(dir / "tests/own/judge.py", "judge\n");
      CHECK(again().empty());
      // What the snapshot's .gitignore (build/ and *.log but keep.log) and every tool ignore.
      put(dir / "tests/build/object.o", "x\n");
      put(dir / "tests/node_modules/a/index.js", "x\n");
      put(dir / "tests/__pycache__/test_a.cpython-311.pyc", "x\n");
      put(dir / "tests/run.log", "x\n");
      put(dir / "tests/keep.log", "x\n");
      put(dir / "tests/conftest.py", "planted\n");
      put(dir / ".gitignore", "conftest.py\n");
      put(dir / "tests/test_a.py", "assert False\n");
      put(dir / "tests/build/product.o", "altered\n");
      put(dir / "tests/own/judge.py", "jokes\n");
      put(dir / "tests/empty/output", "x\n");
      fs::remove(dir / "tests/made-by-setup");
      put(dir / "src/main.py", "mine\n");
      put(dir / "src/__pycache__/main.pyc", "mine\n");
      CHECK(again() == std::vector<std::string>{
                           "tests/__pycache__/test_a.cpython-311.pyc", "tests/build/object.o",
                           "tests/build/product.o", "tests/conftest.py", "tests/empty/output",
                           "tests/keep.log", "tests/made-by-setup", "tests/node_modules/a/index.js",
                           "tests/own/judge.py", "tests/run.log", "tests/test_a.py"});
      CHECK(slurp(dir / "tests/test_a.py") == "assert True\n");
      CHECK(slurp(dir / "tests/data/x.txt") == "setup rewrites this\n");
      CHECK(slurp(dir / "tests/build/product.o") == "untouched\n");
      CHECK(slurp(dir / "tests/made-by-setup") == "x\n");
      CHECK(slurp(dir / "tests/own/judge.py") == "judge\n");
      CHECK(fs::is_empty(dir / "tests/empty"));
      CHECK_FALSE(fs::exists(dir / "tests/__pycache__"));
      CHECK_FALSE(fs::exists(dir / "tests/node_modules"));
      CHECK(slurp(dir / "src/main.py") == "mine\n");
      CHECK(slurp(dir / "src/__pycache__/main.pyc") == "mine\n");
      CHECK(again().empty());
      // Nothing of the untouched setup is at hand: what it made is no more trusted than the rest.
      // Written again, for what was found right and has lain there a while is not looked at again.
      put(dir / "tests/data/x.txt", "setup rewrites this\n");
      put(dir / "tests/made-by-setup", "x\n");
      const auto without = ws->restore_again({"tests/**"}, MadeUnder{}, placed);
      REQUIRE(without.ok());
      CHECK(slurp(dir / "tests/data/x.txt") != "setup rewrites this\n");
      CHECK_FALSE(fs::exists(dir / "tests/made-by-setup"));
      CHECK(ws->restore_again({}, {}, {})->empty());
    }
  }

  TEST_CASE("what the contract places is put back by its name, whatever the globs say") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    const std::map<std::string, PlacedFile> placed = {{"**", {"judge\n", 0644}},
                                                      {"judge/own.py", {"judge\n", 0644}}};
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
      const fs::path dir = ws->dir();
      for (const char* name : {"**", "judge/own.py", "judge/__pycache__/own.cpython-311.pyc"})
        put(dir / name, "jokes\n");
      for (const char* name : {"mine", "judge/mine.py", "src/main.py"}) put(dir / name, "mine\n");
      CHECK(
          ws->restore_again({}, {}, placed).value() ==
          std::vector<std::string>{"**", "judge/__pycache__/own.cpython-311.pyc", "judge/own.py"});
      for (const auto& [name, file] : placed) CHECK(slurp(dir / name) == "judge\n");
      for (const char* name : {"mine", "judge/mine.py", "src/main.py"})
        CHECK(slurp(dir / name) == "mine\n");
      CHECK(ws->restore_again({}, {}, placed)->empty());
      fs::remove_all(dir / "judge");
      put(dir / "judge", "a file\n");
      CHECK(ws->restore_again({}, {}, placed).value() == std::vector<std::string>{"judge/own.py"});
      CHECK(slurp(dir / "judge/own.py") == "judge\n");
    }
  }

  TEST_CASE("a host without descriptors is no fault of what was left") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    auto store = open_store(temp.path() / "store");
    auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
    put(ws->dir() / "tests/deep/er/planted", "x\n");
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const int first = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get();  // free again
    bool failed = false;
    for (rlim_t more = 0; more < 8; ++more) {
      const rlimit few{static_cast<rlim_t>(first) + more, before.rlim_max};
      REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
      const auto changed = ws->restore_again({"tests/**"}, {}, {});
      REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
      if (changed.ok()) break;
      failed = true;
      const Errc code = changed.error().code;
      CHECK_MESSAGE((code != Errc::kExhausted && code != Errc::kInvalid), changed.error().detail);
      CHECK(slurp(ws->dir() / "tests/test_a.py") == "assert True\n");
    }
    CHECK(failed);
  }

  TEST_CASE("whatever stands where protected files must be gives way to them") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    const fs::path outside = temp.path() / "outside";
    put(outside / "test_a.py", "assert False\n");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      for (const std::string glob : {"tests/**", "tests/*.py"}) {
        CAPTURE(to_string(kind));
        CAPTURE(glob);
        auto store = open_store(temp.path() / "store", kind);
        auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
        const fs::path tests = ws->dir() / "tests", test = tests / "test_a.py";
        const auto again = [&] {
          const auto changed = ws->restore_again({glob}, {}, {});
          REQUIRE_MESSAGE(changed.ok(), (changed.ok() ? "" : changed.error().detail));
          CHECK(slurp(test) == "assert True\n");
          CHECK(fs::is_directory(fs::symlink_status(tests)));
          CHECK(fs::is_regular_file(fs::symlink_status(test)));
          CHECK(fs::hard_link_count(test) == 1);
          CHECK(slurp(outside / "test_a.py") == "assert False\n");
          CHECK(ws->restore_again({glob}, {}, {})->empty());
          return *changed;
        };
        const auto names = [&](const std::vector<std::string>& changed) {
          return std::ranges::find(changed, "tests/test_a.py") != changed.end();
        };
        fs::remove_all(tests);
        fs::create_directory_symlink(outside, tests);
        CHECK(names(again()));
        fs::remove_all(tests);
        REQUIRE(::mkfifo(tests.c_str(), 0600) == 0);
        CHECK(names(again()));
        fs::remove_all(tests);
        put(tests, "a file\n");
        CHECK(names(again()));
        fs::remove(test);
        put(test / "test_a.py/deeper", "x\n");
        CHECK(names(again()));
        fs::create_hard_link(test, ws->dir() / "twin");
        CHECK(names(again()));
        fs::remove(test);
        fs::create_symlink(outside / "test_a.py", test);
        CHECK(names(again()));
        // As old as the file it replaces, and as long.
        put(test, "assert Fals\n");
        const timespec times[2] = {{1577836800, 0}, {1577836800, 0}};
        REQUIRE(::utimensat(AT_FDCWD, test.c_str(), times, 0) == 0);
        CHECK(names(again()));
        struct stat st {};
        REQUIRE(::stat(test.c_str(), &st) == 0);
        CHECK(st.st_mtim.tv_sec == 1577836800);
        // The right content with another time is no change, and gets the time of all.
        put(test, "assert True\n");
        const timespec other[2] = {{1700000000, 0}, {1700000000, 0}};
        REQUIRE(::utimensat(AT_FDCWD, test.c_str(), other, 0) == 0);
        CHECK(again().empty());
        REQUIRE(::stat(test.c_str(), &st) == 0);
        CHECK(st.st_mtim.tv_sec == 1577836800);
        // Byte code that would be loaded in the place of a protected source.
        put(tests / "__pycache__/test_a.cpython-311.pyc", "x\n");
        put(tests / "test_a.pyc", "x\n");
        put(tests / "test_a.abi3.so", "x\n");
        CHECK(again() == std::vector<std::string>{"tests/__pycache__/test_a.cpython-311.pyc",
                                                  "tests/test_a.abi3.so", "tests/test_a.pyc"});
        if (glob == "tests/**") {
          fs::path deep = tests;
          for (int i = 0; i < 400; ++i) deep /= "d";
          std::error_code ec;
          fs::create_directories(deep, ec);
          put(tests / "d/planted.py", "x\n");
          CHECK_FALSE(again().empty());
          CHECK_FALSE(fs::exists(tests / "d"));
        }
        // Closed, so that a search for tests finds none.
        fs::permissions(tests, fs::perms::none);
        CHECK(ws->restore_again({glob}, {}, {}).value() == std::vector<std::string>{"tests"});
        CHECK((fs::status(tests).permissions() & fs::perms::owner_all) == fs::perms::owner_all);
      }
    }
  }

  TEST_CASE("a folder whose files all were refused goes with them") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, repo.pinned());
      auto agents = create(*store, snapshot, "agent"), ws = create(*store, snapshot, "judge");
      const fs::path left = agents->dir(), dir = ws->dir();
      for (const char* name : {"ghost/mod.py", "nested/a/b/mod.py", "mixed/mine.py", "mixed/theirs",
                               "mixed/sub/mod.py", "build/ghost/mod.py", "tests/extra/a/test_b.py"})
        put(left / name, "x\n");
      REQUIRE(make_dirs(left / "hollow/er").ok());
      REQUIRE(make_dirs(left / "linked").ok());
      fs::create_directory_symlink("../src", left / "linked/src");
      fs::remove_all(left / "src/deep");
      put(left / "src/deep", "a file\n");
      fs::remove_all(left / "tests/data");
      fs::create_directory_symlink("../src", left / "tests/data");
      fs::remove(left / "empty");
      put(left / "empty/mod.py", "x\n");
      const Patch patch = extract(*agents);
      REQUIRE(ws->apply(patch.diff).ok());
      CHECK(fs::exists(dir / "nested/a/b/mod.py"));
      // No patch has files that git ignores, or a folder without a file.
      for (const char* name : {"build", "hollow"}) CHECK_FALSE(fs::exists(dir / name));
      std::vector<std::string> refused = patch.paths;
      std::erase(refused, "mixed/mine.py");
      REQUIRE(ws->restore({"tests/**"}, refused).ok());
      for (const char* name :
           {"ghost", "nested", "mixed/theirs", "mixed/sub", "tests/extra", "linked"})
        CHECK_MESSAGE(!fs::exists(fs::symlink_status(dir / name)), name);
      for (const char* name : {"src/deep", "src/deep/er", "tests/data"})
        CHECK_MESSAGE(fs::is_directory(fs::symlink_status(dir / name)), name);
      CHECK(fs::is_empty(dir / "empty"));
      CHECK(fs::is_regular_file(fs::symlink_status(dir / "empty")));
      CHECK(extract(*ws).paths == std::vector<std::string>{"mixed/mine.py"});
    }
  }

  TEST_CASE("a folder of the candidate's goes with its protected files, and no other one") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    const std::vector<std::string> globs = {"**/conftest.py", "src/deep/**"};
    const std::map<std::string, PlacedFile> placed = {{"judge/own.py", {"judge\n", 0644}}};
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
      const fs::path dir = ws->dir();
      REQUIRE(make_dirs(dir / "made/empty").ok());
      const fs::path keep = temp.path() / "keep" / std::string(to_string(kind));
      const MadeUnder made = ws->made_under(globs, keep).value();
      const std::vector<std::string> planted = {
          "build/conftest.py",        "ghost/a/conftest.py",  "judge/__pycache__/own.pyc",
          "made/empty/conftest.py",   "made/own/conftest.py", "mixed/conftest.py",
          "src/deep/new/conftest.py", "tests/conftest.py"};
      for (const std::string& name : planted) put(dir / name, "x\n");
      put(dir / "judge/own.py", "judge\n");
      put(dir / "mixed/mine.py", "x\n");
      REQUIRE(make_dirs(dir / "src/deep/hollow/er").ok());
      std::vector<std::string> changed = planted;
      changed.insert(changed.begin() + 6, "src/deep/hollow/er");
      std::ranges::sort(changed);
      CHECK(ws->restore_again(globs, made, placed).value() == changed);
      for (const char* name :
           {"build", "ghost", "judge/__pycache__", "made/own", "src/deep/new", "src/deep/hollow"})
        CHECK_MESSAGE(!fs::exists(dir / name), name);
      for (const char* name : {"made/empty", "tests", "src/deep/er"})
        CHECK_MESSAGE(fs::is_directory(dir / name), name);
      CHECK(slurp(dir / "mixed/mine.py") == "x\n");
      CHECK(slurp(dir / "judge/own.py") == "judge\n");
      CHECK(ws->restore_again(globs, made, placed)->empty());
    }
  }

  TEST_CASE("a folder that was closed is opened, whoever made what belongs into it") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
      const fs::path tests = ws->dir() / "tests";
      put(tests / "made/by/setup.txt", "x\n");
      const fs::path keep = temp.path() / "keep" / std::string(to_string(kind));
      const MadeUnder made = ws->made_under({"tests/**"}, keep).value();
      const std::map<std::string, PlacedFile> placed = {{"tests/own/test_b.py", {"b\n", 0644}}};
      REQUIRE(ws->put_file("tests/own/test_b.py", "b\n", 0644, Way::kCleared).ok());
      CHECK(ws->restore_again({"tests/**"}, made, placed)->empty());
      for (const char* folder : {"own", "made/by", "made"})
        fs::permissions(tests / folder, fs::perms::none);
      CHECK(ws->restore_again({"tests/**"}, made, placed).value() ==
            std::vector<std::string>{"tests/made", "tests/made/by", "tests/own"});
      for (const char* folder : {"own", "made/by", "made"}) {
        CAPTURE(folder);
        CHECK((fs::status(tests / folder).permissions() & fs::perms::owner_all) ==
              fs::perms::owner_all);
      }
      CHECK(slurp(tests / "own/test_b.py") == "b\n");
    }
  }

  TEST_CASE("all that is in a home is put back, and only what was changed there") {
    const TempDir temp = temp_dir();
    const fs::path before = temp.path() / "before", home = temp.path() / "home";
    put(before / ".ssh/key", "key\n", 0600);
    put(before / "venv/bin/run", "honest\n", 0755);
    put(before / "venv/lib/a.py", "a\n");
    fs::permissions(before / ".ssh", fs::perms::owner_all);
    REQUIRE(make_dirs(home).ok());
    CopiedFiles known;
    REQUIRE(copy_tree(before, home, known).ok());
    const std::map<std::string, std::string> untouched = tree_of(home);
    CHECK(put_all_back(home, before, known)->empty());
    put(home / ".profile", "exit 0\n");
    put(home / ".cache/pip/x", "x\n");
    put(home / "venv/bin/run", "forged\n", 0755);
    put(home / "venv/lib/sitecustomize.py", "forged\n");
    fs::remove_all(home / ".ssh");
    CHECK(put_all_back(home, before, known).value() ==
          std::vector<std::string>{".cache", ".profile", ".ssh", ".ssh/key", "venv/bin/run",
                                   "venv/lib/sitecustomize.py"});
    CHECK(tree_of(home) == untouched);
    CHECK((fs::status(home / ".ssh").permissions() & fs::perms::mask) == fs::perms::owner_all);
    // Where setup left nothing, and by whatever a folder was replaced.
    fs::remove_all(home / "venv");
    fs::create_directory_symlink(before / "venv", home / "venv");
    CHECK(put_all_back(home, {}, known).value() == std::vector<std::string>{".ssh", "venv"});
    CHECK(fs::is_empty(home));
    CHECK(slurp(before / "venv/lib/a.py") == "a\n");
  }
}

}  // namespace
}  // namespace proctor
