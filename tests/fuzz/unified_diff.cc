// A diff of a model: what is taken stays in the workspace, and applied it changes as many lines as
// it says.
#include <algorithm>

#include "common/base/files.h"
#include "tests/fuzz/fuzz.h"
#include "worker/tools/text_lines.h"

namespace proctor::fuzz::unified_diff {

void target(std::string_view bytes) {
  const std::string_view old = take_part(bytes, '\0');
  const auto files = read_unified_diff(bytes);
  if (!files.ok()) return;
  PROCTOR_ASSERT(!files->empty() && files->size() <= kDiffFilesMax);
  for (const DiffFile& file : *files) {
    PROCTOR_ASSERT(is_safe_relative(file.path()) && !file.hunks.empty());
    std::size_t added = 0, removed = 0;
    for (const DiffHunk& hunk : file.hunks)
      for (const DiffLine& line : hunk.lines) {
        PROCTOR_ASSERT(std::count(line.text.begin(), line.text.end(), '\n') <= 1);
        if (line.kind == '+') added += line.text.size();
        if (line.kind == '-') removed += line.text.size();
      }
    const auto applied = apply_hunks(file, old);
    if (!applied.ok()) continue;
    PROCTOR_ASSERT(applied->size() + removed == old.size() + added);
  }
}

}  // namespace proctor::fuzz::unified_diff
