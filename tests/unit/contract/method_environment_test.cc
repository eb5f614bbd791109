// What an agent has for itself: read, part of its method's identity and of no contract's.
#include <doctest/doctest.h>

#include "common/base/subprocess.h"
#include "common/contract/bundle.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/contract_digest.h"
#include "common/contract/host_things.h"
#include "tests/unit/contract/support.h"

namespace proctor {
namespace {

using test::replaced;

const std::string kAgentImage = "tools@sha256:" + std::string(64, 'd');

const std::string kMiniCampaign = R"(name: camp
methods:
  - noop
  - name: mini
    kind: command
    command: mini
    environment:
      image: )" + kAgentImage + R"(
      variables: {MODE: fast}
      secrets: [MINI_KEY]
      toolchains: [{path: /opt/node}]
      network: {allow: ["api.example:443"]}
      setup:
        - pip install mini
        - {script: install.sh, timeout: 90s, network: true, cache: false}
    keep: [traj.json, "logs/*.json", "~/.mini/traj.json"]
budget: {global: "50.00"}
)";

struct ReadCampaign {
  Campaign campaign;
  std::string errors;
};

ReadCampaign read_campaign(const std::string& yaml) {
  Diagnostics out;
  GivenFiles files;
  files.add({"install.sh", 0644, "true\n"});
  const auto document = read_document(yaml, Format::kYaml, "campaign.yaml", out);
  ReadCampaign r;
  if (document) r.campaign = parse_campaign(*document, files, out).campaign;
  r.errors = out.text();
  return r;
}

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("a method's environment is read as it was written") {
    const ReadCampaign r = read_campaign(kMiniCampaign);
    REQUIRE(r.errors == "");
    const Method& m = r.campaign.methods.at(1);
    const MethodEnvironment& e = m.environment;
    CHECK(e.image == kAgentImage);
    CHECK(e.variables.at("MODE") == "fast");
    CHECK(e.secrets == std::vector<std::string>{"MINI_KEY"});
    REQUIRE(e.toolchains.size() == 1);
    CHECK(e.toolchains[0].at == "/opt/node");
    CHECK(e.network.allow == std::vector<std::string>{"api.example:443"});
    REQUIRE(e.setup.size() == 2);
    CHECK(e.setup[0].command == "pip install mini");
    CHECK(e.setup[1].command == "sh \"$PROCTOR_METHOD/install.sh\"");
    CHECK(e.setup[1].timeout == std::chrono::seconds(90));
    CHECK(e.setup[1].network.open);
    CHECK_FALSE(e.setup[1].cache);
    CHECK(m.files.size() == 1);
    CHECK(m.keep == std::vector<std::string>{"traj.json", "logs/*.json", "~/.mini/traj.json"});
    CHECK(r.campaign.methods.at(0).environment.empty());
  }

  TEST_CASE("each part of a method's environment is part of its digest and survives its bundle") {
    const Method all = read_campaign(kMiniCampaign).campaign.methods.at(1);
    const auto opened = open_method_bundle(make_bundle(all), all.digest);
    REQUIRE_MESSAGE(opened.ok(), opened.error().detail);
    CHECK(canonical_form(*opened) == canonical_form(all));
    CHECK(opened->keep == all.keep);
    CHECK(opened->environment.setup[1].network.open);
    for (const auto& [from, to] :
         {std::pair{"MODE: fast", "MODE: slow"},
          std::pair{"secrets: [MINI_KEY]", "secrets: [OTHER_KEY]"},
          std::pair{"/opt/node", "/opt/node20"}, std::pair{"api.example:443", "api.example:80"},
          std::pair{"pip install mini", "pip install mini==2"},
          std::pair{"timeout: 90s", "timeout: 91s"}, std::pair{"traj.json,", "trajectory.json,"}}) {
      CAPTURE(to);
      const ReadCampaign changed = read_campaign(replaced(kMiniCampaign, from, to));
      REQUIRE(changed.errors == "");
      CHECK(changed.campaign.methods.at(1).digest != all.digest);
      CHECK(changed.campaign.methods.at(0).digest ==
            read_campaign(kMiniCampaign).campaign.methods.at(0).digest);
    }
  }

  TEST_CASE("a method without an environment has the digest it always had") {
    Method m;
    m.name = "agent";
    m.kind = Method::Kind::kCommand;
    m.command = "true";
    CHECK(canonical_form(m) ==
          R"({"files":[],"format":1,"method":{"command":"true","kind":"command","name":"agent"}})");
  }

  TEST_CASE("every mistake in a method's environment is named with its place") {
    struct Row {
      const char *from, *to, *expected;
    };
    const Row rows[] = {
        {"secrets: [MINI_KEY]", "secret: [MINI_KEY]", "(did you mean \"secrets\"?)"},
        {"secrets: [MINI_KEY]", "locale: C.UTF-8", "methods[1].environment.locale"},
        {"secrets: [MINI_KEY]", "secrets: [MODE]", "no variable beside it that is called MODE"},
        {"path: /opt/node", "path: /proctor/x", "no part of the sandbox has for itself"},
        {"cache: false", "inputs: [a]", "inputs"},
        {"traj.json,", "../traj.json,", "a file or glob of the workspace"},
        {"traj.json,", "\".git/config\",", "a file or glob of the workspace"},
        {"~/.mini", "~root/.mini", ""},
        {"    command: mini\n    environment:",
         "    variables: {MINI_KEY: x}\n    command: mini\n    "
         "environment:",
         "MINI_KEY either here or in environment.secrets"},
        {"kind: command\n    command: mini", "kind: noop", "only the kind \"command\" has it"}};
    for (const Row& row : rows) {
      CAPTURE(row.to);
      const std::string yaml = replaced(kMiniCampaign, row.from, row.to);
      REQUIRE(yaml != "");
      const std::string errors = read_campaign(yaml).errors;
      CHECK_MESSAGE(errors.find(row.expected) != std::string::npos, errors);
      CHECK((errors.empty() == (std::string(row.expected).empty())));
    }
  }

  TEST_CASE("a container is given secrets and the whole network or none, and nothing else") {
    const auto with = [](const std::string& environment, const std::string& more = "") {
      return read_campaign("name: c\nmethods:\n  - name: m\n    container: {image: " + kAgentImage +
                           ", variables: {MODE: fast}}\n    environment: {" + environment + "}\n" +
                           more + "budget: {global: \"5.00\"}\n");
    };
    const ReadCampaign fine = with("secrets: [A], network: true");
    REQUIRE_MESSAGE(fine.errors == "", fine.errors);
    const Method& m = fine.campaign.methods.at(0);
    CHECK(m.environment.secrets == std::vector<std::string>{"A"});
    CHECK(m.environment.network.open);
    CHECK(open_method_bundle(make_bundle(m), m.digest).ok());
    const std::pair<const char*, const char*> rows[] = {
        {"variables: {A: b}", "secrets and network alone beside a container"},
        {"setup: [\"true\"]", "secrets and network alone beside a container"},
        {"toolchains: [{path: /opt/x}]", "secrets and network alone beside a container"},
        {"network: {allow: [\"a.example:443\"]}", "has the whole network or none"},
        {"secrets: [MODE]", "MODE either here or in container.variables"}};
    for (const auto& [environment, expected] : rows) {
      CAPTURE(std::string(environment));
      const std::string errors = with(environment).errors;
      CHECK_MESSAGE(errors.find(expected) != std::string::npos, errors);
    }
    const std::string kept = with("secrets: [A]", "    keep: [\"~/x\"]\n").errors;
    CHECK_MESSAGE(kept.find("a container has no home") != std::string::npos, kept);
  }

  TEST_CASE("a method's setup and what it keeps count in what a run can cost at most") {
    const Method m = read_campaign(kMiniCampaign).campaign.methods.at(1);
    Diagnostics out;
    const Contract c = test::parse(test::kContractYaml, out);
    const auto wall = std::chrono::milliseconds(1000);
    const Usage plain = worst_case(c, Method{}, wall, 0), all = worst_case(c, m, wall, 0);
    CHECK(all.setup_ms == plain.setup_ms + 600'000 + 90'000);
    CHECK(all.stored_bytes == plain.stored_bytes + 4 * limits::kCheckOutputBytes + kKeptBytes);
    CHECK(all.acceptance_ms == plain.acceptance_ms);
  }

  TEST_CASE("a contract needs its locale and time zone of the host, unless an image has them") {
    using Kind = HostThing::Kind;
    Contract c;
    CHECK(things_of(c).empty());  // every host has the usual ones
    c.environment.locale = "de_DE.UTF-8";
    c.environment.timezone = "Asia/Kolkata";
    CHECK(things_of(c) == std::vector<HostThing>{{Kind::kLocale, "de_DE.UTF-8"},
                                                 {Kind::kTimeZone, "Asia/Kolkata"}});
    CHECK(things_of(c)[0].feature() == "locale:de_DE.UTF-8");
    CHECK(things_of(c)[1].feature() == "timezone:Asia/Kolkata");
    c.environment.image = kAgentImage;
    CHECK(things_of(c).empty());
  }

  TEST_CASE("a host has the locales of the C library and no misspelt one") {
    for (const char* name : {"C", "POSIX", "C.UTF-8"}) CHECK(has_locale(name));
    for (const char* name : {"xx_XX.UTF-8", "C.UTF-9", "../C"}) {
      CAPTURE(name);
      CHECK_FALSE(has_locale(name));
    }
  }

  TEST_CASE("a time zone is UTC, a rule, or a file of the host's") {
    for (const char* name : {"UTC", "EST5EDT", "CET-1CEST", "XYZ+03", "ABC-10"}) {
      CAPTURE(name);
      CHECK(knows_time_zone(name));
    }
    for (const char* name : {"Asia/Calcuta", "Europe", "Nowhere", "", "CE1", "CET-1CE", "CET--1",
                             "CET-123", "/etc/hostname", "../../../etc/hostname"}) {
      CAPTURE(name);
      CHECK_FALSE(knows_time_zone(name));
    }
  }

  TEST_CASE("two networks together reach what each of them does") {
    const NetworkAccess none{}, all{true, {}}, some{false, {"a:1", "b:2"}}, other{false, {"b:2"}};
    CHECK(joined(none, none) == none);
    CHECK(joined(none, other) == other);
    CHECK(joined(other, some) == NetworkAccess{false, {"b:2", "a:1"}});
    CHECK(joined(some, all) == all);
  }
}

}  // namespace proctor
