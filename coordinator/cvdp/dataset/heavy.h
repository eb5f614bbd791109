#pragma once
// Heavy records: their context is a commit of a repository, not files.  How such a reference is
// read, and their reference patches as git takes them.  Pure; any thread.
// Source: CVDP 1.7, 6.6, 7.1, 7.4.
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "coordinator/cvdp/dataset/record.h"

namespace proctor::cvdp {

struct HeavySource {
  std::string repository;  // as the record, or the flag, has it
  std::string commit;
};
// Nothing: its context is files.  kInvalid: it is heavy by its id and names no commit.  Empty
// overrides count as none.
Result<std::optional<HeavySource>> heavy_source(const Record& record, const std::string& repo_url,
                                                const std::string& commit_hash);

// A bare name is a folder, else a bundle, of `base`; what is no path below it is refused.
// `exists`: is there such a file or folder?
Result<std::string> resolve_reference(const std::string& reference, const std::string& base,
                                      const std::function<bool(const std::string&)>& exists);

// Upstream clones from GitHub over ssh.  Every other place stays as it is.
std::string github_over_ssh(const std::string& url);

// The folder of the repository that is shown to agent and harness, empty: all of it.  Upstream
// looks for its mark in the whole path, this in its last part.
std::string payload_folder(const std::string& reference);

// The record's patches as one diff for git, paths below the payload; empty ones change nothing.
Result<std::string> heavy_reference(const Record& record);

// Where a heavy problem's harness lies in the workspace: its payload may have a src of its own.
inline constexpr const char* kHarnessFolder = ".cvdp-harness";

// What an agent is given with include-golden: CVDP 6.2.
inline constexpr const char* kGoldenPatchFile = "golden_ref_solution.patch";
std::string golden_patch_text(const Record& record);

}  // namespace proctor::cvdp
