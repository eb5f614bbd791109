#pragma once
// What repeats of one check say about how often it flickers.  Pure; thread-safe.
#include <cstdint>

namespace proctor {

// The upper limit of the flake rate where `agreeing` of `repeats` came out as most did.  Which
// outcome is the usual one was chosen by looking, so both ends count; 1/2 where not even that is
// excluded.  Requires: 0 < repeats, agreeing <= repeats.
double flake_upper_limit(std::uint64_t agreeing, std::uint64_t repeats, double alpha = 0.05);

// Fisher's exact test that the second sample has the higher rate: of x of n and y of m.
double fisher_greater(std::uint64_t x, std::uint64_t n, std::uint64_t y, std::uint64_t m);

// The one-sided lower limit of a rate, x of n (Clopper & Pearson).
double lower_limit(std::uint64_t x, std::uint64_t n, double alpha = 0.05);

}  // namespace proctor
