// Two coordinators on one journal, where the lock of one does not reach the other.
#include "common/base/digest.h"
#include "tests/integration/journal/support.h"

using namespace proctor;
using namespace proctor::test;

namespace {

EpochBegun epoch(std::uint64_t n) {
  return {Epoch(n), "host" + std::to_string(n), 1, "v", at(1)};
}
// The next opener makes a lock of its own.
void lose_the_lock(const Folder& folder) {
  fs::remove(folder.file.string() + ".lock");
}

}  // namespace

TEST_SUITE("journal") {
  TEST_CASE("who was overtaken by another epoch writes nothing more") {
    const Folder folder;
    auto first = folder.open();
    REQUIRE(first->append_and_wait({epoch(1)}).ok());
    lose_the_lock(folder);
    auto second = folder.open();
    REQUIRE(second->load().ok());
    REQUIRE(second->append_and_wait({epoch(2)}).ok());
    const Error error = error_of(first->append_and_wait(life_of(1)));
    CHECK(error.code == Errc::kConflict);
    CHECK(error.detail.find("another coordinator writes it (epoch 2 has begun since 1)") !=
          std::string::npos);
    CHECK_FALSE(first->append_and_wait({}).ok());
    CHECK_FALSE(first->close().ok());
    REQUIRE(second->append_and_wait(life_of(2)).ok());
    REQUIRE(second->close().ok());
    const RestoredState state = must(must(JournalReader::open(folder.file)).load());
    REQUIRE(state.ended.size() == 1);
    CHECK(state.ended[0].run == RunId(2));
  }

  TEST_CASE("an epoch does not begin on what was read before another wrote") {
    const Folder folder;
    auto first = folder.open();
    REQUIRE(first->append_and_wait({epoch(1)}).ok());
    lose_the_lock(folder);
    auto second = folder.open();
    REQUIRE(must(second->load()).attempts.empty());
    REQUIRE(first->append_and_wait(life_of(1)).ok());  // the second does not know of it
    const Error error = error_of(second->append_and_wait({epoch(2)}));
    CHECK(error.code == Errc::kConflict);
    CHECK(error.detail.find("it has grown since it was read") != std::string::npos);
    CHECK(first->append_and_wait(life_of(2)).ok());
  }

  TEST_CASE("an act on a stopped campaign is refused once a coordinator has begun") {
    const Folder folder;
    REQUIRE(folder.open()->append_and_wait({epoch(1)}).ok());
    auto act = folder.open();
    lose_the_lock(folder);
    auto coordinator = folder.open();
    REQUIRE(coordinator->append_and_wait({epoch(2)}).ok());
    CHECK(error_of(act->append_and_wait(life_of(1))).code == Errc::kConflict);
    CHECK(coordinator->append_and_wait(life_of(1)).ok());
  }
}
