#pragma once
// The provider's key of a model, read now: from its variable, or from its file, which nobody else
// may read.  Empty where the models file names neither.
// Errors: kUnavailable, with the variable or the file and what to do.
#include "common/base/ids.h"
#include "common/contract/models_file.h"

namespace proctor {

Result<Secret> model_key(const ModelAccess& access);

}  // namespace proctor
