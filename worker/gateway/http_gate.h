#pragma once
// HTTP at the gateway's door: which of its places a request asks for, and the heads and bodies of
// requests and answers.  Pure; any thread.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/result.h"
#include "common/contract/models_file.h"
#include "worker/network/http_message.h"

namespace proctor {
// Which of the gateway's places a request asks for.
struct Route {
  enum class Place {
    kCall,    // of a model, by `api`
    kModels,  // the list of them
    kModel,   // `model` of the list
    kStatus,  // what the run has left
    kHealth,
    kOptions,
    kUnknown,
    kWrongMethod,  // of a known place; `allow` says which it takes
  };
  Place place = Place::kUnknown;
  ModelApi api = ModelApi::kChat;
  std::string model{};
  std::string_view allow{};
};

// Exact paths, with or without the leading /v1, and no query but beta=true.
Route route_of(std::string_view method, std::string_view target);

std::string_view path_of(ModelApi api);  // behind an endpoint's URL

// The head of one request to the gateway, and what follows it.
struct GatewayHead : RequestHead {
  bool last = false;              // the connection ends with it
  bool expects_continue = false;  // waits for a word before it sends the body
};
struct GateRefusal {
  int status = 400;
  std::string why;
};

// `head` as head_length() found it.
std::variant<GatewayHead, GateRefusal> judge_head(std::string_view head);

struct AnswerHead {
  int status = 0;
  HttpFields fields;
  HttpFraming body;
  bool last = false;
};
// The head of a provider's answer to a request that was no HEAD.  kInvalid: it is no answer.
Result<AnswerHead> read_answer_head(std::string_view head);
}  // namespace proctor
