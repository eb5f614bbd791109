// Paths and globs of agents and archives, split at NULs: none that is called safe leaves its
// folder, a check's folder is one plain name, and globs mean what the obvious slow matcher says.
#include <vector>

#include "common/base/text.h"
#include "common/trace/evidence.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::hostile_path {

using Parts = std::vector<std::string_view>;

Parts components(std::string_view path) {
  Parts out;
  while (!path.empty()) out.push_back(take_part(path, '/'));
  return out;
}

bool name_matches(std::string_view glob, std::string_view name) {
  if (glob.empty()) return name.empty();
  if (glob.front() == '*')
    return name_matches(glob.substr(1), name) ||
           (!name.empty() && name_matches(glob, name.substr(1)));
  return !name.empty() && (glob.front() == '?' || glob.front() == name.front()) &&
         name_matches(glob.substr(1), name.substr(1));
}

// From component `g` of the glob and `p` of the path on.  The empty path is never covered.
bool covers(const Parts& glob, std::size_t g, const Parts& path, std::size_t p) {
  if (g == glob.size()) return 0 < p;  // and all that is below what matched
  if (glob[g] == "**")
    return covers(glob, g + 1, path, p) || (p < path.size() && covers(glob, g, path, p + 1));
  return p < path.size() && name_matches(glob[g], path[p]) && covers(glob, g + 1, path, p + 1);
}

void check_path(std::string_view path) {
  const std::string name = check_dir_name(path);
  PROCTOR_ASSERT(is_safe_relative(name) && name.find('/') == std::string::npos &&
                 name.size() < 256);
  if (!is_safe_relative(path)) return;
  const fs::path root = "/root/of/it";
  const std::string joined = (root / std::string(path)).lexically_normal().string();
  PROCTOR_ASSERT(joined.starts_with(root.string() + "/"));
}

void target(std::string_view bytes) {
  const std::string_view path = take_part(bytes, '\0'), glob = bytes;
  check_path(path);
  if (!is_safe_relative(path) || !is_safe_relative(glob)) return;
  const bool covered = glob_covers(glob, path);
  // The slow one is exponential in the stars.
  if (glob.size() + path.size() < 32)
    PROCTOR_ASSERT(covered == covers(components(glob), 0, components(path), 0));
}

}  // namespace proctor::fuzz::hostile_path
