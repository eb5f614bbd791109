#pragma once
// What a tool came to: what its caller is told, and what the trace keeps of it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/json.h"

namespace proctor {

struct FileChange {
  std::string path;
  std::optional<Digest> before, after;  // nothing: there was, or is, no file
};

struct ToolOutcome {
  std::string text;
  bool failed = false;
  std::optional<int> exit{};  // of a program
  std::vector<FileChange> changes{};
};

inline ToolOutcome tool_failure(std::string text) {
  ToolOutcome out;
  out.text = std::move(text);
  out.failed = true;
  return out;
}

}  // namespace proctor
