#include "worker/shell/setup_key.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>

using namespace proctor;

namespace {

Contract contract() {
  Contract c;
  c.setup.resize(2);
  c.setup[0].command = "make deps";
  c.setup[0].inputs = {"deps/**"};
  c.setup[1].command = "make";
  c.setup[1].inputs = {"Makefile", "deps/**"};
  c.files = {{"answer.patch", 0644, "answer"}, {"setup.sh", 0755, "true"}};
  c.reference_patch = "answer.patch";
  return c;
}

const SetupPlace kPlace{"0123", "bubblewrap", "overlay", {"a host"}};

}  // namespace

TEST_SUITE("setup key") {
  TEST_CASE("whatever setup can see makes another key") {
    std::set<Digest> keys = {setup_key(contract(), kPlace)};
    const std::function<void(Contract&)> changes[] = {
        [](Contract& c) { c.setup[0].command += " "; },
        [](Contract& c) { c.setup.pop_back(); },
        [](Contract& c) { std::swap(c.setup[0], c.setup[1]); },
        [](Contract& c) { c.setup[0].timeout += std::chrono::milliseconds(1); },
        [](Contract& c) { c.setup[0].network.open = true; },
        [](Contract& c) { c.setup[0].network.allow = {"a.example:443"}; },
        [](Contract& c) { c.environment.image = "sha256:1"; },
        [](Contract& c) { c.environment.variables["A"] = "B"; },
        [](Contract& c) { c.environment.locale = "de_DE.UTF-8"; },
        [](Contract& c) { c.environment.timezone = "Europe/Berlin"; },
        [](Contract& c) {
          c.environment.toolchains = {{"/opt/go", "/opt/go"}};
        },
        [](Contract& c) { c.policy.memory_bytes += 1; },
        [](Contract& c) { c.policy.processes += 1; },
        [](Contract& c) { c.policy.disk_bytes += 1; },
        [](Contract& c) { c.policy.cpu += std::chrono::milliseconds(1); },
        [](Contract& c) { c.policy.cpus += 0.5; },
        [](Contract& c) { c.files[1].bytes = "false"; },
        [](Contract& c) { c.files[1].mode = 0644; },
        [](Contract& c) { c.files[1].path = "other.sh"; }};
    for (const auto& change : changes) {
      Contract c = contract();
      change(c);
      CHECK(keys.insert(setup_key(c, kPlace)).second);
    }
    for (const SetupPlace& place : {SetupPlace{"0124", "bubblewrap", "overlay", {"a host"}},
                                    SetupPlace{"0123", "oci", "overlay", {"a host"}},
                                    SetupPlace{"0123", "bubblewrap", "copy", {"a host"}},
                                    SetupPlace{"0123", "bubblewrap", "overlay", {"a", " host"}}})
      CHECK(keys.insert(setup_key(contract(), place)).second);
  }

  TEST_CASE("what setup cannot see makes no other key") {
    const Digest key = setup_key(contract(), kPlace);
    Contract c = contract();
    c.files[0].bytes = "another answer";
    c.briefing = "other words";
    c.checks.resize(3);
    c.policy.agent_network.open = true;
    c.policy.wall *= 2;
    CHECK(setup_key(c, kPlace) == key);
  }

  TEST_CASE("a step that says no, a secret, or no setup at all keeps nothing") {
    Contract c = contract();
    CHECK(setup_is_cacheable(c));
    c.setup[1].cache = false;
    CHECK_FALSE(setup_is_cacheable(c));
    c = contract();
    c.environment.secrets = {"TOKEN"};
    CHECK_FALSE(setup_is_cacheable(c));
    c = contract();
    c.setup.clear();
    CHECK_FALSE(setup_is_cacheable(c));
  }

  TEST_CASE(
      "whatever a method's setup can see makes another key, and its secrets and keeps do not") {
    Method method;
    method.kind = Method::Kind::kCommand;
    method.files = {{"install.sh", 0755, "true"}};
    method.environment.setup.resize(1);
    method.environment.setup[0].command = "pip install mini";
    const Digest key = method_setup_key(method, "", kPlace);
    std::set<Digest> keys = {key};
    const std::function<void(Method&)> changes[] = {
        [](Method& m) { m.environment.setup[0].command += " "; },
        [](Method& m) { m.environment.setup[0].network.open = true; },
        [](Method& m) { m.environment.variables["A"] = "B"; },
        [](Method& m) {
          m.environment.toolchains = {{"/opt/node", "/opt/node"}};
        },
        [](Method& m) { m.files[0].bytes = "false"; }};
    for (const auto& change : changes) {
      Method m = method;
      change(m);
      CHECK(keys.insert(method_setup_key(m, "", kPlace)).second);
    }
    CHECK(keys.insert(method_setup_key(method, "sha256:1", kPlace)).second);
    Method same = method;
    same.name = "other";
    same.command = "mini --fast";
    same.environment.secrets = {"KEY"};
    same.environment.network.open = true;
    same.keep = {"traj.json"};
    CHECK(method_setup_key(same, "", kPlace) == key);
    CHECK(setup_is_cacheable(same));
    same.environment.setup[0].cache = false;
    CHECK_FALSE(setup_is_cacheable(same));
    CHECK_FALSE(setup_is_cacheable(Method{}));
  }

  TEST_CASE("acceptance relies on what every step said, or on nothing being touched") {
    CHECK(setup_reads_none_of(contract(), {}));
    CHECK(setup_reads_none_of(contract(), {"src/a.c", "docs/deps"}));
    CHECK_FALSE(setup_reads_none_of(contract(), {"src/a.c", "deps/x/y"}));
    CHECK_FALSE(setup_reads_none_of(contract(), {"Makefile"}));
    Contract silent = contract();
    silent.setup[0].inputs.clear();
    CHECK(setup_reads_none_of(silent, {}));
    CHECK_FALSE(setup_reads_none_of(silent, {"src/a.c"}));
  }
}
