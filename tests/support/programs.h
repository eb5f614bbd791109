#pragma once
// The real programs, and waiting for what they do.
// Their paths are the build's; the environment variable PROCTOR_BIN_DIR names another folder.
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "common/base/subprocess.h"

namespace proctor::testing {

template <class T>
T must(Result<T> result) {
  if (!result.ok()) FAIL(result.error().detail);
  return std::move(result).value();
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

fs::path proctor_program();
fs::path worker_program();

// Runs `proctor ARGS` to its end.
CommandOutcome proctor(std::vector<std::string> args,
                       std::chrono::milliseconds timeout = std::chrono::seconds(300));

// Runs any program to its end and requires success; its standard output.
std::string output_of(std::vector<std::string> argv, const fs::path& cwd = {});

// Asks every 20 ms until the answer is yes or the time is over.  The last answer.
bool eventually(const std::function<bool()>& asked,
                std::chrono::milliseconds within = std::chrono::seconds(180));

}  // namespace proctor::testing
