#pragma once
// A contract in full, for tests that change one thing about it.
#include <string>
#include <string_view>

#include "common/contract/campaign_parser.h"

namespace proctor::test {

inline constexpr std::string_view kContractYaml = R"(# every key once
id: fix-sum
title: The sum is one too small
type: bug_fix
briefing: |
  sum(2, 2) returns 3.
strata: {language: python, runtime: fast, dependencies: none}
repository:
  source: ../repos/sum
  commit: 0123456789abcdef0123456789abcdef01234567
  tree: 1123456789abcdef0123456789abcdef01234567
  submodules: false
environment:
  sandbox: bubblewrap
  variables: {LANGUAGE: en, EMPTY: ""}
  locale: C.UTF-8
  timezone: UTC
  secrets: [TEST_TOKEN]
  toolchains:
    - {path: /usr/lib/go, at: /opt/go}
setup:
  - command: make deps
    timeout: 2m
    network: true
  - echo ready
checks:
  - id: build
    command: make
    kind: build
    timeout: 90s
  - id: unit
    script: run-tests.sh
    kind: unit
    gate: functional
    timeout: 5m
    result: junit
    result_file: unit.xml
    fail_to_pass: [tests::sum]
    pass_to_pass: [tests::zero]
    others_may_fail: true
acceptance_files:
  - from: hidden_test.py
    to: tests/hidden_test.py
policy:
  network: false
  writable: ["src/**"]
  protected: ["tests/**"]
  wall: 10m
  memory: 512MiB
  processes: 64
  disk: 1GiB
  cpu: 5m
  cpus: 1.5
caps: {usd: "2.50", tokens: 100000, tool_calls: 50, failed_acceptance_cycles: 3, wall: 8m}
reference_patch: fix.patch
files: [data/input.bin]
)";

// Put before the checks of that contract.
inline constexpr std::string_view kServices = R"(services:
  - name: web
    script: run-tests.sh
    variables: {PORT: 8080}
    depends_on: [db]
    ready: {port: 8080, interval: 50ms, timeout: 20s}
    memory: 64MiB
    processes: 8
  - name: db
    command: ./db
    ready: {command: ./db ping}
  - name: log-2
    command: ./log
checks:
)";

inline GivenFiles given_files() {
  GivenFiles files;
  files.add({"run-tests.sh", 0755, "#!/bin/sh\nexit 0\n"});
  files.add({"hidden_test.py", 0644, "assert True\n"});
  files.add({"fix.patch", 0644, "--- a\n+++ b\n"});
  files.add({"data/input.bin", 0644, std::string("\0\xFF\x01", 3)});
  return files;
}

inline Contract parse(std::string_view yaml, Diagnostics& out,
                      const GivenFiles& files = given_files()) {
  const auto document = read_document(yaml, Format::kYaml, "c.yaml", out);
  return document ? parse_contract(*document, files, out) : Contract{};
}

// `text` with the first `what` replaced; "" as a sign that it was not there.
inline std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  if (at == std::string_view::npos) return "";
  std::string out(text);
  out.replace(at, what.size(), with);
  return out;
}

}  // namespace proctor::test
