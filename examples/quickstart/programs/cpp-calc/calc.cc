#include "calc.h"

#include <cctype>
#include <limits>
#include <stdexcept>

namespace {

// sum     = product (("+" | "-") product)*
// product = factor (("*" | "/") factor)*
// factor  = number | "-" factor | "(" sum ")"
class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  long all() {
    const long value = sum();
    if (peek() != '\0') fail("unexpected");
    return value;
  }

 private:
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void fail(const char* what) {
    throw std::runtime_error(std::string(what) + " at " + std::to_string(at_ + 1));
  }

  long sum() {
    const long left = product();
    if (take('+')) return left + sum();
    if (take('-')) return left - sum();
    return left;
  }

  long product() {
    long value = factor();
    for (;;) {
      if (take('*')) {
        value *= factor();
      } else if (take('/')) {
        const long divisor = factor();
        if (divisor == 0) fail("division by zero");
        value /= divisor;
      } else {
        return value;
      }
    }
  }

  long factor() {
    if (take('-')) return -factor();
    if (take('(')) {
      const long value = sum();
      if (!take(')')) fail("expected )");
      return value;
    }
    if (!std::isdigit(static_cast<unsigned char>(peek()))) fail("expected a number");
    long value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      const int digit = text_[at_++] - '0';
      if (value > (std::numeric_limits<long>::max() - digit) / 10) fail("too large a number");
      value = value * 10 + digit;
    }
    return value;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

long evaluate(const std::string& text) {
  return Parser(text).all();
}
