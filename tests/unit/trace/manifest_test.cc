#include "common/trace/manifest.h"

#include <doctest/doctest.h>

#include <functional>

#include "sample_run.h"
#include "tests/support/json_tools.h"

using namespace proctor;
using namespace proctor::testing;

namespace {
std::string verdict(const Json& manifest) {
  const Status s = check_manifest(manifest);
  return s.ok() ? "complete" : s.error().detail;
}
}  // namespace

TEST_SUITE("trace") {
  TEST_CASE("a manifest reads back as it was made") {
    const Json made = sample_manifest();
    CHECK(verdict(made) == "complete");
    const Result<ManifestInputs> back = read_manifest(made);
    REQUIRE(back.ok());
    CHECK(make_manifest(*back) == made);
    CHECK(canonical_json(made).ok());
    CHECK(back->source == "https://***@example.org/parser.git");
    CHECK(read_manifest(make_manifest({})).ok());
  }

  TEST_CASE("a manifest has the commit of its worker's build, and older ones have none") {
    ManifestInputs m = sample_inputs();
    CHECK_FALSE(make_manifest(m)["tool"].contains("commit"));
    m.tool_commit = "0123456789ab-dirty";
    const Json made = make_manifest(m);
    CHECK(made["tool"]["commit"] == "0123456789ab-dirty");
    CHECK(verdict(made) == "complete");
    CHECK(read_manifest(made).value().tool_commit == m.tool_commit);
  }

  TEST_CASE("no user or password of a repository URL gets into a manifest") {
    ManifestInputs m = sample_inputs();
    const auto source = [&m](const char* url) {
      m.source = url;
      return make_manifest(m)["repository"]["source"].get<std::string>();
    };
    CHECK(source("https://u:p@h/x@y") == "https://***@y");  // or a password with a slash
    CHECK(source("https://u:p/q@h/x") == "https://***@h/x");
    CHECK(source("https://h:80/x@y") == "https://h:80/x@y");
    CHECK(source("https://[::1]:80/x@y") == "https://[::1]:80/x@y");
    CHECK(source("ssh://git@h") == "ssh://***@h");
    CHECK(source("https://a@b@h/x") == "https://***@h/x");
    CHECK(source("/srv/a@b") == "/srv/a@b");
    CHECK(source("https://h/x@y") == "https://h/x@y");
  }

  TEST_CASE(
      "what a method has of its own stands in the manifest, and nothing where it has nothing") {
    ManifestInputs m = sample_inputs();
    CHECK_FALSE(make_manifest(m).contains("method"));
    m.own = ManifestMethod{"tools@sha256:1",
                           "oci",
                           {{"MODE", "fast"}},
                           {"KEY"},
                           {{"/opt/node", "/opt/node", "v20"}},
                           {"npm install"},
                           ManifestSetupCache{"hit", "k", "l"},
                           {"traj.json"}};
    const Json made = make_manifest(m);
    CHECK(verdict(made) == "complete");
    const auto back = read_manifest(made);
    REQUIRE(back.ok());
    CHECK(make_manifest(*back) == made);
    CHECK(back->own->toolchains[0].version == "v20");
    Json more = made;
    more["method"]["more"] = 1;
    CHECK_FALSE(read_manifest(more).ok());
  }

  TEST_CASE("what was kept of setup is said in one way only") {
    ManifestInputs m = sample_inputs();
    CHECK_FALSE(make_manifest(m)["environment"].contains("setup_cache"));
    CHECK_FALSE(make_manifest(m)["environment"].contains("image_inputs"));
    ManifestInputs built = m;
    built.image_inputs = std::string(64, 'a');
    CHECK(read_manifest(make_manifest(built)).value().image_inputs == built.image_inputs);
    for (const ManifestSetupCache& good :
         {ManifestSetupCache{"off", "", ""}, ManifestSetupCache{"miss", "k", ""},
          ManifestSetupCache{"hit", "k", "l"}}) {
      m.setup_cache = good;
      const auto back = read_manifest(make_manifest(m));
      REQUIRE(back.ok());
      REQUIRE(back->setup_cache.has_value());
      CHECK(back->setup_cache->use == good.use);
      CHECK(back->setup_cache->layer == good.layer);
      CHECK(make_manifest(*back) == make_manifest(m));
    }
    for (const ManifestSetupCache& bad :
         {ManifestSetupCache{"off", "k", ""}, ManifestSetupCache{"miss", "", ""},
          ManifestSetupCache{"miss", "k", "l"}, ManifestSetupCache{"hit", "k", ""},
          ManifestSetupCache{"perhaps", "k", "l"}}) {
      m.setup_cache = bad;
      CHECK_FALSE(read_manifest(make_manifest(m)).ok());
    }
  }

  TEST_CASE("a configuration class changes with each of its parts and with nothing else") {
    const ManifestInputs base = sample_inputs();
    CHECK(configuration_word(base) == configuration_class(base).hex().substr(0, 16));
    CHECK(configuration_class(base) == configuration_class(*read_manifest(make_manifest(base))));
    CHECK(configuration_parts(base).at("limits.wall_ms") == "1800000");
    struct Row {
      std::function<void(ManifestInputs&)> change;
      const char* part;  // empty: the class stays
    };
    const std::vector<Row> rows{
        {[](auto& m) { m.sandbox = "oci"; }, "sandbox"},
        {[](auto& m) { m.image = "sha256:1"; }, "image"},
        {[](auto& m) { m.locale = "de_DE.UTF-8"; }, "locale"},
        {[](auto& m) { m.timezone = "Europe/Berlin"; }, "timezone"},
        {[](auto& m) { m.enforcement["memory"] = "rlimit"; }, "enforcement.memory"},
        {[](auto& m) { m.monitors["calls"] = "seccomp"; }, "monitors.calls"},
        {[](auto& m) { m.limits["wall_ms"] = 1; }, "limits.wall_ms"},
        {[](auto& m) { m.limits["disk_bytes"] = 0; }, "limits.disk_bytes"},
        {[](auto& m) { m.network_setup = false; }, "network.setup"},
        {[](auto& m) { m.network_allowed["agent"] = {"a b"}; }, "network.allowed.agent"},
        {[](auto& m) { m.tool_version = "0.2.0"; }, "worker.version"},
        {[](auto& m) { m.tool_commit = "0123456789ab"; }, "worker.commit"},
        {[](auto& m) { m.task = "other", m.contract = sha256("other"); }, ""},
        {[](auto& m) { m.method = "other", m.agent = "other", m.own.emplace(); }, ""},
        {[](auto& m) { m.attempt.no = AttemptNo(9), m.started_ms = 1, m.run_seed = 1; }, ""},
        {[](auto& m) { m.cpu_class = "x86_64, 64 cores", m.kernel = "7", m.variables = {}; }, ""},
    };
    for (const Row& row : rows) {
      ManifestInputs m = base;
      row.change(m);
      CAPTURE(row.part);
      std::vector<std::string> changed;
      const ConfigurationParts before = configuration_parts(base);
      for (const auto& [name, value] : configuration_parts(m))
        if (const auto was = before.find(name); was == before.end() || was->second != value)
          changed.push_back(name);
      const std::vector<std::string> expected(*row.part == '\0' ? 0 : 1, row.part);
      CHECK(changed == expected);
      CHECK((configuration_class(m) == configuration_class(base)) == expected.empty());
    }
  }

  TEST_CASE("every field that is taken away is named") {
    const Json whole = sample_manifest();
    std::size_t fields = 0;
    const std::function<void(const std::string&)> visit = [&](const std::string& path) {
      const Json& here = at_pointer(whole, path);
      for (const auto& item : here.items()) {
        const std::string inner = path + "/" + item.first;
        const bool free_form = path.ends_with("enforcement") || path.ends_with("variables") ||
                               path.ends_with("package_managers") || path.ends_with("limits");
        if (free_form || here.is_array()) continue;
        Json cut = whole;
        at_pointer(cut, path).erase(item.first);
        CAPTURE(inner);
        CHECK(verdict(cut).find(item.first + ": missing") != std::string::npos);
        ++fields;
        if (item.second.is_structured()) visit(inner);
      }
    };
    visit("");
    CHECK(40 < fields);
    Json more = whole;
    more["host"]["name"] = "x";
    CHECK(verdict(more) == "host.name: unknown field");
  }

  TEST_CASE("an empty or contradicting field makes a manifest incomplete") {
    struct Row {
      std::function<void(ManifestInputs&)> change;
      const char* expected;
    };
    const std::vector<Row> rows{
        {[](auto& m) { m.task.clear(); }, "identity.task: empty"},
        {[](auto& m) { m.contract = {}; }, "identity.contract: zeros"},
        {[](auto& m) { m.tree_observed.clear(); }, "repository.tree_observed: empty"},
        {[](auto& m) { m.tree_observed = "f00"; },
         "repository.tree_observed: differs from the expected tree"},
        {[](auto& m) { m.tree_expected.clear(); }, "complete"},
        {[](auto& m) { m.sandbox = "docker"; }, "environment.image: empty"},
        {[](auto& m) { m.seed = 1337; },
         "seeds.deviation: another seed than the planned one needs its reason"},
        {[](auto& m) { m.seed = 1337, m.seed_deviation = "earlier study"; }, "complete"},
        {[](auto& m) { m.acceptance.clear(); }, "entrypoints.acceptance: empty"},
        {[](auto& m) { m.attempt.no = AttemptNo(0); },
         "identity.attempt: zero; attempts count from 1"},
        {[](auto& m) { m.started_ms = 0; }, "host.started_ms: not a time"},
        {[](auto& m) { m.lockfiles.clear(); }, "complete"},
    };
    for (const Row& row : rows) {
      ManifestInputs m = sample_inputs();
      row.change(m);
      CHECK(verdict(make_manifest(m)) == row.expected);
    }
  }
}
