#pragma once
// p-values of a family, adjusted for its size by Holm (1979).  In the order of the input; tests
// without a p are not given: they are counted beside the family.  Pure; thread-safe.
#include <span>
#include <vector>

namespace proctor {

std::vector<double> adjust_holm(std::span<const double> p);

}  // namespace proctor
