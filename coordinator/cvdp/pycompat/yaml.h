#pragma once
// Settings files and YAML as upstream's Python reads and writes them.  Pure; any thread.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cvdp {
// A file of settings as upstream reads it, and which of them `proctor cvdp` knows: others that
// are there (PATH, LD_PRELOAD) are left out.  Reading never fails.  Source: CVDP 2.4.

// KEY=VALUE a line, blanks round both dropped, one pair of matching quotes too; lines that begin
// with "#", and lines without "=", are none.  When a key comes twice the first counts.
std::vector<std::pair<std::string, std::string>> read_dotenv(std::string_view text);

// YAML as PyYAML reads (safe_load, YAML 1.1 scalars) and dumps it (sorted keys, block style, folded
// at 80 columns, ASCII).  Reading is strict and bounded (common/contract/document.h): anchors,
// aliases, tags and keys given twice are refused.  Source: CVDP 4.3.

// kInvalid, with line and column.  `bytes_max`: the bounds are those of a record; 0: of a file that
// is part of one.
inline constexpr std::size_t kRecordBytes = std::size_t{256} << 20;
Result<Value> read_yaml(std::string_view text, const std::string& file, std::size_t bytes_max = 0);
// The value of a plain scalar: null, a truth value, a number, else text.
Value plain_scalar(std::string_view text);
// With a newline at the end.
std::string write_yaml(const Value& value);
}  // namespace proctor::cvdp
