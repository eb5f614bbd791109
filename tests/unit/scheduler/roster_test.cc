#include "coordinator/core/roster.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {
constexpr std::uint64_t kBoth = capability::kNull | capability::kDocker;
constexpr std::uint64_t kEngine = kBoth | capability::kImages;  // a Docker Engine runs every image
WorkerIndex join(Roster& roster, const char* name, std::uint32_t slots, std::uint64_t has) {
  const WorkerIndex i = roster.index_of(WorkerId(name));
  roster.update(i, BootId(1), slots, has, Instant{});
  return i;
}
}  // namespace

TEST_SUITE("roster") {
  TEST_CASE("the worker with most free slots is picked and the first of equals") {
    Roster roster;
    const WorkerIndex a = join(roster, "a", 2, kBoth), b = join(roster, "b", 3, kBoth);
    CHECK(roster.pick(capability::kNull) == b);
    roster.hold(b);
    CHECK(roster.pick(capability::kNull) == a);
    roster.hold(a);
    CHECK(roster.pick(capability::kNull) == b);
    CHECK(roster.free_slots() == 3);
    CHECK(roster.slots() == 5);
  }

  TEST_CASE("a worker without the capability is passed over") {
    Roster roster;
    join(roster, "big", 9, capability::kNull);
    CHECK_FALSE(roster.pick(capability::kDocker).has_value());
    const WorkerIndex small = join(roster, "small", 1, kBoth);
    CHECK(roster.pick(capability::kDocker) == small);
  }

  TEST_CASE("isolation in user space is had by who says so, and not by who runs images alone") {
    const std::uint64_t images = capability::from_features({"sandbox:docker", "sandbox:oci"});
    const std::uint64_t both =
        capability::from_features({"sandbox:docker", "sandbox:oci", "isolation:userspace"});
    Roster roster;
    join(roster, "shares", 9, images);
    CHECK_FALSE(roster.pick(capability::kUserspace).has_value());
    CHECK_FALSE(roster.anyone_has(capability::kUserspace));
    const WorkerIndex own = join(roster, "own", 1, both);
    CHECK(roster.pick(capability::kUserspace) == own);
    CHECK(capability::describe(capability::kUserspace) == "isolation in user space (runsc)");
  }

  TEST_CASE("a suspect or absent worker has no free slots and keeps what it holds") {
    Roster roster;
    const WorkerIndex a = join(roster, "a", 2, kBoth);
    roster.hold(a);
    roster.set_suspect(a, true);
    CHECK(roster.free_slots() == 0);
    CHECK_FALSE(roster.pick(0).has_value());
    join(roster, "a", 2, kBoth);  // heard of again
    CHECK(roster.free_slots() == 1);
    roster.leave(a, Instant{});
    CHECK(roster.free_slots() == 0);
    CHECK(roster.slots() == 0);
    CHECK(roster.at(a).held == 1);
    CHECK(roster.index_of(WorkerId("a")) == a);
  }

  TEST_CASE("fewer slots than are held is not negative") {
    Roster roster;
    const WorkerIndex a = join(roster, "a", 2, kBoth);
    roster.hold(a);
    roster.hold(a);
    join(roster, "a", 0, kBoth);
    CHECK(roster.free_slots() == 0);
    roster.release(a);
    CHECK(roster.free_slots() == 0);
  }

  TEST_CASE("features become capabilities and capabilities become words") {
    CHECK(capability::from_features({"sandbox:docker", "workspace:overlay", "sandbox:null"}) ==
          kEngine);
    CHECK(capability::describe_offer(kEngine) == "Docker and the null sandbox");
    CHECK(capability::describe(kBoth) == "Docker and the null sandbox");
    CHECK(capability::describe(0) == "nothing special");
  }

  TEST_CASE("what a worker's release knows of methods is needed by them and no word about it") {
    const std::uint64_t has = capability::from_features({"sandbox:null", "method:tool_loop"});
    CHECK(has == (capability::kNull | capability::kToolLoop));
    CHECK(capability::from_features({"method:of_tomorrow"}) == 0);
    CHECK(capability::describe(has) == "the null sandbox and methods of kind tool_loop");
    CHECK(capability::describe_offer(has) == "the null sandbox");
    CHECK(capability::from_features({"method:tools"}) == capability::kAgentTools);
    CHECK((capability::kOfRelease & (capability::kImages | capability::kThings |
                                     capability::kAlone | capability::kElsewhere)) == 0);
  }

  TEST_CASE("a kind that does not isolate where a worker is is nothing that it has") {
    const std::uint64_t has = capability::from_features(
        {"sandbox:null", "unfit:bubblewrap", "unfit:oci", "unfit:userspace", "unfit:anything"});
    CHECK((has & (capability::kBubblewrap | capability::kImages | capability::kUserspace)) == 0);
    CHECK(capability::describe_unfit(capability::kBubblewrap, has) == "bubblewrap");
    CHECK(capability::describe_unfit(capability::image_bit(3), has) == "OCI");
    CHECK(capability::describe_unfit(capability::kUserspace | capability::image_bit(3), has) ==
          "isolation in user space (runsc)");
    CHECK(capability::describe_unfit(capability::kNull, has).empty());
    CHECK(capability::describe_unfit(capability::image_bit(0),
                                     capability::from_features({"unfit:docker", "unfit:oci"})) ==
          "Docker and OCI");
    CHECK(
        capability::describe_offer(has) ==
        "the null sandbox (not bubblewrap and OCI and isolation in user space (runsc), which does "
        "not isolate there)");
  }

  TEST_CASE("a worker whose disk is full offers nothing and says why") {
    const std::uint64_t has = capability::from_features({"full:disk", "workspace:copy"});
    CHECK((has & capability::kBubblewrap) == 0);
    CHECK(capability::describe_offer(has) == "nothing while its disk is full");
  }

  TEST_CASE("a store of images offers those that are in it, an engine all of them") {
    const std::vector<std::string> images{"image:base:latest", "image:sha256:aa"};
    const std::uint64_t base = capability::image_bit(0), other = capability::image_bit(1);
    const std::uint64_t stored =
        capability::from_features({"sandbox:oci", "image:sha256:aa", "image:unknown"}, images);
    CHECK(stored == other);
    CHECK(capability::describe_offer(stored) == "stored images");
    CHECK(capability::describe(base) == "Docker");
    CHECK((capability::from_features({"sandbox:docker"}, images) & (base | other)) ==
          (base | other));
    CHECK(capability::image_bit(19) == capability::image_bit(400));  // those beyond share one
    CHECK((capability::image_bit(400) & capability::kImages) != 0);
  }

  TEST_CASE("a host has what its worker does not say it lacks") {
    const std::vector<std::string> things{"secret:KEY", "toolchain:/opt/go"};
    const std::uint64_t key = capability::thing_bit(0), go = capability::thing_bit(1);
    CHECK(capability::from_features({"sandbox:null"}, {}, things) ==
          (capability::kNull | key | go));
    const std::uint64_t poor =
        capability::from_features({"lacks:secret:KEY", "lacks:secret:OTHER"}, {}, things);
    CHECK(poor == go);
    CHECK(capability::describe(capability::kBubblewrap | key, things) ==
          "bubblewrap and secret KEY");
    CHECK(capability::describe_offer(poor, things) == "nothing special, but not secret KEY");
    CHECK(capability::describe_offer(go | key | capability::kBubblewrap, things) == "bubblewrap");
    Roster roster;
    const WorkerIndex a = join(roster, "a", 9, poor), b = join(roster, "b", 1, go | key);
    CHECK(roster.pick(key) == b);
    CHECK(roster.pick(go) == a);
    CHECK(capability::thing_bit(31) == capability::thing_bit(500));  // those beyond share one
    CHECK((capability::thing_bit(500) & capability::kThings) != 0);
    CHECK((capability::kThings & (capability::kAlone | capability::kImages)) == 0);
  }
}
