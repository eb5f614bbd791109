#include "coordinator/cvdp/pycompat/decimal.h"

#include <array>
#include <cmath>
#include <cstdio>  // lint: allow io, snprintf alone
#include <cstdlib>

namespace proctor::cvdp {
namespace {

std::string formatted(const char* format, int digits, double value) {
  std::array<char, 400> buffer{};
  const int n = std::snprintf(buffer.data(), buffer.size(), format, digits, value);
  return std::string(buffer.data(), n < 0 ? 0 : static_cast<std::size_t>(n));
}

}  // namespace

std::string fixed(double value, int digits) {
  return formatted("%.*f", digits, value);
}

std::string six_digits(double value) {
  return formatted("%.*g", 6, value);
}

double rounded_to(double value, int digits) {
  return std::isfinite(value) ? std::strtod(fixed(value, digits).c_str(), nullptr) : value;
}

std::string Count::rounded() const {
  return is_float ? python_repr(rounded_to(value, 2)) : fixed(value, 0);
}

Count count_of(const Value* number) {
  Count out;
  if (number == nullptr) return out;
  out.value = number->as_double().value_or(0);
  out.is_float = number->number() != nullptr && number->number()->real;
  return out;
}

}  // namespace proctor::cvdp
