#pragma once
// Where this tree and its build are: the one file that knows is compiled anew in another folder.
#include "common/base/files.h"

namespace proctor::testing {

fs::path source_dir();
fs::path build_dir();

}  // namespace proctor::testing
