# cmake -D SOURCE=DIR -D OUT=FILE -P build_commit.cmake: FILE gives the commit of the checkout SOURCE, and is written
# only where it has changed.  A tree that is no checkout of its own (a tarball, also in another checkout): "unknown".
set(commit "")
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0
      git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit MATCHES "^[0-9a-f]+(-dirty)?$")
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[
// Made by the build (cmake/build_commit.cmake).
#include "common/base/version.h"

namespace proctor {
std::string_view build_commit() {
  return "@commit@";
}
}  // namespace proctor
]])
