#pragma once
// Docker objects for tests: an image made of this machine's own shell and coreutils (no registry),
// and volumes, all labelled and removed at the end.
#include <string>

#include "common/base/result.h"

namespace proctor::testing {

// PROCTOR_DOCKER_SOCKET, or the usual place.
std::string docker_socket();

// One call of the Engine API; the reply's body, or an Error with it.
Result<std::string> docker_call(const std::string& method, const std::string& target,
                                const std::string& body = {});

// One line for each container and volume of a worker whose owner label ends with `mark`, that the
// engine has.
std::string left_in_engine(const std::string& mark);

// What it is called there.
std::string test_image_name();
// The id of the test image, made on first use and removed when the process ends.
Result<std::string> test_image();
// The same in the engine that answers now, made anew and left there.
Result<std::string> make_test_image();
// The id of the one with Python and pytest (test_image.h), likewise on first use.
Result<std::string> python_test_image();

}  // namespace proctor::testing
