#pragma once
// What an agent changed, as upstream's agent_changes.patch tells it: the four folders one after the
// other, whole new and deleted files, difflib's diffs of the others, no mode bits and no mark of a
// missing newline.  Not a patch that git would always take.  Pure; any thread.  Source: CVDP 6.3.
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace proctor::cvdp {

struct AgentChange {
  std::string path;                          // "rtl/a.sv"
  std::optional<std::string> before, after;  // bytes; nothing: no such file
};
// Empty: nothing changed in those folders.  Files of one folder come in the order of their names.
// kExhausted: a file is beyond difflib's way of comparing.
Result<std::string> agent_changes(std::span<const AgentChange> changes);

// bytes.decode("utf-8", "replace") with Python's universal newlines.
std::string text_of_bytes(std::string_view bytes);

}  // namespace proctor::cvdp
