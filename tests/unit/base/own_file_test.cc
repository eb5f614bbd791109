// What lies in a file's place and is none is named at once: nothing waits for a pipe.
#include "common/base/file_lock.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

using namespace proctor;

namespace {

bool says(const Error& error, const std::string& text) {
  return error.code == Errc::kInvalid && error.detail.find(text) != std::string::npos;
}

}  // namespace

TEST_SUITE("files") {
  TEST_CASE("a pipe, a link, a folder or a device is no file of one's own, and is not opened") {
    const TempDir dir = TempDir::create().value();
    const fs::path pipe = dir.path() / "pipe", link = dir.path() / "link",
                   dangling = dir.path() / "dangling", folder = dir.path() / "folder",
                   file = dir.path() / "file";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    REQUIRE(write_file(file, "x").ok());
    fs::create_symlink(file, link);
    fs::create_symlink("nowhere", dangling);
    fs::create_directory(folder);
    struct Row {
      fs::path path;
      const char* word;
    };
    for (const Row& row : {Row{pipe, "a named pipe"}, Row{link, "a symbolic link"},
                           Row{dangling, "a symbolic link that leads nowhere"},
                           Row{folder, "a folder"}, Row{"/dev/null", "a device"}}) {
      CAPTURE(row.path);
      const std::string text =
          row.path.string() + " is " + row.word + ", where a file must be: nothing of it is opened";
      CHECK(what_lies_at(row.path) == row.word);
      CHECK(says(check_own_file(row.path).error(), text));
      CHECK(says(open_own_file(row.path, O_RDONLY).error(), text));
      CHECK(says(open_own_file(row.path, O_RDWR | O_CREAT).error(), text));
      CHECK(says(FileLock::acquire(row.path).error(), text));
      CHECK(says(HostLock::take(row.path).error(), text));
    }
    CHECK(what_lies_at(file) == "a file");
    CHECK(what_lies_at(dir.path() / "none").empty());
    CHECK(check_own_file(file).ok());
    CHECK(check_own_file(dir.path() / "none").ok());
    CHECK(open_own_file(file, O_RDONLY).ok());
    CHECK(open_own_file(dir.path() / "none", O_RDONLY).error().code == Errc::kNotFound);
    CHECK(open_own_file(dir.path() / "made", O_RDWR | O_CREAT).ok());
    CHECK(fs::status(dir.path() / "made").permissions() == fs::perms(0600));
  }
}
