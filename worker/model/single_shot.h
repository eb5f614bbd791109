#pragma once
// SingleShot: the agent of a method of kind single_shot.  Asks its model once (again when the
// answer cannot be read or the call failed, at most as often as the method says) and writes the
// files of the answer into the workspace; or hands in an answer that the contract holds already.
// No program of anybody's runs in it.  Its calls go through the run's gateway, which reserves each
// at its worst case, charges it and keeps what was said.
//
// Evidence, in the run's folder agent/: call-N.request.json, call-N.reply (as it came, bounded, the
// key struck out), answer.json (the files), stdout (the answer), stderr (what went wrong).
//
// Fails with kInvalid where no further try can help (a provider that refuses), with kUnavailable
// where one may.  A provider without room ends it with exit code kModelBusyExit, the overload of
// docs/retries.md.  Source: CVDP 8.3, 8.4; docs/single-shot.md.
#include <functional>
#include <string>

#include "common/contract/models_file.h"
#include "worker/agent/agent.h"
#include "worker/gateway/own_client.h"

namespace proctor {
struct SingleShotTools {
  const ModelAccess* access;  // of its model; null where the method names none.  Outlives it
  // Asks the run's gateway; kUnavailable where `over` became true.
  std::function<Result<OwnReply>(const std::string& body, const std::function<bool()>& over)> ask;
};

std::unique_ptr<Agent> make_single_shot(SingleShotTools tools);
}  // namespace proctor
