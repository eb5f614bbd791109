#pragma once
// An option that is a share of something, as in 0.05.

namespace CLI {
class Validator;
}

namespace proctor::cli {

// Digits and at most one point, from `least` to `most`: what is typed is kept as it is, and has to
// mean a number to whoever reads it later.  CLI::Range lets "nan" through, which is below nothing.
CLI::Validator share(double least, double most);

}  // namespace proctor::cli
