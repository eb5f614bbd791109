#pragma once
// A patch out of what an agent left: here, or, where that is much, in a process of its own with
// limits on its CPU time and memory, so that nobody's tree takes the worker's.  Blocking; one
// thread for each extraction.
// Fails like scan_changes and make_patch; kExhausted also beyond the limits of the process, which
// say the same of the tree; kUnavailable where the process itself could not be had.
#include <chrono>
#include <cstdint>

#include "worker/workspace/changes.h"
#include "worker/workspace/workspace.h"

namespace proctor {
struct Extraction {
  Snapshot snapshot;  // its `tree_dir`
  fs::path dir;       // see ScanInput
  WorkspaceKind kind;
  fs::path setup{};
  const CopiedFiles* copied = nullptr;
  ObjectId content;
  std::size_t bytes_max = 0;
  std::vector<std::string> kept{};  // globs: wanted though git ignores it
};

Result<Patch> extract_here(const Extraction& what, TreeCache& folders);

// Beyond these a tree is much: what is less costs about as much as a process does.
inline constexpr std::uint64_t kMuchBytes = std::uint64_t{8} << 20, kMuchFiles = 2'000;

// `scratch`: a folder of the caller's for what goes to and fro.
Result<Patch> extract_apart(const Extraction& what, const Extractor& program,
                            const fs::path& scratch);
// The other side: reads standard input; the exit code.
int extract_as_asked();
}  // namespace proctor
