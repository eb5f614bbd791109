#pragma once
// The files of an image build, as the archive that a Docker Engine takes them in.  The same files
// make the same bytes.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace proctor {

struct ContextFile {
  std::string name;  // relative, safe
  std::uint32_t mode = 0644;
  std::string bytes;
};

// kUnavailable: no memory for it.
Result<std::string> build_context(const std::vector<ContextFile>& files);

}  // namespace proctor
