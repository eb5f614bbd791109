#pragma once
// repr() of what JSON can hold: {'a': [1, True, None]}.  Pure; any thread; never fails.
// Source: CVDP 4.4, 8.4.
#include <string>

#include "common/cvdp/value.h"

namespace proctor::cvdp {

std::string python_repr_of(const Value& value);

}  // namespace proctor::cvdp
