#pragma once
// What fuzz targets share.  A target (targets.h) is a function of hostile bytes, with
// PROCTOR_ASSERT for what must hold beyond "it does not crash".  One thread.
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/contract/document.h"

namespace proctor::fuzz {

// For what a target's own preparation needs; a failure ends the process.
template <class T>
T must(Result<T> result) {
  PROCTOR_ASSERT(result.ok());
  return std::move(result).value();
}

// Takes the first byte; 0 when there is none.
std::uint8_t take_byte(std::string_view& bytes);
// Takes what stands before the first `end` and drops that; all of it when there is none.
std::string_view take_part(std::string_view& bytes, char end);

// Something went wrong exactly when something is said, and each sentence names a line of the text.
void check_diagnostics(const Diagnostics& out, std::string_view text);

// A folder in memory where the machine has one; it is kept for the life of the process.
const fs::path& scratch_folder();

}  // namespace proctor::fuzz
