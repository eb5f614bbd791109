#pragma once
// What the canonical forms of contracts, methods and settings share.  Internal to this room.
#include <array>
#include <string>

#include "common/base/json.h"
#include "common/contract/campaign.h"
#include "common/contract/fields.h"

namespace proctor {

inline constexpr std::array<Word<Method::Kind>, 5> kMethodWords{
    {{"noop", Method::Kind::kNoop},
     {"reference", Method::Kind::kReference},
     {"command", Method::Kind::kCommand},
     {"single_shot", Method::Kind::kSingleShot},
     {"tool_loop", Method::Kind::kToolLoop}}};

Json caps_json(const Caps& caps);
// Asserts that the value has a canonical form.
std::string canonical_text(const Json& value);

}  // namespace proctor
