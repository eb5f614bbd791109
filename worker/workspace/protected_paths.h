#pragma once
// What `policy.protected` speaks for: the paths that its globs cover, and the byte code and
// libraries that Python would load in the place of a covered source.  Pure; no failures.
#include <string>
#include <string_view>
#include <vector>

namespace proctor {

class ProtectedPaths {
 public:
  explicit ProtectedPaths(const std::vector<std::string>& globs) : globs_(globs) {}

  bool covers(std::string_view path) const;
  // May something below the folder be covered?
  bool reaches(std::string_view folder) const;

 private:
  std::vector<std::string> globs_;
};

}  // namespace proctor
