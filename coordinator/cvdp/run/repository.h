#pragma once
// The bare repository of a campaign that CVDP's commands make: commits by git's fast-import, no
// work tree.  Private to the program.
#include <cstdint>
#include <map>
#include <string>

#include "common/base/files.h"

namespace proctor::cli {

class ContextRepository {
 public:
  explicit ContextRepository(fs::path repository) : repository_(std::move(repository)) {}
  Status open() const;
  // Adds what a fast-import stream says; the commits' ids, by its marks.
  Result<std::map<std::uint64_t, std::string>> add(std::string stream) const;

 private:
  fs::path repository_;
};

}  // namespace proctor::cli
