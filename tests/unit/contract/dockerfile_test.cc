#include "common/contract/dockerfile.h"

#include <doctest/doctest.h>

#include "common/contract/bundle.h"
#include "common/contract/contract_digest.h"
#include "tests/unit/contract/support.h"

namespace proctor {
namespace {

using test::kContractYaml;
using test::parse;
using test::replaced;

const std::string kOne = "sha256:" + std::string(64, 'a');
const std::string kTwo = "tools:1@sha256:" + std::string(64, 'b');

const std::string kDockerfile = "# escape=`\nARG WORD\nfrom " + kOne +
                                " AS Made\nRUN a `\n  # FROM nobody\n  FROM " + kOne +
                                "\nFROM made\nCOPY --from=MADE /a /a\nCOPY --from=0 /a /b\nFROM " +
                                kTwo + "\nADD tool /tool\nFROM scratch";

// A contract whose image is built, of these files.
std::string built(const std::string& files = "[image/tool]", const std::string& more = "") {
  return replaced(kContractYaml, "  sandbox: bubblewrap\n",
                  "  image:\n    dockerfile: image/Dockerfile\n    files: " + files + "\n" + more);
}

GivenFiles with_dockerfile(const std::string& text, const std::string& tool = "a tool\n") {
  GivenFiles files = test::given_files();
  files.add({"image/Dockerfile", 0644, text});
  files.add({"image/tool", 0755, tool});
  files.add({"image/.dockerignore", 0644, "tool\n"});
  return files;
}

std::string errors_of(const std::string& yaml, const GivenFiles& files) {
  Diagnostics out;
  parse(yaml, out, files);
  return out.text();
}

Contract contract_of(const std::string& yaml, const GivenFiles& files) {
  Diagnostics out;
  Contract c = parse(yaml, out, files);
  REQUIRE_MESSAGE(out.text() == "", out.text());
  return c;
}

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("the bases of a Dockerfile are read over lines that go on, and stages are none") {
    const DockerfileFacts facts = look_at_dockerfile(kDockerfile);
    for (const DockerfileFault& fault : facts.faults) FAIL_CHECK(fault.found);
    CHECK(facts.bases == std::vector<std::string>{kOne, kTwo});
    const std::string ours =
        dockerfile_for(kDockerfile, {{kOne, "sha256:1"}, {kTwo, "sha256:2"}}, "k=v");
    CHECK(ours ==
          "# escape=`\nARG WORD\nFROM sha256:1 AS Made\nLABEL k=v\nRUN a `\n  # FROM nobody\n"
          "  FROM " +
              kOne +
              "\nFROM made\nLABEL k=v\nCOPY --from=MADE /a /a\nCOPY --from=0 /a /b\n"
              "FROM sha256:2\nLABEL k=v\nADD tool /tool\nFROM scratch\nLABEL k=v\n");
  }

  TEST_CASE("what an engine would fetch by itself is refused with its line") {
    struct Row {
      std::string text;
      std::size_t line;
      const char* expected;
    };
    const std::string from = "FROM " + kOne + "\n";
    const Row rows[] = {
        {"", 1, "an image to begin with"},
        {"RUN a\n" + from, 1, "FROM first"},
        {"FROM debian:12\n", 1, "an image by digest"},
        {"\n# x\nFROM $BASE\n", 3, "an image by digest"},
        {"FROM later\nFROM " + kOne + " AS later\n", 1, "an image by digest"},
        {"FROM --platform=arm64 " + kOne + "\n", 1, "without options"},
        {from + "COPY --from=alpine:3 /x /x\n", 2, "a stage before it"},
        {from + "COPY --from=0 /x /x\n", 2, "a stage before it"},
        {from + "COPY --from=$X /x /x\n", 2, "a stage before it"},
        {from + "ADD \\\n https://example.org/x /x\n", 2, "files beside the Dockerfile"},
        {from + "add [\"http://example.org/x\", \"/x\"]\n", 2, "files beside the Dockerfile"},
        {from + "ADD $WHERE /x\n", 2, "files beside the Dockerfile"},
        {from + "ADD git@example.org:x /x\n", 2, "files beside the Dockerfile"},
        {from + "ONBUILD ADD x /x\n", 2, "no ONBUILD"},
        {from + "RUN --network=host true\n", 2, "without options"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.text);
      const DockerfileFacts facts = look_at_dockerfile(row.text);
      REQUIRE(!facts.faults.empty());
      CHECK(facts.faults[0].line == row.line);
      CHECK_MESSAGE(facts.faults[0].expected.find(row.expected) != std::string::npos,
                    facts.faults[0].expected);
    }
  }

  TEST_CASE("an image that is built is named by all that it is made of") {
    const GivenFiles files = with_dockerfile(kDockerfile);
    const std::string more = "    arguments: {WORD: hello}\n    network: true\n    timeout: 5m\n";
    const Contract c = contract_of(built("[image/tool]", more), files);
    REQUIRE(c.environment.build);
    const ImageBuild& build = *c.environment.build;
    CHECK(c.environment.image == "proctor-build@sha256:" + build.inputs.hex());
    CHECK(build.bases == std::vector<std::string>{kOne, kTwo});
    CHECK(build.name_of("image/tool") == "tool");
    CHECK(build.network);
    CHECK(build.timeout == std::chrono::minutes(5));
    // The worker that gets it reads the same, and one that knows no builds refuses it.
    const auto there = open_contract_bundle(make_bundle(c, "/b"), c.digest);
    REQUIRE_MESSAGE(there.ok(), there.error().detail);
    CHECK(there->contract.environment.build->inputs == build.inputs);
    // Time alone makes no other image, but another contract.
    const Contract later = contract_of(
        built("[image/tool]", "    arguments: {WORD: hello}\n    network: true\n"), files);
    CHECK(later.environment.image == c.environment.image);
    CHECK(later.digest != c.digest);
    const Contract others[] = {
        contract_of(built("[image/tool]"), files),
        contract_of(built("[image/tool]", "    network: true\n"), files),
        contract_of(built("[]", more), files),
        contract_of(built("[image/tool]", more), with_dockerfile(kDockerfile + "\n")),
        contract_of(built("[image/tool]", more), with_dockerfile(kDockerfile, "another\n")),
    };
    for (const Contract& other : others) CHECK(other.environment.build->inputs != build.inputs);
  }

  TEST_CASE("an image that is built holds neither what judges nor what its folder has not") {
    const GivenFiles files = with_dockerfile("FROM " + kOne + "\n");
    const auto refused = [&](const std::string& yaml, const std::string& what) {
      CAPTURE(what);
      const std::string errors = errors_of(yaml, files);
      CHECK_MESSAGE(errors.find(what) != std::string::npos, errors);
    };
    refused(built("[run-tests.sh]"), "a file in the folder of the Dockerfile or below it");
    refused(built("[image/.dockerignore]"), "files lists all that is there");
    refused(replaced(built(), "dockerfile: image/Dockerfile", "dockerfile: run-tests.sh"),
            "run-tests.sh, line 2: EXIT 0");
    refused(replaced(built(), "from: hidden_test.py", "from: image/tool"),
            "no file of the acceptance: the agent works in this image");
    refused(replaced(built(), "reference_patch: fix.patch", "reference_patch: image/tool"),
            "no file of the acceptance");
    refused(replaced(built(), "  network: false\n", "  isolation: userspace\n"),
            "built from a Dockerfile by a Docker Engine");
    refused(replaced(built(), "  image:\n", "  sandbox: bubblewrap\n  image:\n"),
            "no image in this sandbox");
    refused(replaced(built(), "dockerfile: image/Dockerfile", "network: true"),
            "environment.image.dockerfile");
  }
}

}  // namespace proctor
