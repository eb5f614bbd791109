#pragma once
// p-values of a family, adjusted for its size: Holm (1979) for what was registered as confirmatory,
// Benjamini and Hochberg (1995) for what is exploratory.  In the order of the input; tests without
// a p are not given: they are counted beside the family.  Pure; thread-safe.
#include <span>
#include <vector>

namespace proctor {

std::vector<double> adjust_holm(std::span<const double> p);
std::vector<double> adjust_hochberg(std::span<const double> p);
std::vector<double> adjust_benjamini_hochberg(std::span<const double> p);
// Holds under any dependence (Benjamini & Yekutieli 2001).
std::vector<double> adjust_benjamini_yekutieli(std::span<const double> p);

}  // namespace proctor
