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

// Of the lines of events.jsonl: was a path that begins so put back before a check?
inline bool was_put_back(std::string_view events, const std::string& path) {
  for (std::size_t at = 0; at < events.size();) {
    const std::size_t end = std::min(events.find('\n', at), events.size());
    const std::string_view line = events.substr(at, end - at);
    if (contains(line, ".restored") && contains(line, '"' + path)) return true;
    at = end + 1;
  }
  return false;
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
