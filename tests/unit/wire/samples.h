#pragma once
// Messages to encode: one fixed example per kind (the golden files), and random ones of any kind.
#include <random>
#include <string>
#include <vector>

#include "common/wire/messages.h"

namespace proctor::wire::samples {

std::vector<Message> one_of_each();
// A valid message; the same engine state gives the same message.
Message random_message(std::mt19937_64& rng);
// Below n, the same with every standard library.
std::uint64_t below(std::mt19937_64& rng, std::uint64_t n);
Digest digest_of(std::string_view text);

}  // namespace proctor::wire::samples
