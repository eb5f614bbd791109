#pragma once
// A problem as a contract of a campaign: the context is a commit, the harness the acceptance
// checks, the reference solution a patch.  Says what is to be written; `proctor cvdp import` writes
// it. Pure; any thread.  Source: CVDP.md 5.1, 12; docs/file-formats.md.
#include <string>
#include <vector>

#include "common/cvdp/compose.h"
#include "common/cvdp/prepare.h"
#include "common/cvdp/record.h"

namespace proctor::cvdp {

// "cvdp_copilot_H.264_0001" as a contract is named: lower case.
std::string contract_id(const Record& record);

// One commit of `git fast-import` on refs/heads/<contract id>, marked `mark`: the context and
// prompt.json.  Its id depends on the record alone.
Result<std::string> commit_stream(const Record& record, std::uint64_t mark);

struct ImportSettings {
  ImageNames names;
  std::string image;  // name@sha256:..., for every problem; empty: in Proctor's own sandbox
};
struct ContractFile {
  std::string path;  // relative to the campaign's contracts folder
  std::string bytes;
  unsigned mode = 0644;
};
// The contract (<id>.yaml) and the files it refers to (<id>/...).  kInvalid: no check can be made
// of it (answers in words, licensed tools, compose files outside the subset), with the reason.
Result<std::vector<ContractFile>> make_contract(const Record& record, const std::string& repository,
                                                const std::string& commit,
                                                const ImportSettings& settings);

}  // namespace proctor::cvdp
