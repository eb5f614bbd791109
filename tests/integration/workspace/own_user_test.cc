// Workspaces of a user of their own: who owns what in them, and on the disk below.
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <set>

#include "tests/integration/workspace/fixture.h"

namespace proctor {
namespace {

using namespace testing;

// Null, with a MESSAGE: this host has none.
std::unique_ptr<WorkspaceStore> store_with_users(const fs::path& root) {
  auto store = open_store(root);
  if (store->has_own_users()) return store;
  MESSAGE("not run: no workspaces of a user of their own on this machine");
  return nullptr;
}

std::unique_ptr<Workspace> own(WorkspaceStore& store, const Snapshot& snapshot,
                               const std::string& label, const SetupLayer* setup = nullptr) {
  auto ws = create(store, snapshot, label, setup, ShownTo::kOwnUser);
  REQUIRE(ws->user() != nullptr);
  return ws;
}

// Everything below, and the folder itself.
bool all_belong_to(const fs::path& dir, std::uint32_t user) {
  bool all = true;
  const auto look = [&](const fs::path& path) {
    struct stat st {};
    REQUIRE(::lstat(path.c_str(), &st) == 0);
    CAPTURE(path.string());
    CHECK(st.st_uid == user);
    CHECK(st.st_gid == user);
    all = all && st.st_uid == user && st.st_gid == user;
  };
  look(dir);
  if (!fs::is_directory(dir)) return all;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) look(entry.path());
  return all;
}

void as_agent(const Workspace& ws, const std::function<void(const fs::path&)>& work) {
  const ActingAs as(ws.user().get());
  work(ws.dir());
}

void edit(const fs::path& dir) {
  put(dir / "src/main.py", "print(4)\n");
  put(dir / "new/folder/file.sh", "#!/bin/sh\n", 0755);
  fs::remove(dir / "README.md");
  fs::remove_all(dir / "src/deep");
  fs::permissions(dir / "crlf.txt", fs::perms(0755));
  fs::create_symlink("run.sh", dir / "to-run");
}

TEST_SUITE("own users") {
  TEST_CASE("numbers are each one's own and are given again") {
    const auto one = OwnUser::take();
    if (!one.ok()) {
      MESSAGE("not run: " << one.error().detail);
      return;
    }
    std::uint32_t other = 0;
    {
      const auto two = OwnUser::take().value();
      other = two->id();
      CHECK(other != (*one)->id());
      CHECK(is_own_user(other));
      CHECK(other < (std::uint32_t{1} << 31));  // bwrap's numbers have a sign
    }
    CHECK(OwnUser::take().value()->id() == other);
    CHECK_FALSE(is_own_user(0));
    CHECK_FALSE(is_own_user(1000));
    CHECK_FALSE(is_own_user(std::uint32_t{1} << 31));
  }

  TEST_CASE("there are as many as all slots of a worker need, and no more") {
    const auto one = OwnUser::take();
    if (!one.ok()) {
      MESSAGE("not run: " << one.error().detail);
      return;
    }
    rlimit files{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
    if (files.rlim_max < 2 * kOwnUsersMost) {
      MESSAGE("not run: too few open files are allowed here");
      return;
    }
    const rlimit before = files;
    files.rlim_cur = files.rlim_max;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &files) == 0);
    std::vector<std::shared_ptr<const OwnUser>> all;
    std::set<std::uint32_t> numbers;
    for (;;) {
      auto next = OwnUser::take();
      if (!next.ok()) {
        CHECK_MESSAGE(next.error().code == Errc::kExhausted, next.error().detail);
        break;
      }
      numbers.insert((*next)->id());
      all.push_back(*next);
    }
    CHECK(numbers.size() == all.size());
    CHECK(all.size() < kOwnUsersMost);
    CHECK(2 * limits::kWorkerSlotsMax < all.size());
    all.clear();
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  }

  TEST_CASE("what a program of such a user makes is his, and nothing is closed to it") {
    const auto user = OwnUser::take();
    if (!user.ok()) return;
    const TempDir temp = temp_dir();  // closed to others
    put(temp.path() / "roots", "secret\n", 0600);
    CommandSpec spec;
    spec.cwd = temp.path();
    spec.argv = {"sh", "-c",
                 "id -u; cat roots; test -r roots && echo more > made; cat /proc/self/status"};
    const auto ran = (*user)->run(spec);
    REQUIRE(ran.ok());
    CHECK(ran->out.starts_with(std::to_string((*user)->id()) + "\nsecret\n"));
    struct stat st {};
    REQUIRE(::stat((temp.path() / "made").c_str(), &st) == 0);
    CHECK(st.st_uid == (*user)->id());
    CHECK(::geteuid() == 0);
    put(temp.path() / "after", "x\n");
    CHECK(all_belong_to(temp.path() / "after", 0) == true);
  }

  TEST_CASE("all of it is its user's, on the disk root's, and another cannot make anything there") {
    const TempDir temp = temp_dir();
    const auto store = store_with_users(temp.path() / "store");
    if (!store) return;
    const Snapshot snapshot = snapshot_of(*store, make_repo(temp.path() / "repo").pinned());
    auto ws = own(*store, snapshot, "a");
    auto other = own(*store, snapshot, "b");
    CHECK(ws->user()->id() != other->user()->id());
    CHECK(all_belong_to(ws->dir(), ws->user()->id()));
    as_agent(*ws, edit);
    CHECK(all_belong_to(ws->dir(), ws->user()->id()));
    CHECK(all_belong_to(ws->written().dir, 0));
    CHECK(all_belong_to(snapshot.tree_dir, 0));
    CHECK(::mkdir((ws->dir() / "roots").c_str(), 0755) == -1);
    CHECK(errno == EOVERFLOW);
  }

  TEST_CASE("what a user left is the next life's to read and to write") {
    const TempDir temp = temp_dir();
    const fs::path root = temp.path() / "store", note = temp.path() / "note";
    const Repository repository = make_repo(temp.path() / "repo").pinned();
    if (!store_with_users(root)) return;
    const pid_t pid = ::fork();
    if (pid == 0) {
      const auto store = store_with_users(root);
      auto ws = own(*store, snapshot_of(*store, repository), "kept");
      as_agent(*ws, edit);
      const bool noted =
          write_file(note, ws->left_to_others()->dir.string(), Durability::kLazy).ok();
      ::kill(::getpid(), noted ? SIGKILL : SIGTERM);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFSIGNALED(status));
    REQUIRE(WTERMSIG(status) == SIGKILL);
    const auto store = store_with_users(root);
    REQUIRE(store);
    const LeftWorkspace left{slurp(note), ""};
    REQUIRE(store->clean_up({left}).ok());
    const Snapshot snapshot = snapshot_of(*store, repository);
    auto plain = create(*store, snapshot, "plain");
    edit(plain->dir());
    {
      auto mine = store->adopt(snapshot, "kept", left);
      REQUIRE_MESSAGE(mine.ok(), (mine.ok() ? "" : mine.error().detail));
      CHECK((*mine)->user() == nullptr);
      CHECK(all_belong_to((*mine)->dir(), 0));
      CHECK(extract(**mine).diff == extract(*plain).diff);
      CHECK((*mine)->put_file("found/by.py", "judge\n", 0644, Way::kCleared).ok());
      CHECK(slurp((*mine)->dir() / "found/by.py") == "judge\n");
    }
    CHECK_FALSE(fs::exists(left.dir));
  }

  TEST_CASE("patches, placed and restored files are as in a workspace that is the worker's") {
    const TempDir temp = temp_dir();
    const auto store = store_with_users(temp.path() / "store");
    if (!store) return;
    const Snapshot snapshot = snapshot_of(*store, make_repo(temp.path() / "repo").pinned());
    auto plain = create(*store, snapshot, "plain");
    auto ws = own(*store, snapshot, "a");
    edit(plain->dir());
    as_agent(*ws, edit);
    const Patch patch = extract(*ws);
    CHECK(patch.diff == extract(*plain).diff);
    CHECK_FALSE(patch.diff.empty());
    auto fresh = own(*store, snapshot, "fresh");
    REQUIRE(fresh->apply(patch.diff).ok());
    CHECK(fresh->put_file("tests/own/judge.py", "judge\n", 0755, Way::kCleared).ok());
    CHECK(extract(*fresh).paths.size() == patch.paths.size() + 1);
    CHECK(fresh->restore({"src/**", "README.md", "tests/**"}).value().size() == 4);
    const std::map<std::string, PlacedFile> placed = {{"tests/own/judge.py", {"judge\n", 0755}}};
    const MadeUnder made = fresh->made_under({"tests/**"}, temp.path() / "keep").value();
    as_agent(*fresh, [](const fs::path& dir) {
      put(dir / "tests/test_a.py", "assert False\n");
      put(dir / "tests/planted/conftest.py", "x\n");
      fs::remove_all(dir / "tests/own");
    });
    CHECK(fresh->restore_again({"tests/**"}, made, placed).value() ==
          std::vector<std::string>{"tests/own/judge.py", "tests/planted/conftest.py",
                                   "tests/test_a.py"});
    CHECK(slurp(fresh->dir() / "tests/own/judge.py") == "judge\n");
    CHECK(slurp(fresh->dir() / "tests/test_a.py") == "assert True\n");
    as_agent(*fresh, [](const fs::path& dir) {
      put(dir / ".git/config", "[diff]\n\texternal = true\n");
      put(dir / ".git/info/attributes", "* diff=evil\n");
    });
    CHECK(fresh->restore_git(made).value() ==
          std::vector<std::string>{".git/config", ".git/info/attributes"});
    CHECK(all_belong_to(fresh->dir(), fresh->user()->id()));
    CHECK(all_belong_to(fresh->written().dir, 0));
  }

  TEST_CASE("what one user's setup made is the next user's own, and of a worker without any") {
    const TempDir temp = temp_dir();
    const auto store = store_with_users(temp.path() / "store");
    if (!store) return;
    const Snapshot snapshot = snapshot_of(*store, make_repo(temp.path() / "repo").pinned());
    auto maker = own(*store, snapshot, "maker");
    as_agent(*maker, [](const fs::path& dir) {
      put(dir / "build/lib.o", "object\n");
      fs::remove(dir / "crlf.txt");
    });
    REQUIRE(make_dirs(temp.path() / "home").ok());
    const auto layer = keep_setup(*store, std::move(maker), temp.path() / "home", sha256("a key"));
    REQUIRE_MESSAGE(layer.ok(), (layer.ok() ? "" : layer.error().detail));
    CHECK(all_belong_to(layer->work(), 0));
    auto ws = own(*store, snapshot, "a", &*layer);
    auto plain = create(*store, snapshot, "b", &*layer);
    auto later = own(*store, snapshot, "c");
    as_agent(*later, [](const fs::path& dir) { put(dir / "src/main.py", "mine\n"); });
    CHECK(later->lay_below(*layer).value());
    for (const Workspace* one : {ws.get(), plain.get(), later.get()}) {
      CHECK(slurp(one->dir() / "build/lib.o") == "object\n");
      CHECK_FALSE(fs::exists(one->dir() / "crlf.txt"));
      CHECK(all_belong_to(one->dir(), one->user() ? one->user()->id() : 0));
    }
    CHECK(slurp(later->dir() / "src/main.py") == "mine\n");
    as_agent(*ws, [](const fs::path& dir) {
      put(dir / "build/lib.o", "spoilt\n");
      put(dir / "build/more.o", "x\n");
    });
    CHECK(slurp(plain->dir() / "build/lib.o") == "object\n");
  }

  TEST_CASE("one that nobody changed rests with its user and is taken again") {
    const TempDir temp = temp_dir();
    const auto store = store_with_users(temp.path() / "store");
    if (!store) return;
    const Snapshot snapshot = snapshot_of(*store, make_repo(temp.path() / "repo").pinned());
    std::uint32_t first = 0;
    fs::path dir;
    {
      const auto ws = own(*store, snapshot, "a");
      first = ws->user()->id();
      dir = ws->dir();
    }
    const auto plain = create(*store, snapshot, "b");  // not to whom it is of no use
    CHECK(plain->user() == nullptr);
    CHECK(plain->dir() != dir);
    const auto again = own(*store, snapshot, "c");
    CHECK(again->user()->id() == first);
    CHECK(again->dir() == dir);
  }
}

}  // namespace
}  // namespace proctor
