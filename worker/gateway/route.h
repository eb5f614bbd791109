#pragma once
// Which of the gateway's places a request asks for.  Pure; any thread.
#include <optional>
#include <string>
#include <string_view>

#include "common/contract/models_file.h"

namespace proctor {

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

}  // namespace proctor
