#include <doctest/doctest.h>
#include <sys/stat.h>

#include <string>

#include "common/wire/curve.h"

using namespace proctor;
using namespace proctor::wire;

namespace {

struct Folder {
  Folder() : dir(std::move(TempDir::create("wire")).value()) {}
  fs::path operator/(const char* name) const { return dir.path() / name; }
  TempDir dir;
};

KeyPair some_key() {
  Result<KeyPair> key = generate_key();
  REQUIRE(key.ok());
  return std::move(key).value();
}

unsigned mode_of(const fs::path& path) {
  struct stat st = {};
  REQUIRE(::stat(path.c_str(), &st) == 0);
  return st.st_mode & 07777;
}

void write(const fs::path& path, const std::string& text, unsigned mode = 0600) {
  REQUIRE(write_file(path, text, Durability::kLazy, mode).ok());
}

}  // namespace

TEST_SUITE("wire") {
  TEST_CASE("a key pair survives its file and only its owner can read it") {
    const Folder folder;
    const KeyPair key = some_key();
    REQUIRE(save_key(key, folder / "w1.key").ok());
    CHECK(mode_of(folder / "w1.key") == 0600);
    const Result<KeyPair> back = load_key(folder / "w1.key");
    REQUIRE_MESSAGE(back.ok(), back.error().detail);
    CHECK(back->public_z85 == key.public_z85);
    CHECK(back->secret_z85.reveal() == key.secret_z85.reveal());
    CHECK(save_key(some_key(), folder / "w1.key").error().code == Errc::kConflict);
    CHECK(load_key(folder / "w1.key")->public_z85 == key.public_z85);
  }

  TEST_CASE("a secret key that others may read is refused") {
    const Folder folder;
    REQUIRE(save_key(some_key(), folder / "k").ok());
    for (const unsigned mode : {0644U, 0640U, 0604U, 0620U, 0602U}) {
      CAPTURE(mode);
      REQUIRE(::chmod((folder / "k").c_str(), mode) == 0);
      const Result<KeyPair> key = load_key(folder / "k");
      REQUIRE_FALSE(key.ok());
      CHECK(key.error().code == Errc::kInvalid);
      CHECK(key.error().detail.find("others may read") != std::string::npos);
    }
    REQUIRE(::chmod((folder / "k").c_str(), 0400) == 0);
    CHECK(load_key(folder / "k").ok());
  }

  TEST_CASE("bad key files are refused with their line and without their text") {
    const Folder folder;
    const KeyPair a = some_key();
    const KeyPair b = some_key();
    const std::string pub = "public " + a.public_z85 + "\n";
    const std::string sec = "secret " + a.secret_z85.reveal() + "\n";
    const struct {
      std::string text;
      const char* expected;
    } rows[] = {
        {"", "needs one `public` and one `secret` line"},
        {pub, "needs one `public` and one `secret` line"},
        {pub + "secret hunter2\n", ":2: not a key of 40 characters of Z85"},
        {pub + sec + sec, ":3: a second key of its kind"},
        {pub + sec + "hello world\n", ":3: expected `public KEY` or `secret KEY`"},
        {pub + "secret " + a.secret_z85.reveal() + " more\n", ":2: more than two words"},
        {pub + "secret " + b.secret_z85.reveal() + "\n", "not that of the secret key"},
        {std::string(5000, '#'), "too large for a key"},
        {a.public_z85 + " w1\n", ":1: this is a public key"},
    };
    for (const auto& row : rows) {
      CAPTURE(row.expected);
      write(folder / "k", row.text);
      const Result<KeyPair> key = load_key(folder / "k");
      REQUIRE_FALSE(key.ok());
      CHECK(key.error().code == Errc::kInvalid);
      CHECK_MESSAGE(key.error().detail.find(row.expected) != std::string::npos, key.error().detail);
      CHECK(key.error().detail.find("hunter2") == std::string::npos);
      CHECK(key.error().detail.find(a.secret_z85.reveal()) == std::string::npos);
    }
    CHECK(load_key(folder / "absent").error().code == Errc::kNotFound);
    CHECK(load_key(folder.dir.path()).error().code == Errc::kInvalid);
    write(folder / "k", "# a comment\n\n" + sec + "\t" + pub);
    CHECK(load_key(folder / "k").ok());
    const Result<std::string> swapped = load_public_key(folder / "k");
    REQUIRE_FALSE(swapped.ok());
    CHECK(swapped.error().detail.find(":3: this is a secret key's file") != std::string::npos);
  }

  TEST_CASE("public files make an allow list when they are put together") {
    const Folder folder;
    const KeyPair a = some_key();
    const KeyPair b = some_key();
    REQUIRE(save_public_key(a.public_z85, "w1", folder / "a.pub").ok());
    REQUIRE(save_public_key(b.public_z85, "w2", folder / "b.pub").ok());
    CHECK(load_public_key(folder / "a.pub").value() == a.public_z85);
    const std::string both = read_file(folder / "a.pub", 1000).value() + "# second host\n" +
                             read_file(folder / "b.pub", 1000).value();
    write(folder / "allow", both);
    const Result<AllowList> list = load_allow_list(folder / "allow");
    REQUIRE_MESSAGE(list.ok(), list.error().detail);
    CHECK(list->size() == 2);
    CHECK(list->name_of(a.public_z85) == "w1");
    CHECK(list->name_of(b.public_z85) == "w2");
    CHECK_FALSE(list->name_of(some_key().public_z85).has_value());
    write(folder / "allow", "#" + both);
    CHECK(load_allow_list(folder / "allow")->size() == 1);
    CHECK_FALSE(save_public_key(a.public_z85, "no spaces", folder / "c.pub").ok());
    CHECK_FALSE(fs::exists(folder / "c.pub"));
  }

  TEST_CASE("a wrong line of an allow list is named") {
    const Folder folder;
    const std::string a = some_key().public_z85;
    const std::string b = some_key().public_z85;
    const struct {
      std::string text;
      const char* expected;
    } rows[] = {
        {"short w1\n", ":1: `short` is not a public key"},
        {a + "\n", ":1: `` is not a worker's name"},
        {a + " w1 extra\n", ":1: more than two words"},
        {a + " w1\n" + a + " w2\n", ":2: this key is listed already"},
        {a + " w1\n\n" + b + " w1\n", ":3: `w1` has a key already"},
        {a + " ../w1\n", ":1: `../w1` is not a worker's name"},
        {a + " -w1\n", ":1: `-w1` is not a worker's name"},
        {a + " .w1\n", ":1: `.w1` is not a worker's name"},
        {a + " w\xe2\x80\xae"
             "1\n",
         ":1: `w\\xe2\\x80\\xae1` is not a worker's name"},
        {a + " " + std::string(101, 'w') + "\n", "is not a worker's name"},
        {std::string(40, '%') + " w1\n", "is not a public key"},  // more than 32 bits a group
    };
    for (const auto& row : rows) {
      CAPTURE(row.expected);
      write(folder / "allow", row.text);
      const Result<AllowList> list = load_allow_list(folder / "allow");
      REQUIRE_FALSE(list.ok());
      CHECK(list.error().code == Errc::kInvalid);
      CHECK_MESSAGE(list.error().detail.find(row.expected) != std::string::npos,
                    list.error().detail);
    }
  }

  TEST_CASE("tcp needs keys unless loopback was asked for and is meant literally") {
    const struct {
      const char* endpoint;
      bool curve;
      bool insecure;
      bool allowed;
    } rows[] = {
        {"tcp://0.0.0.0:5555", true, false, true},
        {"tcp://*:*", true, false, true},
        {"tcp://host.example:5555", true, false, true},
        {"tcp://0.0.0.0:5555", false, false, false},
        {"tcp://127.0.0.1:5555", false, false, false},
        {"tcp://127.0.0.1:5555", false, true, true},
        {"tcp://127.8.9.1:*", false, true, true},
        {"tcp://[::1]:5555", false, true, true},
        {"tcp://0.0.0.0:5555", false, true, false},
        {"tcp://*:5555", false, true, false},
        {"tcp://[::]:5555", false, true, false},
        {"tcp://localhost:5555", false, true, false},
        {"tcp://127.0.0.1.example:5555", false, true, false},
        {"tcp://127.1:5555", false, true, false},
        {"tcp://10.0.0.1;127.0.0.1:5555", false, true, false},
        {"tcp://127.0.0.1", true, true, false},
        {"tcp://127.0.0.1:99999", true, true, false},
        {"tcp://:5555", true, true, false},
        {"udp://127.0.0.1:5555", true, true, false},
        {"inproc://x", false, false, true},
        {"inproc://", false, false, false},
        {"ipc://@abstract", false, true, false},
        {"ipc://*", false, true, false},
        {"ipc://", true, true, false},
        {"", true, true, false},
    };
    for (const auto& row : rows) {
      CAPTURE(row.endpoint);
      CHECK(check_listen_endpoint(row.endpoint, row.curve, row.insecure).ok() == row.allowed);
      CHECK(check_connect_endpoint(row.endpoint, row.curve, row.insecure).ok() == row.allowed);
    }
  }

  TEST_CASE("a socket file must lie in a folder that is closed to others") {
    const Folder folder;
    const std::string endpoint = "ipc://" + (folder / "c.ipc").string();
    CHECK(check_listen_endpoint(endpoint, false, false).ok());
    REQUIRE(::chmod(folder.dir.path().c_str(), 0755) == 0);
    CHECK_FALSE(check_listen_endpoint(endpoint, false, false).ok());
    CHECK_FALSE(
        check_listen_endpoint("ipc://" + (folder / "no/c.ipc").string(), false, false).ok());
    const Status long_path =
        check_listen_endpoint("ipc:///tmp/" + std::string(110, 'x'), false, false);
    REQUIRE_FALSE(long_path.ok());
    CHECK(long_path.error().detail.find("a socket's may have 107") != std::string::npos);
  }
}
