// Ends that no caller sees: in a child, whose standard error and exit code are read.
#include "common/base/last_words.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "common/base/files.h"

using namespace proctor;

namespace {

struct End {
  int status = 0;
  std::string said;
};

End end_of(const fs::path& dir, const std::function<void()>& act) {
  const fs::path said = dir / "said";
  const pid_t pid = ::fork();
  REQUIRE(0 <= pid);
  if (pid == 0) {
    const int fd = ::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ::dup2(fd, STDERR_FILENO) < 0) ::_exit(99);
    last_words::prepare("program");
    act();
    ::_exit(0);
  }
  End out;
  REQUIRE(::waitpid(pid, &out.status, 0) == pid);
  const Result<std::string> text = read_file(said, 10'000);
  REQUIRE(text.ok());
  out.said = *text;
  return out;
}

bool exits_with(const End& end, int code) {
  return WIFEXITED(end.status) && WEXITSTATUS(end.status) == code;
}

}  // namespace

TEST_SUITE("base") {
  TEST_CASE("out of memory in a thread is a line and exit code 4") {
    auto dir = TempDir::create("last-words");
    REQUIRE(dir.ok());
    const End end = end_of(dir->path(), [] { std::thread([] { throw std::bad_alloc(); }).join(); });
    CHECK_MESSAGE(exits_with(end, 4), end.status);
    CHECK_MESSAGE(end.said.find("program: out of memory") == 0, end.said);
    CHECK_MESSAGE(end.said.find("proctor resume") != std::string::npos, end.said);
  }

  TEST_CASE("a library that gives up is a line and exit code 4") {
    auto dir = TempDir::create("last-words");
    REQUIRE(dir.ok());
    const End end = end_of(dir->path(), [] {
      last_words::explain_aborts();
      std::abort();
    });
    CHECK_MESSAGE(exits_with(end, 4), end.status);
    CHECK_MESSAGE(end.said.find("program: a library beneath it gave up") == 0, end.said);
  }

  TEST_CASE("what nobody caught is named and is exit code 70") {
    auto dir = TempDir::create("last-words");
    REQUIRE(dir.ok());
    const End end = end_of(dir->path(), [] { std::thread([] { throw End(); }).join(); });
    CHECK_MESSAGE(exits_with(end, 70), end.status);
    CHECK_MESSAGE(end.said.find("program: a mistake of ours") == 0, end.said);
  }

  TEST_CASE("a file that may grow no further is an error like a full disk, and ends nothing") {
    auto dir = TempDir::create("last-words");
    REQUIRE(dir.ok());
    const End end = end_of(dir->path(), [&] {
      const rlimit small{100, 100};
      if (::setrlimit(RLIMIT_FSIZE, &small) != 0) ::_exit(98);
      const Status written = write_file(dir->path() / "large", std::string(1'000, 'x'));
      ::_exit(!written.ok() && written.error().code == Errc::kExhausted ? 3 : 97);
    });
    CHECK_MESSAGE(exits_with(end, 3), end.status);
  }
}
