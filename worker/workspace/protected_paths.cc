#include "worker/workspace/protected_paths.h"

#include "common/base/text.h"

namespace proctor {
namespace {

constexpr std::string_view kCache = "__pycache__";

struct Split {
  std::string_view folder;  // with its '/', or empty
  std::string_view name;
};
Split split(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

bool is_cache(std::string_view folder) {
  return folder == "__pycache__/" || folder.ends_with("/__pycache__/");
}

// The source that Python takes such a file for, as a path; empty: it loads none of this name.
std::string source_of(std::string_view path) {
  const auto [folder, name] = split(path);
  const bool byte_code = name.ends_with(".pyc") || name.ends_with(".pyo");
  if (!byte_code && !name.ends_with(".so")) return {};
  std::string_view home = folder;
  if (byte_code && is_cache(folder)) home.remove_suffix(kCache.size() + 1);
  return std::string(home) + std::string(name.substr(0, name.find('.'))) + ".py";
}

}  // namespace

bool ProtectedPaths::covers(std::string_view path) const {
  if (any_glob_covers(globs_, path)) return true;
  const std::string source = source_of(path);
  return !source.empty() && any_glob_covers(globs_, source);
}

bool ProtectedPaths::reaches(std::string_view folder) const {
  if (any_glob_reaches(globs_, folder)) return true;
  const std::string inside = std::string(folder) + '/';
  if (!is_cache(inside)) return false;
  return any_glob_reaches(globs_,
                          std::string_view(inside).substr(0, inside.size() - kCache.size() - 1));
}

}  // namespace proctor
