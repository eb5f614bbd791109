#include <cstdio>
#include <exception>

#include "calc.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: calc EXPRESSION\n", stderr);
    return 2;
  }
  try {
    std::printf("%ld\n", evaluate(argv[1]));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "calc: %s\n", e.what());
    return 1;
  }
}
