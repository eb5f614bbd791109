#include <doctest/doctest.h>

#include "common/contract/bundle.h"
#include "common/contract/contract_digest.h"
#include "tests/unit/contract/support.h"

namespace proctor {
namespace {

using std::chrono::milliseconds;
using test::kContractYaml;
using test::kServices;
using test::parse;
using test::replaced;

const std::string kImage = "sha256:" + std::string(64, 'c');

std::string served() {
  return replaced(kContractYaml, "checks:\n", kServices);
}

std::vector<std::string> names_of(const Contract& c, std::size_t check) {
  std::vector<std::string> out;
  for (const std::size_t i : services_of(c.services, c.checks.at(check)))
    out.push_back(c.services[i].name);
  return out;
}

void refused(const std::string& yaml, const std::string& what) {
  Diagnostics out;
  parse(yaml, out);
  CAPTURE(what);
  CHECK_MESSAGE(out.text().find(what) != std::string::npos, out.text());
}

}  // namespace

TEST_SUITE("contract services") {
  TEST_CASE("services are read as they were written and are part of the digest") {
    Diagnostics out;
    const Contract c = parse(served(), out);
    REQUIRE(out.text() == "");
    REQUIRE(c.services.size() == 3);
    const Service& web = c.services[0];
    CHECK(web.name == "web");
    CHECK(web.command == "\"$PROCTOR_CONTRACT/run-tests.sh\"");
    CHECK(web.variables.at("PORT") == "8080");
    CHECK(web.depends_on == std::vector<std::string>{"db"});
    CHECK(web.ready.port == 8080);
    CHECK(web.ready.interval == milliseconds(50));
    CHECK(web.ready.timeout == milliseconds(20'000));
    CHECK(web.memory_bytes == std::uint64_t{64} << 20);
    CHECK(web.processes == 8);
    CHECK(c.services[1].ready.command == "./db ping");
    CHECK(c.services[1].ready.timeout == milliseconds(60'000));
    CHECK_FALSE(c.services[2].memory_bytes);
    CHECK(runs_workspace(web));
    Diagnostics plain_out;
    const Contract plain = parse(kContractYaml, plain_out);
    CHECK(plain.digest != c.digest);
    for (const auto& [from, to] :
         {std::pair{"PORT: 8080", "PORT: 80"}, std::pair{"interval: 50ms", "interval: 60ms"},
          std::pair{"memory: 64MiB", "memory: 65MiB"}, std::pair{"processes: 8", "processes: 9"},
          std::pair{"./db ping", "./db pong"}, std::pair{"depends_on: [db]", "depends_on: []"},
          std::pair{"    command: make\n", "    command: make\n    services: []\n"}}) {
      CAPTURE(to);
      Diagnostics other;
      CHECK(parse(replaced(served(), from, to), other).digest != c.digest);
      CHECK(other.text() == "");
    }
    const auto opened = open_contract_bundle(make_bundle(c, {}), c.digest);
    REQUIRE(opened.ok());
    CHECK(canonical_form(opened->contract) == canonical_form(c));
  }

  TEST_CASE("the developer's tests are the contract's, and nothing of the judge is in them") {
    const std::string with = std::string(kContractYaml) +
                             std::string(
                                 "tools:\n  tests:\n    - {name: unit, command: make test}\n"
                                 "    - {name: lint, command: make lint}\n");
    Diagnostics out, plain;
    const Contract c = parse(with, out);
    REQUIRE(out.text() == "");
    REQUIRE(c.suites.size() == 2);
    CHECK(c.suites[1].name == "lint");
    CHECK(c.suites[1].command == "make lint");
    CHECK(parse(kContractYaml, plain).digest != c.digest);
    CHECK(parse(replaced(with, "make lint", "make all"), plain).digest != c.digest);
    const auto opened = open_contract_bundle(make_bundle(c, {}), c.digest);
    REQUIRE(opened.ok());
    CHECK(canonical_form(opened->contract) == canonical_form(c));
    refused(replaced(with, "make lint", "sh $PROCTOR_CONTRACT/a"), "tools.tests[1].command");
    refused(replaced(with, "name: lint", "name: unit"), "tools.tests[1].name");
    refused(replaced(with, ", command: make lint", ""), "tools.tests[1].command");
  }

  TEST_CASE("a check has the services it names and what they depend on, in the order to start") {
    struct Row {
      const char* says;
      std::vector<std::string> names;
    };
    const Row rows[] = {{"", {"db", "web", "log-2"}},
                        {"    services: []\n", {}},
                        {"    services: [web]\n", {"db", "web"}},
                        {"    services: [log-2, db]\n", {"db", "log-2"}}};
    for (const Row& row : rows) {
      CAPTURE(row.says);
      Diagnostics out;
      const Contract c = parse(
          replaced(served(), "    command: make\n", "    command: make\n" + std::string(row.says)),
          out);
      CHECK(out.text() == "");
      CHECK(names_of(c, 0) == row.names);
    }
    // The room for evidence grows with them.
    Diagnostics out;
    CHECK(acceptance_worst_case(parse(kContractYaml, out), 0).stored_bytes +
              2 * 2 * 3 * (kServiceOutputBytes + kReadyOutputBytes) ==
          acceptance_worst_case(parse(served(), out), 0).stored_bytes);
  }

  TEST_CASE("a service in an image runs the workspace's code only where it is shown some") {
    Diagnostics out;
    const std::string in_image = replaced(
        replaced(served(), "sandbox: bubblewrap\n",
                 "sandbox: docker\n  image: \"base@" + kImage + "\"\n"),
        "    command: ./log\n",
        "    container:\n      image: \"db@" + kImage + "\"\n      command: [serve, \"a b\"]\n");
    const Contract c = parse(in_image, out);
    REQUIRE(out.text() == "");
    CHECK_FALSE(runs_workspace(c.services[2]));
    CHECK(c.services[2].command == "serve 'a b'");
    const Contract shown =
        parse(replaced(in_image, "      command: [serve, \"a b\"]\n",
                       "      mounts: [{from: src, at: /src, writable: false}]\n"),
              out);
    REQUIRE(out.text() == "");
    CHECK(runs_workspace(shown.services[2]));
    CHECK(shown.digest != c.digest);
    const auto opened = open_contract_bundle(make_bundle(shown, {}), shown.digest);
    CHECK(opened.ok());
  }

  TEST_CASE("every mistake in a service is named with its place") {
    const std::string text = served();
    struct Row {
      const char* from;
      const char* to;
      const char* what;
    };
    const Row rows[] = {
        {"name: web", "name: Web", "services[0].name: found \"Web\", expected a host's name"},
        {"name: web", "name: -web", "expected a host's name"},
        {"name: web", "name: sandbox", "expected a host's name"},
        {"name: web", "name: db",
         "services[1].name: found \"db\", expected each service's name once"},
        {"  - name: web\n", "  - nmae: web\n", "found the unknown key \"nmae\""},
        {"    command: ./log\n", "", "services[2]"},
        {"depends_on: [db]", "depends_on: [dbx]", "services[0].depends_on: found \"dbx\""},
        {"depends_on: [db]", "depends_on: [web]", "services that wait for each other: web"},
        {"    command: ./db\n", "    command: ./db\n    depends_on: [log-2, web]\n",
         "services that wait for each other: web, db"},
        {"port: 8080", "port: 70000", "services[0].ready.port"},
        {"{port: 8080,", "{port: 8080, command: x,", "either a port or a command beside it"},
        {"{port: 8080, ", "{", "services[0].ready.port"},
        {"interval: 50ms", "interval: 1ms", "a duration of at least 10ms"},
        {"memory: 64MiB", "memory: 64", "services[0].memory"},
        {"processes: 8\n", "processes: 0\n", "services[0].processes"},
        {"    command: make\n", "    command: make\n    services: [log]\n",
         "checks[0].services: found \"log\""},
        {"network: false\n", "network: true\n",
         "checks[0].services: found services under the whole network"},
        {"sandbox: bubblewrap", "sandbox: none", "services without isolation"},
        {"    command: ./log\n", "    command: ./log\n    container: {command: [x]}\n",
         "either a container or a command beside it"},
        {"    command: ./log\n", "    container: {command: [x]}\n",
         "services[2].container.image: found nothing"}};
    for (const Row& row : rows) refused(replaced(text, row.from, row.to), row.what);
    refused(replaced(text, "    command: ./log\n", "    container: {image: \"" + kImage + "\"}\n"),
            "service log-2 in an image, expected none, as its check has");
    refused(replaced(text, "    command: make\n", "    container: {image: \"" + kImage + "\"}\n"),
            "service web without an image, expected an image for it, as its check has");
    std::string many = "services:\n";
    for (int i = 0; i < 17; ++i) many += "  - {name: s" + std::to_string(i) + ", command: x}\n";
    refused(replaced(kContractYaml, "checks:\n", many + "checks:\n"), "at most 16 services");
  }
}

}  // namespace proctor
