#pragma once
// Values and texts of common/answers as names of this room, for all of it works on them.
#include "common/answers/json.h"
#include "common/answers/single_shot.h"
#include "common/answers/text.h"

namespace proctor::cvdp {

using namespace answers;  // lint: allow using, it is no other room's namespace that takes them

}  // namespace proctor::cvdp
