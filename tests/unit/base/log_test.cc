#include "common/base/log.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "common/base/files.h"

using namespace proctor;

namespace {

// The standard error of `talk`, which has a process of its own.
std::string said_by(const std::function<void()>& talk) {
  const TempDir dir = TempDir::create("log-test").value();
  const fs::path file = dir.path() / "log";
  const pid_t child = ::fork();
  if (child == 0) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::dup2(fd, STDERR_FILENO) < 0) ::_exit(1);
    log::init("w", log::Level::kInfo);
    talk();
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  return read_file(file, 1 << 20).value();
}

}  // namespace

TEST_SUITE("log") {
  TEST_CASE("nothing that a message quotes reaches a terminal, or begins a line of its own") {
    const std::string said = said_by([] {
      for (auto* say : {&log::info, &log::warn, &log::error})
        say("quoted \033[2J and \xe2\x80\xae\n2026-01-01T00:00:00 error w: another's");
    });
    CHECK(said.find("quoted ") != std::string::npos);
    CHECK(said.find('\033') == std::string::npos);
    CHECK(said.find("\xe2\x80\xae") == std::string::npos);
    CHECK(said.find("\n2026-01-01") == std::string::npos);
    CHECK(said.find("\n    2026-01-01") != std::string::npos);
  }

  TEST_CASE(
      "what is said seldom is said once a minute, and strangers have no more than 100 texts") {
    const std::string said = said_by([] {
      for (int i = 0; i < 3; ++i) log::warn_seldom("the same");
      for (int i = 0; i < 1000; ++i) log::warn_seldom("number " + std::to_string(i));
      log::warn_seldom("the same");
    });
    CHECK(said.find("the same") == said.rfind("the same"));
    CHECK(std::ranges::count(said, '\n') == 100);
  }
}
