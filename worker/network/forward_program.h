#pragma once
// The bytes of the static program that is the inner end of a sandbox's way out
// (worker/network/forward), carried inside the worker: an image has none for sure.
#include <string_view>

namespace proctor {

std::string_view forward_program();

}  // namespace proctor
