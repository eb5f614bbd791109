#pragma once
// Diffs as the upstream tool makes and applies them, its mistakes included: it applies without
// comparing the context, takes a removed line that begins with "--" for a header, and says nothing
// of most of what it does not do.  Verdicts depend on these bytes.  Whoever wants a patch that is
// verified uses git.  Pure; any thread.  Source: CVDP 3.1-3.4.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace proctor::cvdp {

// From `before` (empty: a new file) to `after`.  kExhausted: too long to compare.
Result<std::string> create_patch(std::string_view before, std::string_view after,
                                 std::string_view path);

struct Applied {
  std::string text;
  std::vector<std::string> warnings;   // what upstream prints, a line each
  bool reads_headers_in_body = false;  // a removed "--..." or added "++..." line was left out
};
// kInvalid: a hunk header upstream cannot read (it then keeps the old text), kExhausted: too much
// to apply.
Result<Applied> apply_patch(std::string_view text, std::string_view patch);

}  // namespace proctor::cvdp
