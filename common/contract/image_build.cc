#include "common/contract/image_build.h"

#include <algorithm>

#include "common/base/json.h"
#include "common/base/result.h"
#include "common/contract/canonical.h"
#include "common/contract/contract.h"

namespace proctor {

std::string ImageBuild::name_of(const std::string& file) const {
  const std::size_t folder = dockerfile.rfind('/');
  if (folder == std::string::npos) return file;
  PROCTOR_ASSERT(file.starts_with(dockerfile.substr(0, folder + 1)));
  return file.substr(folder + 1);
}

Digest inputs_of(const ImageBuild& build, const std::vector<ReferencedFile>& files) {
  const auto find = [&](const std::string& path) -> const ReferencedFile& {
    const auto it = std::ranges::find(files, path, &ReferencedFile::path);
    PROCTOR_ASSERT(it != files.end());
    return *it;
  };
  Json context = Json::object();
  for (const std::string& path : build.files) {
    const ReferencedFile& file = find(path);
    context[build.name_of(path)] = {{"mode", file.mode}, {"sha256", sha256(file.bytes).hex()}};
  }
  return sha256(canonical_text(
      {{"format", 1},
       {"dockerfile", sha256(find(build.dockerfile).bytes).hex()},
       {"files", std::move(context)},
       {"arguments", build.arguments.empty() ? Json::object() : Json(build.arguments)},
       {"network", build.network}}));
}

}  // namespace proctor
