#pragma once
// The bytes of the static program that keeps a shared network under Docker (holder/main.cc).
#include <string_view>

namespace proctor {

std::string_view holder_program();

}  // namespace proctor
