#include <exception>
#include <iostream>

#include "calc.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: calc EXPRESSION\n";
    return 2;
  }
  try {
    std::cout << evaluate(argv[1]) << '\n';
  } catch (const std::exception& e) {
    std::cerr << "calc: " << e.what() << '\n';
    return 1;
  }
}
