#pragma once
// The events of a run directory, one after the other.  Adapter (reads files); any thread.
#include <functional>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/trace/event.h"

namespace proctor {

// In their order, up to a line that is being written.  Errors: of read_file(); kCorrupt,
// "events.jsonl:LINE: WHY", a chain that is broken.
Status each_event(const fs::path& run_dir, const std::function<void(const Event&)>& take);

}  // namespace proctor
