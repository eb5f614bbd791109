#pragma once
// SingleShot: the agent of a method of kind single_shot.  Asks its model once (again when the
// answer cannot be read or the call failed, at most as often as the method says) and writes the
// files of the answer into the workspace; or hands in an answer that the contract holds already.
// No program of anybody's runs in it.  Every call is reserved at its worst case before it is made
// and charged after; without the provider's word on tokens at that worst case.
//
// Evidence, in the run's folder agent/: call-N.request.json, call-N.reply (as it came, bounded, the
// key struck out), answer.json (the files), stdout (the answer), stderr (what went wrong).
//
// Fails with kInvalid where no further try can help (a provider that refuses, a call larger than
// the run's cap), with kUnavailable where one may.  A provider without room ends it with exit code
// kModelBusyExit, the overload of docs/retries.md.  Source: CVDP 8.3, 8.4; docs/single-shot.md.
#include <functional>
#include <variant>

#include "worker/agent/agent.h"
#include "worker/core/run_meter.h"
#include "worker/model/model.h"

namespace proctor {

using MeteredCall = std::variant<MeterReserve, MeterCharge, MeterRelease>;

struct SingleShotTools {
  const ModelsFile* models;  // outlives it
  std::function<Result<MeterAnswer>(const MeteredCall&)> meter;
};

std::unique_ptr<Agent> make_single_shot(SingleShotTools tools);

}  // namespace proctor
