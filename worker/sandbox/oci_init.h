#pragma once
// The bytes of the static program that is the first process of every sandbox (init/main.cc): images
// bring no such thing, and those of bwrap and of the Docker Engine can be traced from inside.
#include <string_view>

namespace proctor {

std::string_view oci_init_program();

}  // namespace proctor
