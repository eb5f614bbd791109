#include "common/trace/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "common/trace/evidence.h"
#include "common/trace/verify.h"
#include "sample_run.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

struct Hostile {
  std::string path;
  unsigned type = AE_IFREG;
  std::string bytes{};
  std::string link{};
  bool hard = false;
};

// An archive as an attacker would write it, with libarchive and none of our rules.
void write_archive(const fs::path& file, const std::vector<Hostile>& entries, bool zstd = true,
                   const char* level = "3") {
  archive* a = archive_write_new();
  archive_write_set_format_gnutar(a);
  if (zstd) archive_write_add_filter_zstd(a);
  if (zstd) archive_write_set_filter_option(a, "zstd", "compression-level", level);
  REQUIRE(archive_write_open_filename(a, file.c_str()) == ARCHIVE_OK);
  for (const Hostile& h : entries) {
    archive_entry* e = archive_entry_new();
    archive_entry_set_pathname(e, h.path.c_str());
    archive_entry_set_filetype(e, h.type);
    archive_entry_set_perm(e, 04777);
    archive_entry_set_size(e, static_cast<la_int64_t>(h.bytes.size()));
    if (!h.link.empty() && h.hard) archive_entry_set_hardlink(e, h.link.c_str());
    if (!h.link.empty() && !h.hard) archive_entry_set_symlink(e, h.link.c_str());
    REQUIRE(archive_write_header(a, e) == ARCHIVE_OK);
    archive_write_data(a, h.bytes.data(), h.bytes.size());
    archive_entry_free(e);
  }
  archive_write_close(a);
  archive_write_free(a);
}

struct Place {
  TempDir temp = TempDir::create("archive").value();
  fs::path file = temp.path() / "run.tar.zst";
  fs::path into = temp.path() / "out";

  std::string unpack(const UnpackBounds& bounds = {}) const {
    const Status s = unpack_archive(file, into, bounds);
    return s.ok() ? "unpacked" : s.error().detail;
  }
  // Nothing but the archive may be left after a refusal.
  bool clean() const {
    return std::distance(fs::directory_iterator(temp.path()), fs::directory_iterator()) == 1;
  }
};

// What unpacking ends with in a child of ours that has changed something of itself before.
int code_in_child(const Place& p, const std::function<void()>& before) {
  const pid_t child = ::fork();
  if (child == 0) {
    before();
    const Status s = unpack_archive(p.file, p.into);
    if (!s.ok())
      static_cast<void>(!::write(STDERR_FILENO, s.error().detail.c_str(), s.error().detail.size()));
    ::_exit(s.ok() ? 100 : static_cast<int>(s.error().code));
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
void limit(int what, rlim_t to) {
  const rlimit bound{to, to};
  ::setrlimit(static_cast<__rlimit_resource>(what), &bound);
}
constexpr int kOurs = static_cast<int>(Errc::kUnavailable);

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("trace") {
  TEST_CASE("a packed run directory comes back whole and verifies") {
    const Place p;
    const Digest digest = write_sample_run(p.temp.path() / "run");
    const Result<ArchiveInfo> info = pack_archive(p.temp.path() / "run", p.file);
    REQUIRE(info.ok());
    const std::string bytes = *read_file(p.file, 1 << 20);
    CHECK(info->bytes == bytes.size());
    CHECK(info->digest == sha256(bytes));
    REQUIRE(p.unpack() == "unpacked");
    CHECK(verify_run(p.into, digest).ok());
    const auto a = *list_tree(p.temp.path() / "run"), b = *list_tree(p.into);
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].path == b[i].path);
  }

  TEST_CASE("the same folder gives the same archive whenever and wherever it is packed") {
    const Place p;
    write_sample_run(p.temp.path() / "a");
    write_sample_run(p.temp.path() / "b");
    fs::last_write_time(p.temp.path() / "b/report.json",
                        fs::file_time_type::clock::now() - std::chrono::hours(50));
    fs::permissions(p.temp.path() / "b/report.json", fs::perms::owner_all);
    CHECK(pack_archive(p.temp.path() / "a", p.file)->digest ==
          pack_archive(p.temp.path() / "b", p.temp.path() / "b.tar.zst")->digest);
  }

  TEST_CASE("long and non-ASCII names survive whatever the locale is") {
    const Place p;
    const fs::path dir = p.temp.path() / "run";
    const std::string name = std::string(150, 'n') + "/caf\xC3\xA9";
    REQUIRE(make_dirs(dir / std::string(150, 'n')).ok());
    REQUIRE(write_file(dir / name, "x", Durability::kLazy).ok());
    REQUIRE(pack_archive(dir, p.file).ok());
    REQUIRE(p.unpack() == "unpacked");
    CHECK(*read_file(p.into / name, 10) == "x");
  }

  TEST_CASE("links and devices are not packed") {
    const Place p;
    REQUIRE(make_dirs(p.temp.path() / "run").ok());
    fs::create_symlink("/etc/passwd", p.temp.path() / "run/x");
    CHECK_FALSE(pack_archive(p.temp.path() / "run", p.file).ok());
    CHECK_FALSE(fs::exists(p.file));
  }

  TEST_CASE("hostile entries are refused by name and leave nothing") {
    struct Row {
      std::vector<Hostile> entries;
      const char* expected;
    };
    const std::vector<Row> rows{
        {{{"../x", AE_IFREG, "x"}}, "entry \"../x\": not a safe relative path"},
        {{{"/etc/x", AE_IFREG, "x"}}, "not a safe relative path"},
        {{{"a/../../x", AE_IFREG, "x"}}, "not a safe relative path"},
        {{{"a//x", AE_IFREG, "x"}}, "not a safe relative path"},
        {{{".", AE_IFDIR}}, "not a safe relative path"},
        {{{"a\xFFz", AE_IFREG, "x"}}, "not a safe relative path"},
        {{{"x", AE_IFLNK, "", "/etc/passwd"}}, "entry \"x\": a link"},
        {{{"x", AE_IFREG, "", "y", true}}, "entry \"x\": a link"},
        {{{"a", AE_IFLNK, "", "/tmp"}, {"a/x", AE_IFREG, "x"}}, "a link"},
        {{{"x", AE_IFIFO}}, "neither a file nor a folder"},
        {{{"x", AE_IFCHR}}, "neither a file nor a folder"},
        {{{"x", AE_IFREG, "1"}, {"x", AE_IFREG, "2"}}, "entry \"x\": comes twice"},
        {{{"d", AE_IFDIR}, {"d", AE_IFREG, "2"}}, "comes twice"},
        {{{"d/x", AE_IFREG, "1"}, {"d", AE_IFREG, "2"}}, "comes twice"},
        {{{"d", AE_IFREG, "1"}, {"d/x", AE_IFREG, "2"}}, "Not a directory"},
        {{{"ok", AE_IFREG, "1"}, {"../x", AE_IFREG, "2"}}, "not a safe relative path"},
    };
    for (const Row& row : rows) {
      const Place p;
      write_archive(p.file, row.entries);
      const Status refused = unpack_archive(p.file, p.into);
      REQUIRE_FALSE(refused.ok());
      const std::string what = refused.error().detail;
      CAPTURE(what);
      CHECK(has(what, row.expected));
      CHECK(refused.error().code == Errc::kInvalid);  // never tried again
      CHECK(p.clean());
    }
    std::string deep = "x";
    for (int i = 0; i < 40; ++i) deep = "d/" + deep;
    const Place p;
    write_archive(p.file, {{deep, AE_IFREG, "x"}});
    CHECK(has(p.unpack(), "nested too deeply"));
  }

  TEST_CASE("the bounds hold") {
    const Place p;
    write_archive(p.file, {{"a", AE_IFREG, std::string(1'000'000, 'x')}, {"b", AE_IFREG, "x"}});
    CHECK(has(p.unpack({.entries = 1}), "more than 1 entries"));
    CHECK(has(p.unpack({.total_bytes = 1'000'000}), "more than 1000000 bytes unpacked"));
    CHECK(has(p.unpack({.archive_bytes = 10}), "larger than 10 bytes"));
    for (const UnpackBounds& passed :
         {UnpackBounds{.entries = 1}, {.total_bytes = 1'000'000}, {.archive_bytes = 10}})
      CHECK(unpack_archive(p.file, p.into, passed).error().code == Errc::kInvalid);
    CHECK(p.clean());
    CHECK(p.unpack({.entries = 2, .total_bytes = 1'000'001}) == "unpacked");
    CHECK(has(p.unpack(), "is there already"));
    CHECK((fs::status(p.into / "a").permissions() & fs::perms::set_uid) == fs::perms::none);
  }

  TEST_CASE("what is no archive or was cut or damaged leaves nothing") {
    const Place p;
    write_archive(p.file, {{"a", AE_IFREG, "x"}}, false);
    CHECK(has(p.unpack(), "not a zstd archive"));
    REQUIRE(write_file(p.file, "not an archive", Durability::kLazy).ok());
    CHECK(p.unpack() != "unpacked");
    REQUIRE(write_file(p.file, "", Durability::kLazy).ok());
    CHECK(p.unpack() != "unpacked");
    CHECK(p.clean());
    std::string noise;
    for (unsigned i = 0, x = 1; i < 30'000; ++i)
      noise += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
    write_archive(p.file, {{"a", AE_IFREG, noise}, {"b", AE_IFREG, noise}});
    const std::string whole = *read_file(p.file, 1 << 20);
    for (std::size_t n = 0; n < whole.size() - 200; n += 997) {
      REQUIRE(write_file(p.file, whole.substr(0, n), Durability::kLazy).ok());
      CAPTURE(n);
      const Status cut = unpack_archive(p.file, p.into);
      REQUIRE_FALSE(cut.ok());
      CHECK(cut.error().code == Errc::kInvalid);
      CHECK(p.clean());
    }
    for (std::size_t n = 4; n < whole.size() - 200; n += 4001) {  // the magic number apart
      std::string changed = whole;
      changed[n] = static_cast<char>(changed[n] ^ 0x10);
      REQUIRE(write_file(p.file, changed, Durability::kLazy).ok());
      const Status damaged = unpack_archive(p.file, p.into);
      CAPTURE(n);
      if (damaged.ok()) {
        fs::remove_all(p.into);  // stored as it is: the digest sees it, not the format
      } else {
        CHECK(damaged.error().code == Errc::kInvalid);
      }
      CHECK(p.clean());
    }
  }

  TEST_CASE("what this machine lacks is no fault of the archive") {
    const Place p;
    // A window of 8 MiB to unpack into.
    write_archive(p.file, {{"a", AE_IFREG, std::string(12'000'000, 'x')}}, true, "19");
    CHECK(code_in_child(p, [] {
            ::close_range(3, ~0U, 0);  // what this program was started with
            limit(RLIMIT_NOFILE, 6);
          }) == kOurs);
    CHECK(p.clean());
    CHECK(code_in_child(p, [] {
            ::signal(SIGXFSZ, SIG_IGN);
            limit(RLIMIT_FSIZE, 1'000'000);
          }) == kOurs);
    CHECK(p.clean());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these need all addresses
    CHECK(code_in_child(p, [] {
            std::ifstream sizes("/proc/self/statm");
            rlim_t pages = 0;
            sizes >> pages;
            limit(RLIMIT_AS, pages * 4096 + (4U << 20));
            // Nor is there room in what was freed before; a little is left for everything else.
            void* last = nullptr;
            for (void* more = std::malloc(1U << 20); more != nullptr; more = std::malloc(1U << 20))
              last = more;
            std::free(last);
          }) == kOurs);
    CHECK(p.clean());
#endif
    const fs::path gone = p.temp.path() / "no-such-folder/out";
    CHECK(unpack_archive(p.file, gone).error().code == Errc::kUnavailable);
    CHECK(p.clean());
    CHECK(p.unpack() == "unpacked");  // and it is good
  }
}
