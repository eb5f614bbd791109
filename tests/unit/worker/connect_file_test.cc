// The file of coordinators: every mistake has its line.
#include "worker/shell/coordinators.h"

#include <doctest/doctest.h>

#include "common/wire/curve.h"

using namespace proctor;

namespace {
struct Folder {
  TempDir dir = TempDir::create().value();
  fs::path write(const std::string& name, const std::string& text) const {
    const fs::path path = dir.path() / name;
    REQUIRE(write_file(path, text, Durability::kLazy).ok());
    return path;
  }
};
}  // namespace

TEST_SUITE("connect file") {
  TEST_CASE("names, addresses, keys and priorities") {
    const Folder folder;
    const std::string key = wire::generate_key().value().public_z85;
    folder.write("night.pub", key + " coordinator\n");
    const auto stops = read_connect_file(folder.write(
        "c",
        "# name addresses key weight priority\n\n"
        "night tcp://10.0.0.5:7400,tcp://10.0.0.6:7400 night.pub 2 7\n"
        "  pilot\tipc:///tmp/s\n"
        "other tcp://h:1 " +
            key + "\nown tcp://h:2 - 1 0 KEY_A,model:gpt-4.1\nnone tcp://h:3 - 1 5 -\n"));
    REQUIRE_MESSAGE(stops.ok(), stops.error().detail);
    REQUIRE(stops->size() == 5);
    CHECK((*stops)[0].weight == 2);
    CHECK_FALSE((*stops)[0].secrets.has_value());
    CHECK((*stops)[3].secrets == std::vector<std::string>{"KEY_A", "model:gpt-4.1"});
    CHECK((*stops)[4].secrets == std::vector<std::string>{});
    CHECK((*stops)[0].addresses ==
          std::vector<std::string>{"tcp://10.0.0.5:7400", "tcp://10.0.0.6:7400"});
    CHECK((*stops)[0].server_key == key);
    CHECK((*stops)[0].priority == 7);
    CHECK((*stops)[1].addresses == std::vector<std::string>{"ipc:///tmp/s"});
    CHECK((*stops)[1].server_key.empty());
    CHECK((*stops)[2].server_key == key);
    CHECK((*stops)[3].server_key.empty());
    CHECK((*stops)[3].priority == 0);
  }

  TEST_CASE("a folder is all of its files") {
    const Folder folder;
    folder.write("b", "two tcp://h:2\n");
    folder.write("a", "one tcp://h:1\n");
    folder.write(".hidden", "not a line of ours at all, none\n");
    const auto stops = read_connect_file(folder.dir.path());
    REQUIRE(stops.ok());
    REQUIRE(stops->size() == 2);
    CHECK((*stops)[0].name == "one");
    CHECK(read_connect_file(folder.dir.path() / "none").error().code == Errc::kNotFound);
  }

  TEST_CASE("mistakes are told with their line") {
    const Folder folder;
    struct Row {
      const char* text;
      const char* said;
    };
    for (const Row& row :
         {Row{"a b/c\n../x tcp://h:1\n", ":2: `../x` is not a name"},
          {"a\n", ":1: ``: addresses are tcp://HOST:PORT"},
          {"a tcp://h:1,,tcp://h:2\n", ":1: `tcp://h:1,,tcp://h:2`: addresses"},
          {"a tcp://h:1 nothing.pub\n", ":1: "},
          {"a tcp://h:1 - 0\n", ":1: weight `0`: a number from 1 to 1000"},
          {"a tcp://h:1 - 1 10\n", ":1: priority `10`: a number from 0 to 9"},
          {"a tcp://h:1 - 1 5 A,,B\n", ":1: secrets `A,,B`: names of variables"},
          {"a tcp://h:1 - 1 5 model:\n", ":1: secrets `model:`: names of variables"},
          {"a tcp://h:1 - 1 5 * x\n", ":1: more than six columns"},
          {"a tcp://h:1\na tcp://h:2\n", ":2: a is named twice"}}) {
      CAPTURE(row.text);
      const auto stops = read_connect_file(folder.write("c", row.text));
      REQUIRE_FALSE(stops.ok());
      CHECK_MESSAGE(stops.error().detail.find(row.said) != std::string::npos, stops.error().detail);
    }
  }
}
