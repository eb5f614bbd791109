#pragma once
// The bytes of the static program that is the first process of every OCI sandbox (init/main.cc):
// images bring no such thing, and hosts have none that we could rely on.
#include <string_view>

namespace proctor {

std::string_view oci_init_program();

}  // namespace proctor
