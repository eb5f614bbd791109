#include "common/base/file_lock.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>

using namespace proctor;

namespace {

constexpr const char* kPrefix = "held-";

// Makes a folder in a process of its own, and says its path; lives until it is killed.
class Maker {
 public:
  enum class Sees { kUs, kItselfAlone };
  Maker(const fs::path& parent, Sees sees) {
    std::array<int, 2> fds{};
    REQUIRE(::pipe2(fds.data(), O_CLOEXEC) == 0);
    const UniqueFd said(fds[0]);
    UniqueFd say(fds[1]);
    pid_ = ::fork();
    REQUIRE(0 <= pid_);
    if (pid_ == 0) become_maker(parent, sees, say.get());
    say.reset();
    std::array<char, 4096> text{};
    const ssize_t n = ::read(said.get(), text.data(), text.size());
    if (0 < n) path_ = fs::path(std::string(text.data(), static_cast<std::size_t>(n)));
  }
  Maker(const Maker&) = delete;
  Maker& operator=(const Maker&) = delete;
  ~Maker() { kill(); }
  void kill() {
    if (0 < pid_) ::kill(pid_, SIGKILL);
    if (0 < pid_) ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Empty: no such process can be made here.
  const fs::path& path() const { return path_; }

 private:
  [[noreturn]] static void become_maker(const fs::path& parent, Sees sees, int say) {
    if (sees == Sees::kItselfAlone) {
      if (::unshare(::geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWUSER | CLONE_NEWPID) != 0)
        ::_exit(1);
      if (const pid_t first = ::fork(); first != 0) {
        ::waitpid(first, nullptr, 0);
        ::_exit(0);
      }
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    const auto folder = HeldFolder::make(kPrefix, parent);
    if (!folder.ok()) ::_exit(1);
    const std::string text = folder->path().string();
    if (::write(say, text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(1);
    for (;;) ::pause();
  }
  pid_t pid_ = -1;
  fs::path path_;
};

}  // namespace

TEST_SUITE("held folder") {
  TEST_CASE("a folder stays as long as who made it lives and is taken away by the next") {
    const TempDir dir = TempDir::create("held-test").value();
    Maker maker(dir.path(), Maker::Sees::kUs);
    REQUIRE_FALSE(maker.path().empty());
    remove_left_folders(kPrefix, dir.path());
    CHECK(fs::is_directory(maker.path()));
    // Whoever has its number now.
    maker.kill();
    remove_left_folders("other-", dir.path());
    CHECK(fs::is_directory(maker.path()));
    remove_left_folders(kPrefix, dir.path());
    CHECK_FALSE(fs::exists(maker.path()));
  }

  TEST_CASE("our own goes with its object and before that with nobody") {
    const TempDir dir = TempDir::create("held-test").value();
    std::optional<HeldFolder> ours(HeldFolder::make(kPrefix, dir.path()).value());
    const fs::path path = ours->path();
    remove_left_folders(kPrefix, dir.path());
    CHECK(fs::is_directory(path));
    ours.reset();
    CHECK_FALSE(fs::exists(path));
  }

  TEST_CASE("a number that somebody has keeps no dead one's folder and a foreign one loses none") {
    const TempDir dir = TempDir::create("held-test").value();
    // As a killed process would have left it whose number is ours now.
    const fs::path left = dir.path() / (kPrefix + std::to_string(::getpid()) + "-.leftxx");
    REQUIRE(make_dirs(left).ok());
    remove_left_folders(kPrefix, dir.path());
    CHECK_FALSE(fs::exists(left));
    // The first process of another namespace of processes, whose number there says nothing here.
    const Maker elsewhere(dir.path(), Maker::Sees::kItselfAlone);
    if (elsewhere.path().empty()) {
      MESSAGE("left out: no namespaces of processes can be made here");
      return;
    }
    const fs::path renamed = dir.path() / (std::string(kPrefix) + "4194304-.elsewh");
    fs::rename(elsewhere.path(), renamed);  // more than any number is
    remove_left_folders(kPrefix, dir.path());
    CHECK(fs::is_directory(renamed));
  }

  TEST_CASE("what begins like ours and was made by somebody else is not touched") {
    const TempDir dir = TempDir::create("held-test").value();
    for (const char* name :
         {"held-back", "held-campaign.TR9sZW", "held-1", "held-1-", "held-1-.abc", "held-12.abcdef",
          "held-1-.abcdefg", "held-x1-.abcdef", "held-"}) {
      REQUIRE(make_dirs(dir.path() / name).ok());
      remove_left_folders(kPrefix, dir.path());
      CHECK_MESSAGE(fs::is_directory(dir.path() / name), name);
    }
  }

  TEST_CASE("a link of that name is not followed") {
    const TempDir dir = TempDir::create("held-test").value();
    REQUIRE(make_dirs(dir.path() / "theirs").ok());
    fs::create_directory_symlink(dir.path() / "theirs", dir.path() / "held-1-.linkxx");
    remove_left_folders(kPrefix, dir.path());
    CHECK(fs::is_directory(dir.path() / "theirs"));
    CHECK(fs::is_symlink(dir.path() / "held-1-.linkxx"));
  }
}
