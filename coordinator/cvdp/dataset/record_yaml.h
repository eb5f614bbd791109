#pragma once
// Records as YAML that people read and edit, one document each: texts of several lines are blocks.
// Every record comes back as it was, which is looked at when it is written.
// Pure; any thread.  Source: CVDP 9.8.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "coordinator/cvdp/pycompat/values.h"

namespace proctor::cvdp {

// With "---" in front.  kInvalid: it has what YAML 1.1 reads otherwise (1e5 is a text there).
Result<std::string> record_yaml(const Value& record);

// The documents of a file, and the line each begins at.  No block of ours has "---" at the
// beginning of a line.
struct YamlDocument {
  std::uint64_t line = 1;
  std::string_view text;
};
std::vector<YamlDocument> split_documents(std::string_view text);

}  // namespace proctor::cvdp
