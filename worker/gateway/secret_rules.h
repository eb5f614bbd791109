#pragma once
// What a run was given as secrets, as rules of what is struck out (redactor.h).  Pure; any thread.
#include <cstddef>
#include <map>
#include <string>

#include "worker/gateway/redactor.h"

namespace proctor {

// Secrets by their names, as they stand and as they stand within JSON.  One of less than
// kSecretLeast bytes is none that could be struck out: the rest would not be readable any more.
inline constexpr std::size_t kSecretLeast = 8;
LiteralRedactor::Rules rules_for_secrets(const std::map<std::string, std::string>& secrets);

}  // namespace proctor
