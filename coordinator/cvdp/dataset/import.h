#pragma once
// Problems for campaigns: a model's prompt, a contract, a judge's question.  Pure; any thread.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/cvdp/dataset/compose.h"
#include "coordinator/cvdp/dataset/prepare.h"
#include "coordinator/cvdp/dataset/record.h"

namespace proctor::cvdp {
// The prompt of a model: the parts, their order and the answer's form are upstream's; the sentences
// are Proctor's own.  Source: CVDP 8.2, 8.3, 8.5.

// The two forms a JSON answer may have.
inline constexpr std::string_view kCodeSchema = "{ \"code\": [{ \"<name>\" : \"<code>\"}] }";
inline constexpr std::string_view kResponseSchema = "{ \"response\": \"<response>\" }";

// The name under which reports have these sentences; another number with every other sentence.
inline constexpr const char* kPromptsName = "Proctor 1";

// `expected`: files the answer is to hold; none for an answer in words.
// kInvalid: a category no model is asked about, or a record without a prompt.
Result<SingleShotTask> prompt_for(const Record& record);

// A problem as a contract of a campaign: the context is a commit, the harness the acceptance
// checks, the reference solution a patch.  Says what is to be written; `proctor cvdp import` writes
// it.  Source: CVDP 5.1, 12; docs/file-formats.md.

// "cvdp_copilot_H.264_0001" as a contract is named: lower case.
std::string contract_id(const Record& record);

// Things that an agent sees beside the context.
struct CommitExtras {
  std::string tree;  // of a heavy record: its payload, an object of the same repository
  bool golden = false, harness = false;
};
// One commit of `git fast-import` on refs/heads/<contract id>, marked `mark`: the context and
// prompt.json.  Its id depends on the record and the extras alone.
Result<std::string> commit_stream(const Record& record, std::uint64_t mark,
                                  const CommitExtras& extras = {});

// The parts of an image that a harness builds.
struct BuildContext {
  std::vector<std::pair<std::string, std::string>> files;  // path, bytes; with the Dockerfile
  std::string dockerfile;                                  // its path among them
  std::vector<std::string> bases;                          // images that it begins with
};

struct ImportSettings {
  ImageNames names;
  std::string image;  // name@sha256:..., for every problem; empty: its compose file's
  // Services as containers of their images.  Otherwise their commands run in the contract's
  // sandbox, where a test that names /code itself does not find it.
  bool containers = true;
  // The digest an image goes by here ("sha256:..."), and that of one to be built.  Errors leave the
  // problem out.  Called from make_contract, more than once for one name.
  std::function<Result<std::string>(const std::string& image)> image_id{};
  std::function<Result<std::string>(const BuildContext& context)> build{};
  // A problem without a solution gets what upstream's golden run applies then: empty new files.
  bool golden_of_redacted = false;
  bool network = false;
  // The image and the network of licensed tools are named: compose can run what needs them.
  bool licensed = false;
  std::string repo_url, commit_hash;  // of heavy records, instead of their own
  // The task of a single-shot method for a problem (common/answers/single_shot.h).  With it answers
  // in words have a contract too; an error leaves the problem out.  Called more than once.
  std::function<Result<SingleShotTask>(const Record& record)> single_shot{};
  std::chrono::seconds harness_limit{600}, agent_limit{600};  // upstream's
  std::uint64_t disk_mebibytes = 200;                         // upstream's
};
struct ContractFile {
  std::string path;  // relative to the campaign's contracts folder
  std::string bytes;
  unsigned mode = 0644;
};
// The contract (<id>.yaml) and the files it refers to (<id>/...).  kInvalid: no check can be made
// of it (answers in words, licensed tools), with the reason.  kBeyondSubset: docker compose can run
// it all the same.
Result<std::vector<ContractFile>> make_contract(const Record& record, const std::string& repository,
                                                const std::string& commit,
                                                const ImportSettings& settings);

// A judge's question about one answer, as a contract of its own (no repository of the problem's):
// the run that answers it is metered, kept and gone on with like any other.
struct JudgeCase {
  std::string name;  // of the contract
  std::string category, difficulty, kind;
  std::string problem, reference, candidate;
};
std::vector<ContractFile> make_judgement(const JudgeCase& judged, const std::string& repository,
                                         const std::string& commit);
}  // namespace proctor::cvdp
