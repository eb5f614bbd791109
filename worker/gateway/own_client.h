#pragma once
// The worker's own way into a session, for an agent that is a part of it: through the door that
// every agent has, so that what is judged, reserved, charged and told of its calls is the same.
// Blocking; any thread.
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/contract/models_file.h"

namespace proctor {
struct OwnReply {
  int status = 0;  // 0: the connection ended without an answer, for the provider gave none
  std::string body;
  std::chrono::milliseconds retry_after{0};
  // The gateway's own word on whether the same may be asked again; nothing: it is a provider's
  // answer.
  std::optional<bool> again{};
};

// Why a call has no answer, by its status: no room at the provider; a key, an account or the model
// itself; a failure that may heal; the request.  Requires: it is not 2xx.
enum class OwnFailure { kBusy, kNoAccess, kFailed, kRefused };
OwnFailure failure_of(int status);

// One request of a session in `dir`, on a connection of its own, until it is answered or `over`
// (asked a few times a second) is true.  kUnavailable: nobody answered, or it was over.
// Requires: `api` is kChat or kMessages.
Result<OwnReply> ask_gateway(const fs::path& dir, const Secret& token, ModelApi api,
                             std::string_view body, const std::function<bool()>& over);
}  // namespace proctor
