#pragma once
// Answers of the gateway's own, in the words of each API, such that the programs which speak it
// stop where nothing will be granted any more and wait where something may be.  Measured on real
// programs: docs/decisions/065.  Pure; any thread.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/campaign.h"
#include "common/contract/models_file.h"

namespace proctor {
struct Refusal {
  enum class Cause {
    kFinal,         // nothing will be granted any more
    kNotNow,        // later, perhaps
    kToken,         // none, or another run's
    kUnknownModel,  // none of this run's
    kPolicy,        // not in this run, or malformed
    kTooLarge,
    kUnknownRoute,
    kWrongMethod,
    kGate,  // no request at all: `status` says what
  };
  Cause cause = Cause::kPolicy;
  std::string text;
  std::string code{};         // of the body: "budget_exceeded", ...; empty: as the cause has it
  std::string param{};        // the member that is wrong
  std::uint64_t wait_ms = 0;  // kNotNow
  int status = 400;           // kGate
};

struct OwnAnswer {
  int status = 200;
  std::string headers;  // each with its "\r\n"
  std::string body;
  bool last = false;                      // the connection ends with it
  std::string type = "application/json";  // of the body; empty: not said
};

// Is in every answer that is the gateway's own: what says otherwise came from a provider.
inline constexpr const char* kOwnHeader = "x-proctor";

// `litellm`: the program says that it is.  `id`: of the request, for people.
OwnAnswer make_refusal(ModelApi api, const Refusal& refusal, bool litellm, std::uint64_t id);

// The bytes of an answer.
std::string to_bytes(const OwnAnswer& answer, bool head_only = false);

// The models of a run, by the names they have there; model_entry() is one of them.
std::string model_list(ModelApi style, const std::vector<GatewayModel>& models);
std::string model_entry(ModelApi style, std::string_view model);
}  // namespace proctor
