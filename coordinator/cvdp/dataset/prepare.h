#pragma once
// The files of a problem as upstream lays them out before anything runs:
//   <repository>/harness/<number>/{docs,rtl,verif,src,rundir}/, context (with or without its
//   solution), harness, docker-compose.yml, prompt.json.
// Says what is to be written; writing is the caller's (`proctor cvdp prepare`).  Paths that lead
// out of the folder and compose files that ask for the host are refused, which upstream does not
// do. Pure; any thread.  Source: CVDP 1.8, 4.
#include <string>
#include <vector>

#include "coordinator/cvdp/dataset/compose.h"
#include "coordinator/cvdp/dataset/record.h"

namespace proctor::cvdp {

enum class PrepareMode {
  kGolden,   // with the reference solution
  kNoPatch,  // without it
};

struct PreparedFile {
  std::string path;  // relative to the problem's folder
  std::string bytes;
};
struct Prepared {
  std::string folder;                // relative to the prefix
  std::vector<std::string> folders;  // made even if nothing is in them; relative to `folder`
  std::vector<PreparedFile> files;   // each path once, in the order upstream writes them first
  std::vector<std::string> warnings;
  std::vector<std::string> services;  // of docker-compose.yml, by name
  bool harness = false;               // upstream's "obj": there is one to run
};

struct PrepareSettings {
  PrepareMode mode = PrepareMode::kGolden;
  ImageNames names;
  std::string shared_network;
};

// kInvalid: refused, with the field.
Result<Prepared> prepare(const Record& record, const PrepareSettings& settings);

// One line of prompt_response.jsonl, without its newline: the starting files and those the solution
// changed.  Upstream writes either version of a changed file by chance, Proctor the new one.
std::string prompt_response_line(const Record& record, const Prepared* prepared);
// The same of what a model answered; null: it gave no answer.
std::string answered_response_line(const Record& record, const std::vector<AnsweredFile>* answer);

}  // namespace proctor::cvdp
