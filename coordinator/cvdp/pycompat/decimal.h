#pragma once
// Numbers of the reports as Python formats and rounds them.  Pure; any thread; never fails.
#include <string>

#include "coordinator/cvdp/pycompat/values.h"

namespace proctor::cvdp {

// A Python number that is an int until a float is added to it.
struct Count {
  double value = 0;
  bool is_float = false;
  void add(double x) {
    value += x;
    is_float = true;
  }
  void add(const Count& c) {
    value += c.value;
    is_float = is_float || c.is_float;
  }
  Count& operator++() {
    value += 1;
    return *this;
  }
  Value json() const { return is_float ? real(value) : Value(static_cast<std::int64_t>(value)); }
  // str(round(x, 2)): "5", "5.4", "1.0".
  std::string rounded() const;
};
Count count_of(const Value* number);  // 0 where there is none

// "%.2f"; digits from 0 to 17.
std::string fixed(double value, int digits);
inline std::string percent(double value, int digits = 2) {
  return fixed(value, digits) + "%";
}
std::string six_digits(double value);  // "%g"
// round(value, digits), half to even of the exact binary value.
double rounded_to(double value, int digits);

}  // namespace proctor::cvdp
