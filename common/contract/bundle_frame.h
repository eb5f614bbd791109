#pragma once
// The outside of a bundle: header, digest, canonical form, base, files.  Internal to bundle.cc and
// settings_bundle.cc; the format stands in bundle.h.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/contract/document.h"
#include "common/contract/file_source.h"

namespace proctor {

std::string frame_bundle(std::string_view kind, std::string_view form, std::string_view base,
                         const std::vector<ReferencedFile>& files);

struct OpenedBundle {
  std::string_view form;  // into the bytes that were opened; its SHA-256 is the one expected
  std::string base;
  Document document;  // of the form's part named `kind`
  GivenFiles files;
};
Result<OpenedBundle> open_frame(std::string_view bytes, std::string_view kind,
                                const Digest& expected);

// The first diagnostic as an error.
Error as_error(const Diagnostics& diagnostics);

}  // namespace proctor
