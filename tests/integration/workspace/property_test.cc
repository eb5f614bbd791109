// Random edits: snapshot + patch must be the agent's tree, byte for byte and mode for mode.
#include "tests/integration/workspace/fixture.h"

namespace proctor {
namespace {

using namespace testing;

class Agent {
 public:
  // `names_from`: of its new files, so that two of them meet nowhere by chance.
  Agent(fs::path dir, unsigned seed, int names_from = 0)
      : dir_(std::move(dir)), random_(seed), count_(names_from) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  void edit() {
    switch (below(12)) {
      case 0:
        add();
        break;
      case 1:
        rewrite();
        break;
      case 2:
        append();
        break;
      case 3:
        remove();
        break;
      case 4:
        rename();
        break;
      case 5:
        chmod();
        break;
      case 6:
        link();
        break;
      case 7:
        remove_folder();
        break;
      case 8:
        file_to_folder();
        break;
      case 9:
        folder_to_file();
        break;
      case 10:
        touch();
        break;
      default:
        rename_folder();
        break;
    }
  }

 private:
  std::vector<fs::path> all(bool folders) {
    std::vector<fs::path> out;
    for (auto it = fs::recursive_directory_iterator(dir_); it != fs::recursive_directory_iterator();
         ++it) {
      if (it->path() == dir_ / ".git") {
        it.disable_recursion_pending();
        continue;
      }
      const bool folder = it->symlink_status().type() == fs::file_type::directory;
      if (folder == folders) out.push_back(it->path());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  fs::path any(bool folder) {
    const auto list = all(folder);
    return list.empty() ? fs::path() : list[below(list.size())];
  }
  static bool is_file(const fs::path& p) {
    return !p.empty() && fs::symlink_status(p).type() == fs::file_type::regular;
  }
  std::string fresh_name() {
    static const char* const kNames[] = {"n",           "with space", "tab\there", "q\"uote",
                                         "back\\slash", "\xc3\xa4",   "bad\xff",   "new\nline",
                                         "-dash",       "a+b"};
    return kNames[below(10)] + std::to_string(count_++);
  }
  fs::path fresh() {
    fs::path folder = below(2) == 0 ? dir_ : any(true);
    if (folder.empty()) folder = dir_;
    if (below(4) == 0) folder /= fresh_name();
    fs::create_directories(folder);
    return folder / fresh_name();
  }
  std::string content() {
    std::string out;
    const std::uint64_t style = below(5);
    if (style == 0) return "";
    for (std::uint64_t n = below(40); 0 < n; --n) {
      if (style == 1) {
        out += static_cast<char>(below(256));
      } else {
        out += "line " + std::to_string(below(9)) + (style == 2 ? "\r\n" : "\n");
      }
    }
    if (style == 3) out += "no newline at the end";
    return out;
  }
  void add() { put(fresh(), content(), below(3) == 0 ? 0755 : 0644); }
  void rewrite() {
    if (const auto p = any(false); is_file(p)) {
      struct stat st {};
      ::stat(p.c_str(), &st);
      put(p, content(), st.st_mode & 0777U);
    }
  }
  void append() {
    if (const auto p = any(false); is_file(p)) put(p, slurp(p) + content(), 0644);
  }
  void remove() {
    if (const auto p = any(false); !p.empty()) fs::remove(p);
  }
  void rename() {
    if (const auto p = any(false); !p.empty()) fs::rename(p, fresh());
  }
  void chmod() {
    if (const auto p = any(false); is_file(p)) ::chmod(p.c_str(), below(2) == 0 ? 0755 : 0644);
  }
  void link() {
    static const char* const kTargets[] = {"README.md", "/etc/passwd", "../../out", "a b\n"};
    fs::create_symlink(kTargets[below(4)], fresh());
  }
  void remove_folder() {
    if (const auto p = any(true); !p.empty() && below(2) == 0) fs::remove_all(p);
  }
  void file_to_folder() {
    if (const auto p = any(false); !p.empty()) {
      fs::remove(p);
      put(p / fresh_name(), content());
    }
  }
  void folder_to_file() {
    if (const auto p = any(true); !p.empty()) {
      fs::remove_all(p);
      if (below(2) == 0) {
        put(p, content());
      } else {
        fs::create_symlink("elsewhere", p);
      }
    }
  }
  // The same content again, and a changed file with the old size and time.
  void touch() {
    if (const auto p = any(false); is_file(p)) {
      const auto time = fs::last_write_time(p);
      std::string bytes = slurp(p);
      if (!bytes.empty()) bytes[below(bytes.size())] = 'Z';
      in_place(p, bytes);
      fs::last_write_time(p, time);
    }
  }
  // Writes in place, so that inode and size stay.
  static void in_place(const fs::path& p, const std::string& bytes) {
    FILE* f = std::fopen(p.c_str(), "r+");
    REQUIRE(f != nullptr);
    std::fwrite(bytes.data(), 1, bytes.size(), f);
    std::fclose(f);
  }
  void rename_folder() {
    const auto p = any(true);
    if (p.empty()) return;
    const fs::path to = dir_ / fresh_name();
    std::error_code ec;
    fs::rename(p, to, ec);  // EXDEV on an overlay: then copy, as mv does
    if (ec) {
      fs::copy(p, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
      fs::remove_all(p);
    }
  }

  fs::path dir_;
  std::mt19937_64 random_;
  int count_;
};

void check_same(const std::map<std::string, std::string>& a,
                const std::map<std::string, std::string>& b) {
  for (const auto& [path, content] : a) {
    const auto it = b.find(path);
    CHECK_MESSAGE(it != b.end(), "missing: " << path);
    if (it != b.end()) CHECK_MESSAGE(it->second == content, "differs: " << path);
  }
  for (const auto& [path, content] : b) CHECK_MESSAGE(a.contains(path), "extra: " << path);
}

struct Seeds {
  unsigned first, last;
  bool chosen;  // by PROCTOR_WORKSPACE_SEED, to see one again
};
Seeds seeds_up_to(unsigned last) {
  const char* const one = std::getenv("PROCTOR_WORKSPACE_SEED");
  if (one == nullptr) return {1, last, false};
  const auto seed = static_cast<unsigned>(std::atoi(one));
  return {seed, seed, true};
}

TEST_SUITE("workspace") {
  TEST_CASE("the snapshot and the patch make the agent's tree on every kind") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    const Seeds seeds = seeds_up_to(40);
    std::uint64_t changed = 0;
    std::uint64_t renamed = 0;
    std::uint64_t binary = 0;
    on_every_kind(temp.path(), [&](WorkspaceKind kind, const fs::path& root, ShownTo shown) {
      auto store = open_store(root / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, repo.pinned());
      const auto pristine = tree_of(snapshot.tree_dir);
      for (unsigned seed = seeds.first; seed <= seeds.last; ++seed) {
        CAPTURE(to_string(kind));
        CAPTURE(seed);
        auto ws = create(*store, snapshot, "agent", nullptr, shown);
        {
          const ActingAs as(ws->user().get());
          Agent agent(ws->dir(), seed);
          for (std::uint64_t n = 1 + agent.below(25); 0 < n; --n) agent.edit();
        }
        const Patch patch = extract(*ws);
        CHECK(patch.refused.empty());
        changed += patch.paths.size();
        if (patch.diff.find("rename from") != std::string::npos) ++renamed;
        if (patch.diff.find("GIT binary patch") != std::string::npos) ++binary;
        auto fresh = create(*store, snapshot, "fresh", nullptr, shown);
        const auto applied = fresh->apply(patch.diff);
        REQUIRE_MESSAGE(applied.ok(),
                        (applied.ok() ? "" : applied.error().detail + "\n" + patch.diff));
        check_same(tree_of(ws->dir()), tree_of(fresh->dir()));
        CHECK(extract(*fresh).diff == patch.diff);
        CHECK(tree_of(snapshot.tree_dir) == pristine);
      }
    });
    CHECK(0 < changed);
    if (!seeds.chosen) {
      CHECK(0 < renamed);
      CHECK(0 < binary);
    }
  }

  // A setup edits as wildly as an agent; then what was kept of it is compared with having run it.
  TEST_CASE("over what a setup left the patch is what it would be if setup had just run") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    const Seeds seeds = seeds_up_to(20);
    std::uint64_t of_setup = 0, deleted = 0;
    on_every_kind(temp.path(), [&](WorkspaceKind kind, const fs::path& root, ShownTo shown) {
      auto store = open_store(root / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, repo.pinned());
      for (unsigned seed = seeds.first; seed <= seeds.last; ++seed) {
        CAPTURE(to_string(kind));
        CAPTURE(seed);
        const auto set_up = [&](Workspace& ws) {
          const ActingAs as(ws.user().get());
          Agent setup(ws.dir(), seed * 1000, 1000);
          for (std::uint64_t n = setup.below(25); 0 < n; --n) setup.edit();
          put(ws.dir() / "build/out.o", "object\n");  // ignored
          put(ws.dir() / "generated/a.txt", "generated\n");
        };
        auto straight = create(*store, snapshot, "straight", nullptr, shown);
        set_up(*straight);
        auto maker = create(*store, snapshot, "maker", nullptr, shown);
        set_up(*maker);
        const fs::path home = temp.path() / "home";
        REQUIRE(make_dirs(home).ok());
        const auto layer = keep_setup(*store, std::move(maker), home,
                                      sha256(std::string(to_string(kind)) + std::to_string(seed) +
                                             (shown == ShownTo::kOwnUser ? "own" : "")));
        REQUIRE_MESSAGE(layer.ok(), (layer.ok() ? "" : layer.error().detail));
        const auto kept = tree_of(layer->work());

        auto ws = create(*store, snapshot, "agent", &*layer, shown);
        check_same(tree_of(straight->dir()), tree_of(ws->dir()));
        const Patch before = extract(*ws);
        CHECK(before.diff == extract(*straight).diff);
        of_setup += before.paths.size();
        for (Workspace* one : {straight.get(), ws.get()}) {
          const ActingAs as(one->user().get());
          Agent agent(one->dir(), seed);
          for (std::uint64_t n = 1 + agent.below(25); 0 < n; --n) agent.edit();
          fs::remove_all(one->dir() / "generated");
          if (seed % 2 == 0) put(one->dir() / "generated/b.txt", "another\n");
        }
        const Patch patch = extract(*ws);
        CHECK(patch.refused.empty());
        CHECK(patch.diff == extract(*straight).diff);
        CHECK(ws->changed_under({"**"}).value() == straight->changed_under({"**"}).value());
        deleted += patch.deletions;
        auto fresh = create(*store, snapshot, "fresh", nullptr, shown);
        const auto applied = fresh->apply(patch.diff);
        REQUIRE_MESSAGE(applied.ok(), (applied.ok() ? "" : applied.error().detail));
        auto seen = tree_of(ws->dir());
        std::erase_if(seen, [](const auto& one) { return one.first.starts_with("build/"); });
        check_same(seen, tree_of(fresh->dir()));
        CHECK_MESSAGE(tree_of(layer->work()) == kept, "an agent wrote to a layer");
      }
    });
    CHECK(0 < of_setup);
    CHECK(0 < deleted);
  }

  TEST_CASE("the patch applies with plain git in a fresh clone") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    auto store = open_store(temp.path() / "store");
    const Snapshot snapshot = snapshot_of(*store, repo.pinned());
    for (unsigned seed = 100; seed < 115; ++seed) {
      CAPTURE(seed);
      auto ws = create(*store, snapshot, "agent");
      Agent agent(ws->dir(), seed);
      for (int n = 0; n < 12; ++n) agent.edit();
      const Patch patch = extract(*ws);
      const fs::path clone = temp.path() / ("clone" + std::to_string(seed));
      git(temp.path(), {"clone", "-q", "--no-checkout", repo.dir.string(), clone.string()});
      // The clone's owner decides about line ends; here: none.
      put(clone / ".git/info/attributes", "* -text -ident -filter -eol\n");
      git(clone, {"checkout", "-q", repo.commit});
      if (patch.diff.empty()) continue;
      put(temp.path() / "p.diff", patch.diff);
      INFO(patch.diff);
      git(clone, {"apply", "--whitespace=nowarn", (temp.path() / "p.diff").string()});
      check_same(tree_of(ws->dir()), tree_of(clone));
    }
  }
}

}  // namespace
}  // namespace proctor
