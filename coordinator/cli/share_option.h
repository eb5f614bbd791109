#pragma once
// An option that is a share of something, as in 0.05.
#include <functional>
#include <string>

namespace proctor::cli {

// Digits and at most one point, from `least` to `most`: what is typed is kept as it is, and has to
// mean a number to whoever reads it later.  CLI11's ranges let "nan" through, which is below
// nothing.
std::function<std::string(const std::string&)> share(double least, double most);

}  // namespace proctor::cli
