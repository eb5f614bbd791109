#include "worker/sandbox/oci_init.h"

// PROCTOR_OCI_INIT is the path of the program, by the build.
__asm__(
    ".section .rodata\n"
    ".global proctor_oci_init_begin, proctor_oci_init_end\n"
    "proctor_oci_init_begin:\n"
    ".incbin \"" PROCTOR_OCI_INIT
    "\"\n"
    "proctor_oci_init_end:\n"
    ".byte 0\n"
    ".text\n");

extern "C" {
extern const char proctor_oci_init_begin[];
extern const char proctor_oci_init_end[];
}

namespace proctor {

std::string_view oci_init_program() {
  const auto size = static_cast<std::size_t>(proctor_oci_init_end - proctor_oci_init_begin);
  return {proctor_oci_init_begin, size};
}

}  // namespace proctor
