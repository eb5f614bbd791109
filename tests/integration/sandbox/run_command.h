#pragma once
// One command in a sandbox of a bench, and what it said.
#include <doctest/doctest.h>

#include <stop_token>

#include "tests/integration/sandbox/engine_under_test.h"

namespace proctor::testing {

struct Said {
  ExecOutcome outcome;
  std::string out, err;
};

inline ExecSpec exec_of(Bench& bench, const std::string& command) {
  ExecSpec exec;
  exec.command = command;
  exec.timeout = std::chrono::milliseconds(180'000);
  exec.stdout_file = bench.scratch() / "out";
  exec.stderr_file = bench.scratch() / "err";
  return exec;
}

inline Said run(Bench& bench, const SandboxSpec& spec, const ExecSpec& exec,
                std::stop_token cancel = {}) {
  auto sandbox = bench.engine().open(spec);
  if (!sandbox.ok()) FAIL(sandbox.error().detail);
  auto outcome = (*sandbox)->run(exec, cancel);
  if (!outcome.ok()) FAIL(outcome.error().detail);
  return Said{*outcome, read_file(exec.stdout_file, std::size_t{64} << 20).value(),
              read_file(exec.stderr_file, std::size_t{64} << 20).value()};
}

inline Said run(Bench& bench, const std::string& command) {
  return run(bench, bench.spec(), exec_of(bench, command));
}

// Processes of this machine, in any namespace, that have `mark` in their command line.
inline int processes_with(const std::string& mark) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto line = read_file(entry.path() / "cmdline", 1 << 16);
    if (line.ok() && line->find(mark) != std::string::npos) ++count;
  }
  return count;
}

}  // namespace proctor::testing
