#include "worker/selftest/attack_program.h"

// PROCTOR_ATTACK is the path of the program, by the build.
__asm__(
    ".section .rodata\n"
    ".global proctor_attack_begin, proctor_attack_end\n"
    "proctor_attack_begin:\n"
    ".incbin \"" PROCTOR_ATTACK
    "\"\n"
    "proctor_attack_end:\n"
    ".byte 0\n"
    ".text\n");

extern "C" {
extern const char proctor_attack_begin[];
extern const char proctor_attack_end[];
}

namespace proctor {

std::string_view attack_program() {
  const auto size = static_cast<std::size_t>(proctor_attack_end - proctor_attack_begin);
  return {proctor_attack_begin, size};
}

}  // namespace proctor
