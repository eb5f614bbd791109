#pragma once
// May this process open what its slots will?  Asked at start: half-way it would be dear.
#include <cstdint>

#include "common/base/result.h"

namespace proctor {

// Raises the soft limit to the hard one first.  kInvalid: not enough, and what to type.
Status enough_descriptors(std::uint32_t slots);

}  // namespace proctor
