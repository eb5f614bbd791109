#include "worker/git/mirror.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <regex>

#include "common/base/file_lock.h"
#include "common/base/namespaces.h"
#include "tests/integration/workspace/fixture.h"
#include "worker/git/object_db.h"

namespace proctor {
namespace {

using namespace testing;

struct Setup {
  TempDir temp = temp_dir();
  Repo repo = make_repo(temp.path() / "repo");
  MirrorStore mirrors = open(temp.path() / "mirrors");

  static MirrorStore open(const fs::path& root) {
    auto store = MirrorStore::create(root);
    REQUIRE(store.ok());
    return std::move(store).value();
  }
  Result<fs::path> ensure(const std::string& source, const std::string& commit) {
    PROCTOR_TRY(const GitSource from, parse_source(source, temp.path()));
    PROCTOR_TRY(const ObjectId id, ObjectId::from_hex(commit));
    return mirrors.ensure(from, id);
  }
  std::size_t fetches(const std::string& source) {
    const auto from = parse_source(source, temp.path());
    const std::string log = slurp(temp.path() / "mirrors" / from->key / "fetches.log");
    return static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n'));
  }
};

// The name of the pack of these objects, made beside `base`.
std::string name_of_pack(const fs::path& repo, const fs::path& ids, const std::string& base) {
  CommandSpec spec;
  spec.argv = {"git", "pack-objects", "-q", "--window=0", "--index-version=2", base};
  spec.cwd = repo;
  spec.stdin_bytes = slurp(ids);
  auto name = run_for_output(spec);
  REQUIRE_MESSAGE(name.ok(), (name.ok() ? "" : name.error().detail));
  while (!name->empty() && name->back() == '\n') name->pop_back();
  return *name;
}

TEST_SUITE("git") {
  TEST_CASE("a pinned commit is fetched once and survives its source") {
    Setup s;
    REQUIRE(s.ensure("repo", s.repo.commit).ok());
    CHECK(s.fetches("repo") == 1);
    REQUIRE(remove_tree(s.repo.dir).ok());
    CHECK(s.ensure("repo", s.repo.commit).ok());
    CHECK(s.fetches("repo") == 1);
  }

  TEST_CASE("a commit made later is fetched by its id even when no reference has it") {
    Setup s;
    REQUIRE(s.ensure("repo", s.repo.commit).ok());
    const std::string loose = git(s.repo.dir, {"commit-tree", "-m", "x", "HEAD^{tree}"});
    CHECK(s.ensure("repo", loose).ok());
    CHECK(s.fetches("repo") == 2);
  }

  TEST_CASE("bundles and file URLs are sources") {
    Setup s;
    git(s.repo.dir, {"bundle", "create", "-q", (s.temp.path() / "all.bundle").string(), "--all"});
    git(s.repo.dir, {"bundle", "create", "-q", (s.temp.path() / "head.bundle").string(), "HEAD"});
    CHECK(s.ensure("all.bundle", s.repo.commit).ok());
    CHECK(s.ensure("head.bundle", s.repo.commit).ok());
    CHECK(s.ensure("file://" + s.repo.dir.string(), s.repo.commit).ok());
  }

  TEST_CASE("a partial clone that lacks files is named as one") {
    Setup s;
    git(s.repo.dir, {"config", "uploadpack.allowFilter", "true"});
    git(s.temp.path(), {"clone", "-q", "--no-checkout", "--filter=blob:none",
                        "file://" + s.repo.dir.string(), "partial"});
    fs::rename(s.repo.dir, s.temp.path() / "gone");
    const auto got = s.ensure("partial", s.repo.commit);
    REQUIRE_FALSE(got.ok());
    CHECK(got.error().code == Errc::kInvalid);
    CHECK_MESSAGE(got.error().detail.find("a partial clone, which lacks files: `git fetch "
                                          "--refetch --no-filter` in ") != std::string::npos,
                  got.error().detail);
  }

  TEST_CASE("each bad source has its own exact error") {
    Setup s;
    REQUIRE(make_dirs(s.temp.path() / "folder").ok());
    put(s.temp.path() / "junk.bundle", "not a bundle");
    REQUIRE(make_dirs(s.temp.path() / "empty").ok());
    git(s.temp.path() / "empty", {"init", "-q"});
    const std::string tree = git(s.repo.dir, {"rev-parse", "HEAD^{tree}"});
    const std::string none(40, 'd');
    struct Row {
      std::string source, commit;
      Errc code;
      const char* words;
    };
    const Row rows[] = {
        {"missing", none, Errc::kNotFound, "no such path"},
        {"folder", none, Errc::kInvalid, "not a git repository"},
        {"junk.bundle", none, Errc::kInvalid, "not a git repository or bundle"},
        {"empty", none, Errc::kInvalid, "empty"},
        {"repo", none, Errc::kNotFound, "is not in the repository"},
        {"repo", tree, Errc::kInvalid, "is a tree and not a commit"},
        {"https://user:hunter2@localhost:1/x", none, Errc::kUnavailable, "git fetch"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.source);
      const auto got = s.ensure(row.source, row.commit);
      REQUIRE_FALSE(got.ok());
      CAPTURE(got.error().detail);
      CHECK(to_string(got.error().code) == to_string(row.code));
      CHECK(got.error().detail.find(row.words) != std::string::npos);
      CHECK(got.error().detail.find("hunter2") == std::string::npos);
    }
  }

  TEST_CASE("a bundle cut at any tenth is refused and what was fetched before stays") {
    Setup s;
    const fs::path whole = s.temp.path() / "whole.bundle";
    git(s.repo.dir, {"bundle", "create", "-q", whole.string(), "--all"});
    const std::string bytes = slurp(whole);
    for (std::size_t tenth = 0; tenth < 10; ++tenth) {
      CAPTURE(tenth);
      put(s.temp.path() / "cut.bundle", bytes.substr(0, bytes.size() * tenth / 10));
      const auto got = s.ensure("cut.bundle", s.repo.commit);
      REQUIRE_FALSE(got.ok());
      CAPTURE(got.error().detail);
      CHECK((got.error().code == Errc::kInvalid || got.error().code == Errc::kCorrupt));
    }
    put(s.temp.path() / "cut.bundle", bytes);
    CHECK(s.ensure("cut.bundle", s.repo.commit).ok());
  }

  TEST_CASE("a bare repository of another user is read and nothing of it is obeyed") {
    if (::geteuid() != 0) {
      MESSAGE("not run: only root can give files away");
      return;
    }
    Setup s;
    const fs::path bare = s.temp.path() / "bare.git";
    git(s.temp.path(), {"clone", "-q", "--bare", s.repo.dir.string(), bare.string()});
    const std::string mark = (s.temp.path() / "executed").string();
    put(bare / "hooks/post-upload-pack", "#!/bin/sh\ntouch " + mark + "\n", 0755);
    git(bare, {"config", "uploadpack.packObjectsHook", "touch " + mark + "; exec"});
    constexpr uid_t kNobody = 65'534;
    REQUIRE(::chown(bare.c_str(), kNobody, kNobody) == 0);
    for (const auto& entry : fs::recursive_directory_iterator(bare))
      REQUIRE(::lchown(entry.path().c_str(), kNobody, kNobody) == 0);
    const auto got = s.ensure("bare.git", s.repo.commit);
    CHECK_MESSAGE(got.ok(), (got.ok() ? "" : got.error().detail));
    CHECK_FALSE(fs::exists(mark));
  }

  TEST_CASE("among mounts of one's own ssh reads nothing that is root's") {
    const TempDir temp = temp_dir();
    REQUIRE(::chmod(temp.path().c_str(), 0777) == 0);
    const auto command = [&] {
      const auto git = GitProgram::create(temp.path() / std::to_string(::geteuid()));
      return git.ok() ? git->command("", {"version"}).env->at("GIT_SSH_COMMAND") : "";
    };
    const std::string plain = command();
    CHECK(plain.find(" -F ") == std::string::npos);
    const pid_t pid = ::fork();
    if (pid == 0) {
      constexpr uid_t kNoUser = 54'321;  // of no name: it has no configuration
      if (::geteuid() == 0 && ::setresuid(kNoUser, kNoUser, kNoUser) != 0) ::_exit(1);
      ::prctl(PR_SET_DUMPABLE, 1);
      if (!enter_own_mounts().ok()) ::_exit(2);
      ::_exit(command().find(plain + " -F ") == 0 ? 0 : 3);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
      MESSAGE("not run: no mounts of one's own on this host");
    else
      CHECK(WEXITSTATUS(status) == 0);
  }

  // A pack of four GiB, most of it a hole between its two objects: the offset of the second has its
  // place in the table for those that 31 bits cannot hold.
  TEST_CASE("an object beyond 4 GiB of a pack is read") {
    const TempDir temp = temp_dir();
    const fs::path repo = temp.path() / "repo";
    REQUIRE(make_dirs(repo).ok());
    git(repo, {"init", "-q"});
    put(repo / "one", "one of them\n");
    put(repo / "two", "the other\n");
    git(repo, {"add", "-A"});
    const std::map<std::string, std::string> content = {
        {git(repo, {"rev-parse", ":one"}), "one of them\n"},
        {git(repo, {"rev-parse", ":two"}), "the other\n"}};
    put(temp.path() / "ids", content.begin()->first + "\n" + content.rbegin()->first + "\n");
    const std::string base = (temp.path() / "small").string();
    const std::string name = name_of_pack(repo, temp.path() / "ids", base);
    const std::string pack = slurp(base + "-" + name + ".pack");
    std::string index = slurp(base + "-" + name + ".idx");
    // magic, version, fan-out; ids, checksums, offsets of two; hashes of pack and index.
    constexpr std::size_t kHash = 20, kWord = 4, kCount = 2;
    constexpr std::size_t kOffsets = 8 + 256 * kWord + kCount * (kHash + kWord);
    constexpr std::size_t kEnd = kOffsets + kCount * kWord;
    REQUIRE(index.size() == kEnd + 2 * kHash);
    std::size_t second = 0, place = 0;
    for (std::size_t at = kOffsets; at < kEnd; at += kWord) {
      std::size_t offset = 0;
      for (std::size_t k = 0; k < kWord; ++k)
        offset = offset << 8 | static_cast<unsigned char>(index[at + k]);
      if (second < offset) {
        second = offset;
        place = at;
      }
    }
    REQUIRE(second < pack.size());
    const std::uint64_t far = (std::uint64_t{4} << 30) + second;
    index.replace(place, kWord, std::string("\x80\0\0\0", kWord));
    std::string far_offset;
    for (int shift = 56; 0 <= shift; shift -= 8)
      far_offset += static_cast<char>((far >> shift) & 0xFFU);
    index.insert(kEnd, far_offset);

    const fs::path objects = temp.path() / "objects";
    const fs::path large = objects / "pack" / ("pack-" + name + ".pack");
    put(objects / "pack" / ("pack-" + name + ".idx"), index);
    put(large, pack.substr(0, second));
    fs::resize_file(large, far);
    {
      std::ofstream file(large, std::ios::binary | std::ios::app);
      file << pack.substr(second);  // the object, and the hash of the pack
    }
    {
      const auto db = ObjectDb::open({objects});
      REQUIRE(db.ok());
      for (const auto& [id, bytes] : content) {
        const auto blob = db->blob(ObjectId::from_hex(id).value());
        REQUIRE_MESSAGE(blob.ok(), (blob.ok() ? "" : blob.error().detail));
        CHECK(*blob == bytes);
      }
    }
    // Cut off before it, as by a disk that was full: an error, and no crash.
    fs::resize_file(large, std::uint64_t{1} << 30);
    const auto cut = ObjectDb::open({objects});
    REQUIRE(cut.ok());
    const bool both = cut->blob(ObjectId::from_hex(content.begin()->first).value()).ok() &&
                      cut->blob(ObjectId::from_hex(content.rbegin()->first).value()).ok();
    CHECK_FALSE(both);
  }

  TEST_CASE("a dirty source is fine and only its commits are read") {
    Setup s;
    put(s.repo.dir / "README.md", "dirty\n");
    put(s.repo.dir / "untracked", "x\n");
    CHECK(s.ensure("repo", s.repo.commit).ok());
  }

  TEST_CASE("a corrupt source is reported as corrupt") {
    Setup s;
    const std::string blob = git(s.repo.dir, {"rev-parse", s.repo.commit + ":README.md"});
    const fs::path object = s.repo.dir / ".git/objects" / blob.substr(0, 2) / blob.substr(2);
    ::chmod(object.c_str(), 0644);
    put(object, "garbage");
    const auto got = s.ensure("repo", s.repo.commit);
    REQUIRE_FALSE(got.ok());
    CAPTURE(got.error().detail);
    CHECK(got.error().code == Errc::kCorrupt);
  }

  TEST_CASE("what the source's owner planted is not executed") {
    Setup s;
    const std::string mark = (s.temp.path() / "executed").string();
    for (const char* key : {"uploadpack.packObjectsHook", "core.fsmonitor", "core.sshCommand"}) {
      git(s.repo.dir, {"config", key, "touch " + mark + " #"});
    }
    for (const char* hook : {"post-checkout", "pre-receive", "reference-transaction"}) {
      put(s.repo.dir / ".git/hooks" / hook, "#!/bin/sh\ntouch " + mark + "\n", 0755);
    }
    CHECK(s.ensure("repo", s.repo.commit).ok());
    CHECK_FALSE(fs::exists(mark));
  }

  TEST_CASE("a token in a URL and a credential helper reach git and no argument list") {
    Setup s;
    // A git of ours notes its arguments and what its configuration says, and fails.
    const fs::path bin = s.temp.path() / "bin", home = s.temp.path() / "home";
    put(bin / "git",
        "#!/bin/sh\nPATH=/usr/bin:/bin\n"
        "case $1 in fetch) ;; *) exec git \"$@\" ;; esac\n"
        "echo \"$@\" > $PROCTOR_GIT_SEEN.args\n"
        "git config --get-all remote.source.url > $PROCTOR_GIT_SEEN.url\n"
        "git config --get-all credential.helper > $PROCTOR_GIT_SEEN.helper\n"
        "echo url=https://localhost/x.git | git credential fill > $PROCTOR_GIT_SEEN.filled\n"
        "exit 1\n",
        0755);
    put(home / ".gitconfig", "[credential]\n\thelper = store --file /nowhere\n[user]\n\tname=x\n");
    const fs::path seen = s.temp.path() / "seen";
    const std::string program = slurp(bin / "git");
    put(bin / "git", std::regex_replace(program, std::regex("\\$PROCTOR_GIT_SEEN"), seen.string()),
        0755);
    const std::string old_path = ::getenv("PATH"), old_home = ::getenv("HOME");
    REQUIRE(::setenv("HOME", home.c_str(), 1) == 0);
    REQUIRE(::setenv("PATH", (bin.string() + ":" + old_path).c_str(), 1) == 0);
    s.mirrors = Setup::open(s.temp.path() / "mirrors");
    CHECK_FALSE(s.ensure("https://me:token@localhost/x.git", s.repo.commit).ok());
    REQUIRE(::setenv("PATH", old_path.c_str(), 1) == 0);
    REQUIRE(::setenv("HOME", old_home.c_str(), 1) == 0);
    CHECK(slurp(seen.string() + ".args").find("token") == std::string::npos);
    CHECK(slurp(seen.string() + ".args").find(" -- source ") != std::string::npos);
    CHECK(slurp(seen.string() + ".url").find("token") == std::string::npos);
    CHECK(slurp(seen.string() + ".filled").find("username=me\npassword=token\n") !=
          std::string::npos);
    CHECK(slurp(seen.string() + ".helper") == "store --file /nowhere\n");
  }

  TEST_CASE("the mirror remembers no URL") {
    Setup s;
    REQUIRE(s.ensure("repo", s.repo.commit).ok());
    const auto from = parse_source("repo", s.temp.path());
    const fs::path repo = s.temp.path() / "mirrors" / from->key / "repo.git";
    CHECK(slurp(repo / "config").find("remote") == std::string::npos);
    CHECK_FALSE(fs::exists(repo / "FETCH_HEAD"));
    CHECK_FALSE(fs::exists(repo / "hooks"));
  }

  TEST_CASE("locks left by a killed git do not stop the next fetch") {
    Setup s;
    REQUIRE(s.ensure("repo", s.repo.commit).ok());
    const auto from = parse_source("repo", s.temp.path());
    const fs::path repo = s.temp.path() / "mirrors" / from->key / "repo.git";
    put(s.repo.dir / "more", "x");
    git(s.repo.dir, {"add", "-A"});
    git(s.repo.dir, {"commit", "-qm", "more"});
    const std::string head = git(s.repo.dir, {"rev-parse", "HEAD"});
    put(repo / "refs/heads/main.lock", "");
    put(repo / "refs/proctor" / (head + ".lock"), "");
    put(repo / "packed-refs.lock", "");
    CHECK(s.ensure("repo", head).ok());
  }

  TEST_CASE("a lock dies with its holder") {
    const TempDir temp = temp_dir();
    const fs::path path = temp.path() / "lock";
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t child = ::fork();
    REQUIRE(0 <= child);
    if (child == 0) {
      const auto lock = FileLock::acquire(path);
      (void)!::write(ready[1], lock.ok() ? "y" : "n", 1);
      while (true) ::pause();
    }
    char answer = 0;
    REQUIRE(::read(ready[0], &answer, 1) == 1);
    CHECK(answer == 'y');
    CHECK(FileLock::try_acquire(path).error().code == Errc::kConflict);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    CHECK(FileLock::acquire(path).ok());
    ::close(ready[0]);
    ::close(ready[1]);
  }
}

}  // namespace
}  // namespace proctor
