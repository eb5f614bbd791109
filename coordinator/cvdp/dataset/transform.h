#pragma once
// Diffs, an agent's changes and the two shapes of records, as upstream's tools make them.
// Pure; any thread.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "coordinator/cvdp/dataset/record.h"

namespace proctor::cvdp {
// Diffs as the upstream tool makes and applies them, its mistakes included: it applies without
// comparing the context, takes a removed line that begins with "--" for a header, and says nothing
// of most of what it does not do.  Verdicts depend on these bytes.  A patch that is
// to be verified needs git.  Source: CVDP 3.1-3.4.

// From `before` (empty: a new file) to `after`.  kExhausted: too long to compare.
Result<std::string> create_patch(std::string_view before, std::string_view after,
                                 std::string_view path);

struct Applied {
  std::string text;
  std::vector<std::string> warnings;  // what upstream prints, a line each
};
// kInvalid: a hunk header upstream cannot read (it then keeps the old text), kExhausted: too much
// to apply.
Result<Applied> apply_patch(std::string_view text, std::string_view patch);

// The changes of an agent, as upstream's agent_changes.patch tells them: the four folders one after
// the other, whole new and deleted files, difflib's diffs of the others, no mode bits and no mark
// of a missing newline.  It is a patch that git would not always take.  Source: CVDP 6.3.

struct AgentChange {
  std::string path;                          // "rtl/a.sv"
  std::optional<std::string> before, after;  // bytes; nothing: no such file
};
// Empty: nothing changed in those folders.  Files of one folder come in the order of their names.
// kExhausted: a file is beyond difflib's way of comparing.
Result<std::string> agent_changes(std::span<const AgentChange> changes);

// bytes.decode("utf-8", "replace") with Python's universal newlines.
std::string text_of_bytes(std::string_view bytes);

// A record of one shape as a record of the other, as upstream's --force-agentic and --force-copilot
// make it: the same bytes in the file.  Source: CVDP 3.1, 3.2, 3.4.

// A part that the other shape cannot hold.
struct Loss {
  std::string field;
  std::string text;
};

struct Transformed {
  Value value;
  bool changed = false;  // it was of the other shape
  std::vector<std::string> warnings;
};

// `value` must be a mapping; every member may be of any kind, wrong ones are taken as absent and
// named in `warnings`.  A record that has the shape already comes back as it is.
// kExhausted: a diff that takes too long.
Result<Transformed> transform(Value value, Shape to);

// The parts that a round trip through the other shape would not bring back, found by making it.
Result<std::vector<Loss>> losses_of(const Value& value, Shape to);

// The file's name upstream writes: stem.agentic_transformed.jsonl.
std::string transformed_name(std::string_view file_name, Shape to);
}  // namespace proctor::cvdp
