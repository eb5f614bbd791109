#pragma once
// Canonical forms and digests: the identity of contracts and methods.  Pure; any thread.
#include <array>
#include <string>

#include "common/base/digest.h"
#include "common/base/json.h"
#include "common/contract/campaign.h"
#include "common/contract/contract.h"
#include "common/contract/fields.h"

namespace proctor {
// Shared by the canonical forms of contracts, methods and settings.  Internal to this room.

inline constexpr std::array<Word<Method::Kind>, 5> kMethodWords{
    {{"noop", Method::Kind::kNoop},
     {"reference", Method::Kind::kReference},
     {"command", Method::Kind::kCommand},
     {"single_shot", Method::Kind::kSingleShot},
     {"tool_loop", Method::Kind::kToolLoop}}};

Json caps_json(const Caps& caps);
// Asserts that the value has a canonical form.
std::string canonical_text(const Json& value);

// The identity of what is run.  The canonical form of a contract or method is canonical JSON
// (RFC 8785) over every field, with defaults filled in, and the mode, size and SHA-256 of every
// file it refers to; the digest is the SHA-256 of that text.  Comments, key order and layout of the
// YAML do not reach it; anything else does (R041).
//
//   {"contract":{"checks":[...],...},"files":[{"mode":"0644","path":"fix.patch",
//    "sha256":"...","size":312}],"format":1}
//
// "contract" has the shape of the YAML file, so that the same parser reads it back from a bundle.
// Requires: the value came from a parser or satisfies its rules.

std::string canonical_form(const Contract& contract);
Digest digest_of(const Contract& contract);

std::string canonical_form(const Method& method);
Digest digest_of(const Method& method);
}  // namespace proctor
