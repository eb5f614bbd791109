#pragma once
// As much of a Dockerfile as decides whether it has to be built at all, and of what.
// Pure; any thread.  Source: the Dockerfile reference of Docker Engine 20.10.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace proctor::cvdp {

struct Dockerfile {
  std::vector<std::string> bases;  // images of FROM lines, earlier stages left out, each once
  bool only_from = false;          // it is its one base by another name
};
// Nothing: no FROM, or a base that a build argument names.
std::optional<Dockerfile> read_dockerfile(std::string_view text);

}  // namespace proctor::cvdp
