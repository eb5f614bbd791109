#include "common/contract/campaign_parser.h"

#include <doctest/doctest.h>

#include "common/contract/contract_digest.h"
#include "common/contract/rules.h"
#include "tests/unit/contract/support.h"

namespace proctor {
namespace {
using std::chrono::milliseconds;
using test::kContractYaml;
using test::parse;
using test::replaced;

std::string errors_with(std::string_view from, const std::string& to) {
  Diagnostics out;
  const std::string yaml = replaced(kContractYaml, from, to);
  REQUIRE(yaml != "");
  parse(yaml, out);
  return out.text();
}
}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("a contract with every key is read as it was written") {
    Diagnostics out;
    const Contract c = parse(kContractYaml, out);
    CHECK(out.text() == "");
    CHECK(c.id == "fix-sum");
    CHECK(c.strata.at("type") == "bug_fix");
    CHECK(c.strata.at("language") == "python");
    CHECK(c.environment.variables.at("EMPTY") == "");
    CHECK(c.environment.toolchains.at(0).at == "/opt/go");
    REQUIRE(c.setup.size() == 2);
    CHECK(c.setup[0].network.open);
    CHECK(c.setup[0].timeout == milliseconds(120'000));
    CHECK(c.setup[1].command == "echo ready");
    CHECK_FALSE(c.setup[1].network.any());
    REQUIRE(c.checks.size() == 2);
    CHECK(c.checks[0].gate == Gate::kBuild);
    CHECK(c.checks[1].command == "\"$PROCTOR_CONTRACT/run-tests.sh\"");
    CHECK(c.checks[1].reader == ResultReader::kJunit);
    CHECK(c.acceptance_files.at(0).to == "tests/hidden_test.py");
    CHECK(c.policy.memory_bytes == std::uint64_t{512} << 20);
    CHECK(c.policy.cpus == 1.5);
    CHECK(c.caps.usd == MicroUsd::from_micros(2'500'000));
    CHECK(c.caps.wall == milliseconds(480'000));
    REQUIRE(c.files.size() == 4);
    CHECK(c.files[0].path == "data/input.bin");
    CHECK(c.files[3].mode == 0755);
    CHECK(c.digest == digest_of(c));
    CHECK(c.digest != Digest{});
  }

  TEST_CASE("every mistake in a contract is named with its place") {
    struct Row {
      const char* from;
      const char* to;
      const char* expected;
    };
    const Row rows[] = {
        {"timeout: 90s", "timeuot: 90s",
         "c.yaml:30:5: checks[0].timeuot: found the unknown key \"timeuot\", expected id, command, "
         "script, container, kind, gate, timeout, result, result_file, fail_to_pass, "
         "pass_to_pass, others_may_fail or services (did you mean \"timeout\"?)\n"},
        {"id: fix-sum", "id: Fix Sum",
         "c.yaml:2:5: id: found \"Fix Sum\", expected an id: a-z, 0-9, \".\", \"_\" and \"-\", "
         "beginning with a letter or digit\n"},
        {"timeout: 90s", "timeout: 0s",
         "c.yaml:30:14: checks[0].timeout: found \"0s\", expected a duration of at least 1ms\n"},
        {"timeout: 90s", "timeout: 90",
         "c.yaml:30:14: checks[0].timeout: found \"90\", expected a duration such as 30m, 45s, "
         "1h30m or 1500ms\n"},
        {"    command: make\n", "",
         "c.yaml:27:5: checks[0].command: found nothing, expected a command for /bin/sh, or a "
         "script\n"},
        {"command: make\n", "command:\n",
         "c.yaml:28:5: checks[0].command: found nothing, expected a command for /bin/sh\n"},
        {"command: make\n", "command: make\n    script: run-tests.sh\n",
         "c.yaml:29:13: checks[0].script: found \"run-tests.sh\", expected either a command or a "
         "script\n"},
        {"id: unit", "id: build",
         "c.yaml:31:9: checks[1].id: found \"build\", expected each check's id once\n"},
        {"kind: build", "kind: built",
         "c.yaml:29:11: checks[0].kind: found \"built\", expected build, static, unit, integration "
         "or script (did you mean \"build\"?)\n"},
        {"[tests::sum]", "[a, a]",
         "c.yaml:38:23: checks[1].fail_to_pass[1]: found \"a\", expected each entry once\n"},
        {"[tests::zero]", "[tests::sum]",
         "c.yaml:39:20: checks[1].pass_to_pass[0]: found \"tests::sum\", expected a test id that "
         "is "
         "not in fail_to_pass too\n"},
        {"    result_file: unit.xml\n", "",
         "c.yaml:31:5: checks[1].result_file: found nothing, expected the file in "
         "$PROCTOR_RESULTS that the command writes\n"},
        {"0123456789abcdef0123456789abcdef01234567", "0123456",
         "c.yaml:10:11: repository.commit: found \"0123456\", expected a full commit id: 40 or 64 "
         "lower-case hex digits\n"},
        {"source: ../repos/sum", "source: ext::sh -c id",
         "c.yaml:9:11: repository.source: found \"ext::sh -c id\", expected a path, a URL or a "
         ".bundle file (https, http, ssh, git or file)\n"},
        {"source: ../repos/sum", "source: u:pw@h:x",
         "c.yaml:9:11: repository.source: found \"***@h:x\", expected user@host:path, as ssh takes "
         "no password (ssh://host/a%40b where the path has an @)\n"},
        {"source: ../repos/sum", "source: https://u:1/2@h/x",
         "c.yaml:9:11: repository.source: found \"***@h/x\", expected %2F for a slash in a "
         "password, %20 for a blank, %40 for an @ in a path\n"},
        {"source: ../repos/sum", "source: https://h/x?t=1@2",
         "c.yaml:9:11: repository.source: found \"https://h/x?***\", expected a URL without a "
         "query; a token is written before the host (user:TOKEN@host) or left to a credential "
         "helper of git's (%3F for a ? in a path)\n"},
        {"usd: \"2.50\"", "usd: \"-2.50\"",
         "c.yaml:54:13: caps.usd: found \"-2.50\", expected an amount in USD such as \"5.00\": an "
         "amount cannot be negative\n"},
        {"usd: \"2.50\"", "usd: 12345678901234567",
         "c.yaml:54:13: caps.usd: found \"12345678901234567\", expected an amount in USD such as "
         "\"5.00\": it is above 9007199254.740991\n"},
        {"usd: \"2.50\"", "usd: 1e3",
         "c.yaml:54:13: caps.usd: found \"1e3\", expected an amount in USD such as \"5.00\": only "
         "digits and one point are allowed\n"},
        {"memory: 512MiB", "memory: 512",
         "c.yaml:49:11: policy.memory: found \"512\", expected a size such as 512MiB or 2GiB\n"},
        {"tokens: 100000", "tokens: many",
         "c.yaml:54:29: caps.tokens: found \"many\", expected a whole number from 0 to "
         "9007199254740991\n"},
        {"fix.patch", "../fix.patch",
         "c.yaml:55:18: reference_patch: found \"../fix.patch\", expected a relative path below "
         "this file's folder, without \"..\" and shell characters\n"},
        {"fix.patch", "absent.patch",
         "c.yaml:55:18: reference_patch: found absent.patch: not in the bundle, expected a regular "
         "file of at most 64 MiB in this file's folder\n"},
        {"network: true", "network: \"true\"",
         "c.yaml:24:14: setup[0].network: found \"true\", expected true or false\n"},
        {"LANGUAGE: en", "PROCTOR_X: en",
         "c.yaml:15:15: environment.variables.PROCTOR_X: found \"PROCTOR_X\", expected a "
         "variable's "
         "name: A-Z, a-z, 0-9 and \"_\", not beginning with PROCTOR_\n"},
        {"sandbox: bubblewrap", "sandbox: docker",
         "c.yaml:14:3: environment.image: found nothing, expected an image, by digest or from a "
         "Dockerfile, because the sandbox is docker\n"},
        {"writable: [\"src/**\"]", "writable: [\"../**\"]",
         "c.yaml:46:14: policy.writable[0]: found \"../**\", expected a glob below the workspace "
         "such as \"src/**\", not in .git\n"},
        {"cpus: 1.5", "cpus: -1",
         "c.yaml:53:9: policy.cpus: found \"-1\", expected a non-negative decimal with at most 3 "
         "digits after the point\n"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.to);
      const std::string yaml = replaced(kContractYaml, row.from, row.to);
      REQUIRE(yaml != "");
      Diagnostics out;
      const Contract c = parse(yaml, out);
      CHECK(out.text() == row.expected);
      CHECK(c.digest == Digest{});
    }
  }

  TEST_CASE("a check that is a container is read, mended nowhere and part of the digest") {
    const std::string id = "sha256:" + std::string(64, 'c');
    const std::string text = replaced(
        kContractYaml, "    command: make\n",
        "    container:\n      image: \"sim@" + id +
            "\"\n      entrypoint: [sh, -c]\n      command: [\"it's\", \"\", 5, x]\n"
            "      working_dir: /code/rundir\n      variables: {SIM: icarus, EMPTY: \"\"}\n"
            "      mounts:\n        - {from: src, at: /src, writable: false}\n"
            "        - {from: rtl, at: /code/rtl}\n");
    Diagnostics out;
    const Contract c = parse(text, out);
    REQUIRE(out.text() == "");
    REQUIRE(c.checks[0].container);
    const ProgramContainer& container = *c.checks[0].container;
    CHECK(container.image == "sim@" + id);
    CHECK(container.command == std::vector<std::string>{"it's", "", "5", "x"});
    CHECK(container.variables.at("EMPTY").empty());
    REQUIRE(container.mounts.size() == 2);
    CHECK_FALSE(container.mounts[0].writable);
    CHECK(container.mounts[1].writable);
    CHECK(c.checks[0].command == "sh -c 'it'\\''s' '' 5 x");
    Diagnostics again;
    const Contract same = parse(text, again);
    CHECK(same.digest == c.digest);
    CHECK(parse(replaced(text, "from: rtl", "from: rtl2"), again).digest != c.digest);
  }

  TEST_CASE(
      "a container without an image, with a command beside it or mounts that meet is refused") {
    const auto says = [](const std::string& container, const char* part) {
      Diagnostics out;
      parse(replaced(kContractYaml, "    command: make\n", container), out);
      CHECK_MESSAGE(out.text().find(part) != std::string::npos, out.text());
    };
    says("    container: {command: [x]}\n", "checks[0].container.image: found nothing");
    says("    command: make\n    container: {command: [x]}\n",
         "either a container or a command beside it");
    says("    container: {image: x}\n", "an image by digest");
    says("    container: {mounts: [{from: ../x, at: /x}]}\n", "a path of the workspace");
    says("    container: {mounts: [{from: a, at: x}]}\n", "an absolute path");
    says("    container: {mounts: [{from: a, at: /x}, {from: b, at: /x}]}\n",
         "each place in the container once");
    says("    container: {command: [[x]]}\n", "a word of a command");
    says("    result: tap\n    result_file: x\n    container: {command: [x]}\n",
         "exit_code, because it has a container");
  }

  TEST_CASE("all errors of a contract are reported at once") {
    Diagnostics out;
    parse("id: A\nbriefing: \nchecks: []\nrepositry: {}\n", out);
    CHECK(
        out.text() ==
        "c.yaml:4:1: repositry: found the unknown key \"repositry\", expected $schema, id, title, "
        "briefing, briefing_file, type, strata, repository, environment, setup, "
        "services, checks, acceptance_files, policy, gates, acceptance, rubric, tools, caps, "
        "reference_patch, single_shot or "
        "files (did you mean \"repository\"?)\n"
        "c.yaml:1:5: id: found \"A\", expected an id: a-z, 0-9, \".\", \"_\" and \"-\", beginning "
        "with a letter or digit\n"
        "c.yaml:2:1: briefing: found nothing, expected a text\n"
        "c.yaml:1:1: type: found nothing, expected a word: a-z, 0-9, \"_\" and \"-\", beginning "
        "with a letter\n"
        "c.yaml:1:1: repository: found nothing, expected a mapping with source and commit\n"
        "c.yaml:3:9: checks: found no check, expected a list of at least one check\n");
  }

  TEST_CASE("repositories come by a protocol that is known, or from a path") {
    const auto source = [](const std::string& text) {
      return errors_with("source: ../repos/sum", "source: \"" + text + "\"");
    };
    for (const char* good :
         {"https://h/x.git", "ssh://git@h:22/x", "git@h:x/y.git", "h:x", "file:///x", "git://h/x",
          "http://h/x", "../x.bundle", "/x", "a/b://c"})
      CHECK_MESSAGE(source(good) == "", good);
    for (const char* bad : {"ftp://h/x", "ftps://h/x", "FTP://h/x", "HTTPS://h/x", "rsync://h/x",
                            "://h", "javascript://x", "-x", "ext::sh -c id", "ssh+x://h/x"}) {
      const std::string said = source(bad);
      CHECK_MESSAGE(said.starts_with("c.yaml:9:11: repository.source: found "), said);
      CHECK(said.find("(https, http, ssh, git or file)") != std::string::npos);
    }
  }

  TEST_CASE("nothing of a contract is put into git's own folder") {
    for (const std::string place :
         {".git/hooks/post-checkout", ".git", "a/.git/config", ".GIT/x", ".Git/x", ".git./x",
          ".git /x", "git~1/x", "GIT~1/x", ".git::$INDEX_ALLOCATION/x", "sub/.git"}) {
      CAPTURE(place);
      CHECK(errors_with("\"src/**\"", "\"" + place + "\"").find("policy.writable[0]: found ") !=
            std::string::npos);
      CHECK(errors_with("\"tests/**\"", "\"" + place + "\"").find("policy.protected[0]: found ") !=
            std::string::npos);
      CHECK(errors_with("to: tests/hidden_test.py", "to: \"" + place + "\"")
                .find("acceptance_files[0].to: found ") != std::string::npos);
    }
    for (const std::string place :
         {".github/x", ".gitattributes", ".gitignore", "git/x", "x.git/y", "git~2/x"})
      CHECK_MESSAGE(errors_with("\"tests/**\"", "\"" + place + "\"") == "", place);
  }

  TEST_CASE("a toolchain never lies over what a sandbox has for itself") {
    const auto toolchain = [](const std::string& item) {
      return errors_with("{path: /usr/lib/go, at: /opt/go}", item);
    };
    for (const std::string place :
         {"/proctor", "/proctor/home", "/proctor/contract/x", "/workspace", "/workspace/a", "/proc",
          "/proc/self", "/sys", "/dev", "/dev/shm", "/tmp", "/run", "/home", "/home/proctor",
          "/etc", "/etc/passwd", "/sbin/docker-init", "/var/tmp", "/var/tmp/go"}) {
      CAPTURE(place);
      CHECK(toolchain("{path: " + place + ", at: /opt/elsewhere}") == "");
      CHECK(toolchain("{path: /opt/go, at: " + place + "}")
                .find(": environment.toolchains[0].at: found ") != std::string::npos);
      CHECK(toolchain("{path: " + place + "}").find(": environment.toolchains[0].path: found ") !=
            std::string::npos);
    }
    for (const std::string place : {"/opt/go", "/proctors", "/procs", "/tmp/x", "/etc/ssl/certs",
                                    "/var/lib/rustup", "/usr/local/go", "/devel"})
      CHECK_MESSAGE(toolchain("{path: " + place + "}") == "", place);
  }

  TEST_CASE(
      "isolation in user space needs an image and changes the digest only where it is asked") {
    Diagnostics out;
    const std::string image = "docker\n  image: sha256:" + std::string(64, 'a');
    const std::string with_image = replaced(kContractYaml, "bubblewrap", image.c_str());
    const auto isolated = [](std::string_view yaml, const char* word) {
      return replaced(yaml, "cpus: 1.5", ("cpus: 1.5\n  isolation: " + std::string(word)).c_str());
    };
    const Contract plain = parse(with_image, out);
    const Contract kernel = parse(isolated(with_image, "kernel"), out);
    const Contract userspace = parse(isolated(with_image, "userspace"), out);
    CHECK(out.text() == "");
    CHECK(plain.policy.isolation == Isolation::kKernel);
    CHECK(kernel.digest == plain.digest);
    CHECK(userspace.policy.isolation == Isolation::kUserspace);
    CHECK(userspace.digest != plain.digest);
    parse(isolated(kContractYaml, "userspace"), out);
    CHECK(out.text().find("policy.isolation: found userspace without an image, expected kernel, or "
                          "environment.image: an image by digest, which workers with runsc run") !=
          std::string::npos);
    CHECK(stronger(Isolation::kKernel, Isolation::kUserspace) == Isolation::kUserspace);
    CHECK(stronger(Isolation::kUserspace, Isolation::kKernel) == Isolation::kUserspace);
    CHECK(stronger(Isolation::kKernel, Isolation::kKernel) == Isolation::kKernel);
  }

  TEST_CASE("a script is run by what its first line asks for, executable or not") {
    struct Row {
      const char* script;
      const char* by;
    };
    for (const Row& row :
         {Row{"echo x\n", "sh"}, Row{"", "sh"}, Row{"#!/bin/sh\nx", "sh"},
          Row{"#! /bin/sh \nx", "sh"}, Row{"#!/usr/bin/env sh\n", "sh"}, Row{"#!/bin/sh", "sh"},
          Row{"#!/usr/bin/env python3\nprint(1)\n", "'/usr/bin/env' 'python3'"},
          Row{"#!/usr/bin/env python3\r\nprint(1)\n", "'/usr/bin/env' 'python3'"},
          Row{"#!/bin/bash\n", "'/bin/bash'"}, Row{"#!/bin/sh -eu\n", "'/bin/sh' '-eu'"},
          Row{"#!/usr/bin/env -S node --x y\n", "'/usr/bin/env' '-S node --x y'"}}) {
      CAPTURE(row.script);
      CHECK(interpreter_of(row.script) == std::string(row.by));
    }
    for (const char* none : {"#!\n", "#!python3\n", "#!/bin/a'b\n", "#!/bin/\x01\n"})
      CHECK_FALSE(interpreter_of(none).has_value());
    CHECK_FALSE(interpreter_of("#!/" + std::string(300, 'x')).has_value());
  }
}
}  // namespace proctor
