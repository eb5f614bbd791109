#include <iostream>
#include <stdexcept>
#include <string>

#include "calc.h"

namespace {

struct Row {
  const char* text;
  const char* expected;
};

std::string found(const char* text) {
  try {
    return std::to_string(evaluate(text));
  } catch (const std::runtime_error& e) {
    return e.what();
  }
}

const Row kRows[] = {
    {"42", "42"},
    {" 1 + 2 ", "3"},
    {"2 + 3 * 4", "14"},
    {"(2 + 3) * 4", "20"},
    {"10 - 3 - 2", "5"},
    {"10 - 3 + 2", "9"},
    {"100 / 5 / 2", "10"},
    {"2 - -3", "5"},
    {"1 / 0", "division by zero at 6"},
    {"(1", "expected ) at 3"},
    {"1 2", "unexpected at 3"},
};

}  // namespace

int main() {
  int number = 0, failed = 0;
  for (const Row& row : kRows) {
    const std::string value = found(row.text);
    const bool good = value == row.expected;
    std::cout << (good ? "ok " : "not ok ") << ++number << " - " << row.text << " gives " << row.expected << '\n';
    if (!good) std::cout << "# found " << value << '\n';
    failed += good ? 0 : 1;
  }
  std::cout << "1.." << number << '\n';
  return failed == 0 ? 0 : 1;
}
