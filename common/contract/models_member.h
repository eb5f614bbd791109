#pragma once
// One member of a model in the models file.  Pure; any thread.  Internal to this room.
#include <string>

#include "common/base/json.h"
#include "common/contract/models_file.h"

namespace proctor {

// kInvalid, beginning with "models.NAME".
Status read_model_member(const std::string& model, const std::string& key, const Json& value,
                         ModelAccess& out);

}  // namespace proctor
