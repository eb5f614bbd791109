#include "worker/sandbox/limit_watch.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/base/folder_tree.h"
#include "common/base/owned.h"

using namespace proctor;

namespace {

DiskLimit limit_on(const fs::path& dir, std::uint64_t bytes, std::uint64_t files) {
  DiskLimit limit;
  limit.places = {{dir, 0, 0}};
  limit.bytes = bytes;
  limit.files = files;
  return limit;
}

bool passed(const DiskLimit& limit, const std::vector<pid_t>& inside = {}) {
  return DiskLook(limit, DiskLook::Where::kEverywhere).passed([&] { return inside; }, {});
}

}  // namespace

TEST_SUITE("disk use") {
  TEST_CASE("bytes and files are counted as the disk holds them") {
    const TempDir dir = TempDir::create("use").value();
    REQUIRE(make_dirs(dir.path() / "a/b").ok());
    REQUIRE(write_file(dir.path() / "a/b/full", std::string(100'000, 'x')).ok());
    fs::create_hard_link(dir.path() / "a/b/full", dir.path() / "again");
    REQUIRE(write_file(dir.path() / "hole", "").ok());
    fs::resize_file(dir.path() / "hole", std::uint64_t{1} << 40);
    fs::create_directory_symlink("/usr", dir.path() / "link");
    const FolderUse use = folder_use(dir.path());
    CHECK(use.files == 5);  // two folders, the file once, the hole, the link
    CHECK(100'000 <= use.bytes);
    CHECK(use.bytes < 200'000);
    CHECK_FALSE(passed(limit_on(dir.path(), 200'000, 5)));
    CHECK(passed(limit_on(dir.path(), 90'000, 0)));
    CHECK(passed(limit_on(dir.path(), 0, 4)));
    DiskLimit sizes = limit_on(dir.path(), std::uint64_t{1} << 40, 0);
    CHECK_FALSE(passed(sizes));
    sizes.measure = FolderMeasure::kSizes;  // the hole counts as what it seems
    CHECK(passed(sizes));
    DiskLimit before = limit_on(dir.path(), 90'000, 4);
    before.places[0].bytes_before = 50'000;
    before.places[0].files_before = 1;
    CHECK_FALSE(passed(before));
    CHECK_FALSE(passed(limit_on(dir.path() / "absent", 1, 1)));
  }

  TEST_CASE("a layer below counts but for what the folder above it hides") {
    const TempDir dir = TempDir::create("use").value();
    const fs::path upper = dir.path() / "upper", below = dir.path() / "below";
    const std::string bytes(100'000, 'x');
    REQUIRE(make_dirs(upper / "both").ok());
    REQUIRE(make_dirs(below / "both").ok());
    REQUIRE(make_dirs(below / "folder/deep").ok());
    REQUIRE(write_file(below / "both/stays", bytes).ok());
    REQUIRE(write_file(below / "both/edited", bytes).ok());
    REQUIRE(write_file(below / "folder/deep/file", bytes).ok());
    const FolderUse there = folder_use(below);
    CHECK(there.files == 6);
    CHECK(300'000 <= there.bytes);
    const auto passes = [&](std::uint64_t most, std::uint64_t files) {
      DiskLimit limit = limit_on(upper, most, files);
      limit.places[0].below = below;
      limit.places[0].bytes_below = there.bytes;
      limit.places[0].files_below = there.files;
      return passed(limit);
    };
    CHECK(passes(300'000, 0));
    CHECK_FALSE(passes(320'000, 6));
    REQUIRE(write_file(upper / "both/edited", bytes).ok());
    CHECK_FALSE(passes(320'000, 6));  // in the place of the other
    CHECK(passes(0, 5));
    REQUIRE(write_file(upper / "new", bytes).ok());
    CHECK(passes(320'000, 0));
    CHECK_FALSE(passes(430'000, 7));
    // Anything that is no folder hides all of one.
    REQUIRE(write_file(upper / "folder", "").ok());
    CHECK_FALSE(passes(320'000, 5));
  }

  TEST_CASE("a file that has lost its name is counted while somebody holds it") {
    const TempDir dir = TempDir::create("use").value();
    const fs::path file = dir.path() / "nameless";
    const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    const std::string bytes(300'000, 'x');
    REQUIRE(::write(fd.get(), bytes.data(), bytes.size()) == 300'000);
    REQUIRE(::fsync(fd.get()) == 0);
    fs::remove(file);
    const DiskLimit limit = limit_on(dir.path(), 200'000, 0);
    CHECK_FALSE(passed(limit));
    CHECK(passed(limit, {::getpid()}));
  }

  TEST_CASE("folders nested beyond all use pass every limit") {
    const TempDir dir = TempDir::create("use").value();
    fs::path at = dir.path();
    for (int i = 0; i < kFolderDepthMax; ++i) at /= "d";
    REQUIRE(make_dirs(at).ok());
    const DiskLimit limit = limit_on(dir.path(), std::uint64_t{1} << 30, 10'000);
    CHECK_FALSE(passed(limit));
    REQUIRE(make_dirs(at / "d/d").ok());
    CHECK(passed(limit));
  }
}
