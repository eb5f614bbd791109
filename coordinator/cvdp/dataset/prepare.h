#pragma once
// The files of a problem before anything runs, and the references of heavy records.
// Pure; any thread.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cvdp/dataset/compose.h"
#include "coordinator/cvdp/dataset/record.h"

namespace proctor::cvdp {
// Heavy records: their context is a commit of a repository, not files.  How such a reference is
// read, and their reference patches as git takes them.
// Source: CVDP 1.7, 6.6, 7.1, 7.4.

struct HeavySource {
  std::string repository;  // as the record, or the flag, has it
  std::string commit;
};
// nullopt: its context is files.  kInvalid: it is heavy by its id and names no commit.  Empty
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

// The patch that an agent gets with include-golden: CVDP 6.2.
inline constexpr const char* kGoldenPatchFile = "golden_ref_solution.patch";
std::string golden_patch_text(const Record& record);

// The files of a problem as upstream lays them out before anything runs:
//   <repository>/harness/<number>/{docs,rtl,verif,src,rundir}/, context (with or without its
//   solution), harness, docker-compose.yml, prompt.json.
// Says what is to be written; writing is the caller's (`proctor cvdp prepare`).  Paths that lead
// out of the folder and compose files that ask for the host are refused, which upstream does not
// do.  Source: CVDP 1.8, 4.

struct Prepared {
  std::string folder;                // relative to the prefix
  std::vector<std::string> folders;  // made even if nothing is in them; relative to `folder`
  std::vector<AnsweredFile> files;   // each path once, in the order upstream writes them first
  std::vector<std::string> warnings;
};

struct PrepareSettings {
  bool no_patch = false;  // without the reference solution
  ImageNames names;
  std::string shared_network;
};

// kInvalid: refused, with the field.
Result<Prepared> prepare(const Record& record, const PrepareSettings& settings);

// prompt.json of a problem.
std::string prompt_json(const Record& record);

// One line of prompt_response.jsonl, without its newline: the starting files, and those of `files`
// that differ from them.  Null: there is no answer.  With `solution_alone` the files are all that
// were prepared, and count where the solution has them.  Upstream writes either version of a
// changed file by chance, Proctor the new one.
std::string prompt_response_line(const Record& record, const std::vector<AnsweredFile>* files,
                                 bool solution_alone = false);
}  // namespace proctor::cvdp
