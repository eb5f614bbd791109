#include "worker/workspace/kept_files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

using namespace proctor;

namespace {

class Left {
 public:
  Left() : dir_(TempDir::create("kept").value()) { REQUIRE(make_dirs(from()).ok()); }
  fs::path from() const { return dir_.path() / "from"; }
  fs::path to() const { return dir_.path() / "to"; }
  void put(const std::string& path, std::string_view bytes) const {
    REQUIRE(make_dirs((from() / path).parent_path()).ok());
    REQUIRE(write_file(from() / path, bytes, Durability::kLazy).ok());
  }
  KeptFiles keep(const std::vector<std::string>& globs, KeepRoom room = {10, 100, 1000, 30}) const {
    Result<KeptFiles> kept = keep_files(from(), globs, to(), room);
    REQUIRE(kept.ok());
    return std::move(kept).value();
  }

 private:
  TempDir dir_;
};

std::vector<std::string> names(const KeptFiles& kept) {
  std::vector<std::string> out;
  for (const KeptFiles::File& f : kept.files) out.push_back(f.path);
  return out;
}

std::string why(const KeptFiles& kept, const std::string& path) {
  for (const KeptFiles::LeftOut& l : kept.left_out)
    if (l.path == path) return l.why;
  return "";
}

}  // namespace

TEST_SUITE("kept files") {
  TEST_CASE("what a glob covers is copied with its digest and the rest is not") {
    const Left left;
    left.put("traj.json", "{}");
    left.put("logs/a.log", "a");
    left.put("logs/deep/b.log", "b");
    left.put("other", "no");
    left.put(".git/logs/x", "no");
    const KeptFiles kept = left.keep({"traj.json", "logs", "absent/**", ".git/**"});
    CHECK(names(kept) == std::vector<std::string>{"logs/a.log", "logs/deep/b.log", "traj.json"});
    CHECK(kept.files[2].digest == sha256("{}"));
    CHECK(kept.files[2].bytes == 2);
    CHECK(kept.left_out.empty());
    CHECK(read_file(left.to() / "logs/deep/b.log", 10).value() == "b");
    CHECK_FALSE(fs::exists(left.to() / "other"));
  }

  TEST_CASE("nothing is followed, waited for or read beyond its bounds") {
    const Left left;
    left.put("secret", "of the host");
    fs::create_symlink(left.from() / "secret", left.from() / "link");
    fs::create_directory_symlink("/etc", left.from() / "folder");
    REQUIRE(::mkfifo((left.from() / "pipe").c_str(), 0600) == 0);
    left.put("large", std::string(101, 'x'));
    left.put("sparse", "");
    REQUIRE(::truncate((left.from() / "sparse").c_str(), off_t{1} << 40) == 0);
    left.put("odd\nname", "x");
    left.put("odd\xff", "x");
    const KeptFiles kept =
        left.keep({"link", "folder/**", "pipe", "large", "sparse", "odd*", "secret"});
    CHECK(names(kept) == std::vector<std::string>{"secret"});
    CHECK(why(kept, "link") == "a link");
    CHECK(why(kept, "pipe") == "neither file nor folder");
    CHECK(why(kept, "large") == "101 bytes, more than 0 MiB");
    CHECK(why(kept, "sparse") == "1099511627776 bytes, more than 0 MiB");
    CHECK(std::ranges::count(kept.left_out, "its name is no plain text, or too long",
                             &KeptFiles::LeftOut::why) == 2);
    CHECK_FALSE(fs::exists(left.to() / "folder"));
  }

  TEST_CASE("files are bounded in number and together, and what was left out is counted") {
    const Left left;
    for (int i = 100; i < 160; ++i) left.put("f" + std::to_string(i), std::string(50, 'x'));
    const KeptFiles few = left.keep({"*"}, {5, 100, 1000, 30});
    CHECK(few.files.size() == 5);
    CHECK(few.left_out.size() == KeptFiles::kLeftOutTold);
    CHECK(few.left_out_beside == 55 - KeptFiles::kLeftOutTold);
    const KeptFiles small = left.keep({"*"}, {100, 100, 120, 30});
    CHECK(small.files.size() == 2);
    CHECK(small.left_out[0].why == "no room beside the others");
  }

  TEST_CASE("names that cannot be kept are left out and told, and the others are kept") {
    const Left left;
    const std::string longest(255, 'a');
    left.put("x", "1");
    left.put(".x.new/y", "2");
    left.put(longest, "3");
    left.put(".proctor-0.new/deep", "4");
    left.put("z/.proctor-7.new", "5");
    const KeptFiles kept = left.keep({"**"});
    CHECK(names(kept) == std::vector<std::string>{".x.new/y", longest, "x"});
    CHECK(read_file(left.to() / "x", 10).value() == "1");
    CHECK(read_file(left.to() / ".x.new/y", 10).value() == "2");
    CHECK(read_file(left.to() / longest, 10).value() == "3");
    CHECK(why(kept, ".proctor-0.new/deep") == "a name that Proctor has for files of its own");
    CHECK(why(kept, "z/.proctor-7.new") == "a name that Proctor has for files of its own");
  }

  TEST_CASE("what lies deeper than an archive may have it is left out") {
    const Left left;
    left.put("a/b/c/kept", "x");
    left.put("a/b/c/d/not", "x");
    left.put("beside", "x");
    const KeptFiles kept = left.keep({"**"}, {10, 100, 1000, 3});
    CHECK(names(kept) == std::vector<std::string>{"a/b/c/kept", "beside"});
    CHECK(why(kept, "a/b/c/d") == "nested too deep");
    CHECK_FALSE(fs::exists(left.to() / "a/b/c/d"));
  }

  TEST_CASE("a folder that is gone or no folder keeps nothing") {
    const Left left;
    KeepRoom room{10, 100, 1000, 3};
    left.put("file", "x");
    for (const char* from : {"gone", "file"}) {
      const Result<KeptFiles> kept = keep_files(left.from() / from, {"**"}, left.to(), room);
      REQUIRE(kept.ok());
      CHECK(why(*kept, ".") == "cannot be read");
    }
  }
}
