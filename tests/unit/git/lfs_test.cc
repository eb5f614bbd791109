#include "worker/git/lfs.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {
const std::string kOid(64, 'a');
std::string pointer(const std::string& oid, const std::string& size) {
  return "version https://git-lfs.github.com/spec/v1\noid sha256:" + oid + "\nsize " + size + "\n";
}
}  // namespace

TEST_SUITE("git") {
  TEST_CASE("a pointer is what the specification says and nothing else") {
    const auto p = parse_lfs_pointer(pointer(kOid, "12345"));
    REQUIRE(p.has_value());
    CHECK(p->oid == kOid);
    CHECK(p->size == 12345);
    CHECK(parse_lfs_pointer("version https://git-lfs.github.com/spec/v1\next-0-foo sha256:b\noid "
                            "sha256:" +
                            kOid + "\nsize 1\n")
              .has_value());
    CHECK_FALSE(parse_lfs_pointer("").has_value());
    CHECK_FALSE(parse_lfs_pointer("version https://git-lfs.github.com/spec/v1\n").has_value());
    CHECK_FALSE(parse_lfs_pointer("\n" + pointer(kOid, "1")).has_value());
    CHECK_FALSE(parse_lfs_pointer(pointer(kOid.substr(1), "1")).has_value());
    CHECK_FALSE(parse_lfs_pointer(pointer(std::string(64, 'A'), "1")).has_value());
    CHECK_FALSE(parse_lfs_pointer(pointer("../../../../etc/passwd", "1")).has_value());
    CHECK_FALSE(parse_lfs_pointer(pointer(kOid, "-1")).has_value());
    CHECK_FALSE(parse_lfs_pointer(pointer(kOid, "99999999999999999999999")).has_value());
    CHECK_FALSE(parse_lfs_pointer(pointer(kOid, "1") + std::string(2000, 'x')).has_value());
  }

  TEST_CASE("attributes say who uses LFS") {
    CHECK(mentions_lfs("*.txt text\n  *.bin filter=lfs diff=lfs -text\n"));
    CHECK_FALSE(mentions_lfs("# *.bin filter=lfs\n*.bin -text\n"));
    CHECK_FALSE(mentions_lfs(""));
  }
}
