#pragma once
// How much of a request goes on to its provider: all of it, it with edits, or nothing.  A provider
// that fetches a page or runs a program for an agent is a hole in the agent's sandbox.
// Pure; any thread.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/campaign.h"
#include "common/contract/models_file.h"
#include "worker/gateway/body_peek.h"
#include "worker/gateway/json_spans.h"

namespace proctor {
struct PolicyRefusal {
  std::string member;
  std::string text;
};
struct PolicyVerdict {
  std::optional<PolicyRefusal> refusal;
  std::vector<Splice> edits;
  bool usage_asked = false;  // the edits ask for a usage that the agent did not ask for
};

// `peek` is of `body`, which asks for `model`.
PolicyVerdict judge_request(ModelApi api, std::string_view body, const BodyPeek& peek,
                            const GatewayModel& model, const ModelAccess& access);
}  // namespace proctor
