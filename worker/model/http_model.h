#pragma once
// An endpoint that speaks OpenAI's chat completions, over libcurl.  The key is read from its
// variable or file for every call, goes into the header of that call and nowhere else, and is
// struck out of what comes back.
#include <memory>

#include "worker/model/model.h"

namespace proctor {

std::unique_ptr<Model> open_http_model(const ModelAccess& access);

}  // namespace proctor
