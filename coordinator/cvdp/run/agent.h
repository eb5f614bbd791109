#pragma once
// The agent of `proctor cvdp run`, and what it changed.  Private to the program.
#include <string>
#include <vector>

#include "common/base/fields.h"
#include "common/base/files.h"
#include "common/base/result.h"
#include "common/contract/campaign.h"
#include "coordinator/cvdp/dataset/transform.h"

namespace proctor::cli {
// The changes of an agent, read back from the campaign's repository and the patch that is evidence;
// nothing of the agent's is followed, run or unpacked.

// Changes of plain files; links are left out.  `branch`: the problem's, as import made it.
// kInvalid: the patch is not one of that commit.
Result<std::vector<cvdp::AgentChange>> changes_of(const fs::path& repository,
                                                  const std::string& branch,
                                                  const std::string& patch);

// The agent of `proctor cvdp run`: an image, as upstream starts it, given what of the worker it
// needs; or a method as campaign.yaml has them, in a file of its own.

class Command;

// Things that the agent of an image gets.
struct AgentGiven {
  std::vector<std::string> secrets;  // names of variables of the worker
  bool network = false;
};
// As `environment` of an image's method.
void fields(auto& v, Is<AgentGiven> auto& given) {
  v("secrets", given.secrets, kOptional);
  v("network", given.network, kOptional);
}

struct AgentFlags {
  std::string image;
  AgentGiven given;
  std::string method_file;
  bool any() const { return !image.empty() || !method_file.empty(); }
};
void add_agent_flags(Command command, AgentFlags& flags);
// kInvalid: options that do not go together.
Status check_agent(const AgentFlags& flags);

// kInvalid: no file of one method that has a program.
Result<Method> load_agent_method(const std::string& file);
// As campaign.yaml has it.
std::string method_text(const Method& method);
// Its files, beside campaign.yaml.  kInvalid: one has the name of a campaign's own.
Status place_method_files(const Method& method, const fs::path& campaign);
}  // namespace proctor::cli
