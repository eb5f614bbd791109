#include "common/base/log.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/files.h"

using namespace proctor;

TEST_SUITE("log") {
  TEST_CASE("nothing that a message quotes reaches a terminal, or begins a line of its own") {
    const TempDir dir = TempDir::create("log-test").value();
    const fs::path file = dir.path() / "log";
    const pid_t child = ::fork();
    if (child == 0) {
      const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      if (fd < 0 || ::dup2(fd, STDERR_FILENO) < 0) ::_exit(1);
      log::init("w", log::Level::kInfo);
      for (auto* say : {&log::info, &log::warn, &log::error})
        say("quoted \033[2J and \xe2\x80\xae\n2026-01-01T00:00:00 error w: another's");
      ::_exit(0);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
    const std::string said = read_file(file, 1 << 16).value();
    CHECK(said.find("quoted ") != std::string::npos);
    CHECK(said.find('\033') == std::string::npos);
    CHECK(said.find("\xe2\x80\xae") == std::string::npos);
    CHECK(said.find("\n2026-01-01") == std::string::npos);
    CHECK(said.find("\n    2026-01-01") != std::string::npos);
  }
}
