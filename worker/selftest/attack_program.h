#pragma once
// The bytes of the static program that plays the hostile agent (attack/main.cc).
#include <string_view>

namespace proctor {

std::string_view attack_program();

}  // namespace proctor
