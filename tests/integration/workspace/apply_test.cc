// The ladder by which a patch is applied, and what hostile patches get from each of its rungs.
#include "tests/integration/workspace/fixture.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

std::string numbers(const std::string& third, const std::string& seventh) {
  std::string out;
  for (int i = 1; i <= 9; ++i)
    out += (i == 3 ? third : i == 7 ? seventh : "line " + std::to_string(i)) + "\n";
  return out;
}

// An old commit, the pinned one after it, and patches that were made from the old one.
struct History {
  TempDir temp = temp_dir();
  fs::path dir = temp.path() / "repo";
  std::string old, pinned;

  History() {
    REQUIRE(make_dirs(dir).ok());
    git(dir, {"init", "-q"});
    put(dir / "f", numbers("three", "seven"));
    put(dir / "spaced", "if x:\n    a\n    b\n    c\n");
    put(dir / ".gitattributes", "* merge=evil diff=evil filter=evil\n");
    git(dir, {"add", "-A"});
    git(dir, {"commit", "-qm", "old"});
    old = git(dir, {"rev-parse", "HEAD"});
    // Within the context of the third line, so that no exact place is left for the old patch.
    put(dir / "f", numbers("three", "seven")
                       .replace(numbers("three", "seven").find("line 5"), 6, "line five"));
    put(dir / "spaced", "if x:\n\ta\n\tb\n\tc\n");
    git(dir, {"add", "-A"});
    git(dir, {"commit", "-qm", "pinned"});
    pinned = git(dir, {"rev-parse", "HEAD"});
  }

  // From the old commit to one in which `path` is `bytes`.
  std::string patch(const std::string& path, const std::string& bytes) const {
    const fs::path other = temp.path() / "other";
    fs::remove_all(other);
    git(temp.path(), {"clone", "-q", dir.string(), other.string()});
    git(other, {"checkout", "-q", old});
    put(other / path, bytes);
    git(other, {"add", "-A"});
    return git(other, {"diff", "--cached", "--binary", "--full-index"}) + "\n";
  }
};

std::string file_patch(const std::string& path) {
  return "diff --git a/" + path + " b/" + path + "\nnew file mode 100644\n--- /dev/null\n+++ b/" +
         path + "\n@@ -0,0 +1 @@\n+evil\n";
}

// As `proctor check` has it: the pinned commit as an index.
Result<AppliedPatch> on_index(const History& h, const std::string& diff) {
  const fs::path scratch = h.temp.path() / "check", index = scratch / "index";
  fs::remove_all(scratch);
  REQUIRE(prepare_apply(scratch / "git", h.dir / ".git/objects", h.pinned, index).ok());
  return apply_diff(scratch / "git", {{}, nullptr, index},
                    {h.dir / ".git/objects", {}, h.pinned, scratch}, diff);
}

}  // namespace

TEST_SUITE("workspace") {
  TEST_CASE("a patch is applied by the first rung that takes it and the rung is told") {
    const History h;
    auto store = open_store(h.temp.path() / "store");
    const Snapshot snapshot = snapshot_of(*store, {h.dir.string(), h.pinned, "", false});
    auto ws = create(*store, snapshot, "a");
    const std::string pinned = slurp(ws->dir() / "f");

    const auto exact = ws->apply(file_patch("new"));
    REQUIRE(exact.ok());
    CHECK(exact->rung == ApplyRung::kExact);
    CHECK(exact->tried.empty());

    const auto loose = ws->apply(h.patch("spaced", "if x:\n    a\n    mine\n    b\n    c\n"));
    REQUIRE_MESSAGE(loose.ok(), loose.error().detail);
    CHECK(loose->rung == ApplyRung::kWhitespace);
    CHECK(loose->tried.size() == 1);
    CHECK(slurp(ws->dir() / "spaced") == "if x:\n\ta\n    mine\n\tb\n\tc\n");

    const auto merged = ws->apply(h.patch("f", numbers("mine", "seven")));
    REQUIRE_MESSAGE(merged.ok(), merged.error().detail);
    CHECK(merged->rung == ApplyRung::kThreeWay);
    CHECK(merged->tried.size() == 2);
    std::string want = pinned;
    want.replace(want.find("three"), 5, "mine");
    CHECK(slurp(ws->dir() / "f") == want);
  }

  TEST_CASE("one change in the forms that people have fits a workspace and an index alike") {
    const History h;
    auto store = open_store(h.temp.path() / "store");
    const Snapshot snapshot = snapshot_of(*store, {h.dir.string(), h.pinned, "", false});
    std::string want = slurp(h.dir / "f");
    want.replace(want.find("three"), 5, "mine");
    put(h.dir / "f", want);
    const auto diff = [&](const std::string& setting) {
      return git(h.dir, {"-c", setting, "diff"}) + "\n";
    };
    const std::string plain = diff("diff.noprefix=false");
    const auto with = [&](const std::string& from, const std::string& to) {
      std::string out = plain;
      return out.replace(out.find(from), from.size(), to);
    };
    const std::string body = plain.substr(plain.find("@@ "));
    struct Row {
      const char* what;
      std::string diff;
      std::size_t tried;
    };
    for (const Row& row :
         {Row{"plain", plain, 0}, Row{"without prefixes", diff("diff.noprefix=true"), 0},
          Row{"mnemonic", diff("diff.mnemonicPrefix=true"), 0},
          Row{"no last newline", plain.substr(0, plain.size() - 1), 1},
          Row{"too many lines", with("@@ -1,6 +1,6 @@", "@@ -1,9 +1,9 @@"), 1},
          Row{"too few lines", with("@@ -1,6 +1,6 @@", "@@ -1,4 +1,3 @@"), 1},
          Row{"diff -u", "--- f\t2026-01-01 00:00:00\n+++ f\t2026-01-01 00:00:01\n" + body, 0},
          Row{"diff -ru", "diff -ru old/f new/f\n--- old/f\n+++ new/f\n" + body, 0},
          Row{"fence", "Here:\n```diff\n" + plain + "```\nDone.\n", 0}}) {
      CAPTURE(std::string(row.what));
      auto ws = create(*store, snapshot, "a");
      for (const Result<AppliedPatch>& applied : {ws->apply(row.diff), on_index(h, row.diff)}) {
        REQUIRE_MESSAGE(applied.ok(), applied.error().detail);
        CHECK(applied->rung == ApplyRung::kExact);
        CHECK(applied->tried.size() == row.tried);
      }
      CHECK(slurp(ws->dir() / "f") == want);
    }
    auto ws = create(*store, snapshot, "b");
    const auto before = tree_of(ws->dir());
    for (const auto& [evil, why] : std::map<std::string, std::string>{
             {git(h.dir, {"diff", "-R"}) + "\n", "; it fits when it is reversed"},
             {git(h.dir, {"diff", "--color=always"}) + "\n", "it has codes of colours"},
             {"diff --git a/l b/l\nindex 1234567..7654321 160000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n"
              "-Subproject commit 1\n+Subproject commit 2\n",
              "the commit of a submodule"}}) {
      CAPTURE(evil);
      for (const Result<AppliedPatch>& applied : {ws->apply(evil), on_index(h, evil)}) {
        REQUIRE_FALSE(applied.ok());
        CHECK(applied.error().code == Errc::kInvalid);
        CHECK(applied.error().detail.find(why) != std::string::npos);
      }
    }
    CHECK(tree_of(ws->dir()) == before);
  }

  TEST_CASE("a merge with a conflict changes nothing and leaves no markers") {
    const History h;
    auto store = open_store(h.temp.path() / "store");
    const Snapshot snapshot = snapshot_of(*store, {h.dir.string(), h.pinned, "", false});
    auto ws = create(*store, snapshot, "a");
    std::string other = numbers("three", "seven");
    other.replace(other.find("line 5"), 6, "line 5 and more");
    const auto before = tree_of(ws->dir());
    const auto refused = ws->apply(h.patch("f", other));
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Errc::kInvalid);
    CHECK(refused.error().detail.find("patch failed: f:") != std::string::npos);
    CHECK(tree_of(ws->dir()) == before);
    // Nothing of what the merge needed is left.
    for (const auto& entry : fs::recursive_directory_iterator(h.temp.path() / "store/workspaces"))
      CHECK_FALSE(entry.path().filename().string().starts_with("merge."));
  }

  TEST_CASE("no rung lets a hostile patch out of the workspace or into its repository") {
    const History h;
    put(h.temp.path() / "outside/victim", "untouched\n");
    auto store = open_store(h.temp.path() / "store");
    const Snapshot snapshot = snapshot_of(*store, {h.dir.string(), h.pinned, "", false});
    auto ws = create(*store, snapshot, "a");
    const auto before = tree_of(ws->dir());
    const std::string head = slurp(ws->dir() / ".git/config");
    const std::string outside = (h.temp.path() / "outside").string();
    // Behind a part that needs the last rung: all or nothing.
    const std::string needs_merge = h.patch("f", numbers("mine", "seven"));
    const std::string link =
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n"
        "@@ -0,0 +1 @@\n+" +
        outside + "\n\\ No newline at end of file\n";
    for (const std::string& evil :
         {file_patch("../evil"), file_patch("/tmp/evil"), file_patch("a/../../evil"),
          file_patch(".git/hooks/post-checkout"), file_patch(".GIT/config"),
          link + file_patch("l/new"),
          std::string("diff --git a/f b/.git/x\nsimilarity index 100%\nrename from f\n"
                      "rename to .git/x\n"),
          std::string("diff --git a/f b/../x\nsimilarity index 100%\nrename from f\n"
                      "rename to ../x\n"),
          std::string("diff --git a/b b/b\nnew file mode 100644\nindex ") + std::string(40, '0') +
              ".." + std::string(40, '1') + "\nGIT binary patch\nliteral 1\nzzzz\n\n"}) {
      CAPTURE(evil);
      for (const std::string& whole : {evil, needs_merge + evil}) {
        const auto applied = ws->apply(whole);
        REQUIRE_FALSE(applied.ok());
        CHECK(applied.error().code == Errc::kInvalid);
      }
      CHECK(tree_of(ws->dir()) == before);
    }
    CHECK(slurp(ws->dir() / ".git/config") == head);
    CHECK(slurp(h.temp.path() / "outside/victim") == "untouched\n");
    CHECK_FALSE(fs::exists(h.temp.path() / "outside/new"));
    CHECK_FALSE(fs::exists("/tmp/evil"));
  }

  TEST_CASE("files that get conflict markers are named and those that had some are not") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    const std::string left = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> theirs\n";
    put(repo.dir / "shows.md", left);
    git(repo.dir, {"add", "-A"});
    git(repo.dir, {"commit", "-qm", "a page about merges"});
    const std::string commit = git(repo.dir, {"rev-parse", "HEAD"});
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, {repo.dir.string(), commit, "", false}), "a");
      put(ws->dir() / "shows.md", left + "more\n" + left);
      put(ws->dir() / "src/main.py", left);
      put(ws->dir() / "crlf.py", "x\r\n>>>>>>>\r\n");
      put(ws->dir() / "heading.rst", "Install\n=======\n\n    cat <<<<<<<x\n<<<<<<<x\n");
      const Patch patch = extract(*ws);
      CHECK(patch.conflicts == std::vector<std::string>{"crlf.py:2", "src/main.py:2"});
    }
  }
}
