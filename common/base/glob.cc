#include "common/base/glob.h"

#include <algorithm>

#include "common/base/parse.h"

namespace proctor {
namespace {

std::vector<std::string_view> components(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty())
    if (const std::string_view part = take_until(text, '/'); !part.empty()) out.push_back(part);
  return out;
}

// Two pointers and one point to come back to: linear in practice, never exponential.
bool component_matches(std::string_view glob, std::string_view name) {
  std::size_t g = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_name = 0;
  while (n < name.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      star_name = n;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == name[n])) {
      ++g;
      ++n;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

}  // namespace

bool glob_covers(std::string_view glob, std::string_view path) {
  const std::vector<std::string_view> g = components(glob);
  const std::vector<std::string_view> p = components(path);
  if (g.empty()) return false;
  // reach[j]: the globs so far match the first j components.
  std::vector<char> reach(p.size() + 1, 0);
  reach[0] = 1;
  for (const std::string_view part : g) {
    std::vector<char> next(p.size() + 1, 0);
    for (std::size_t j = 0; j <= p.size(); ++j) {
      if (part == "**") {
        next[j] = static_cast<char>(reach[j] != 0 || (0 < j && next[j - 1] != 0));
      } else if (0 < j && reach[j - 1] != 0) {
        next[j] = static_cast<char>(component_matches(part, p[j - 1]));
      }
    }
    reach = std::move(next);
  }
  // A match of a folder on the way (not of the empty path) covers what is under it.
  return std::any_of(reach.begin() + 1, reach.end(), [](char c) { return c != 0; });
}

namespace {

// After the components of `folder`, is some part of the glob still to come, or all of it matched?
bool glob_reaches(std::string_view glob, std::string_view folder) {
  const std::vector<std::string_view> g = components(glob);
  // at[i]: the first i parts match what was read of the folder.
  std::vector<char> at(g.size() + 1, 0);
  at[0] = 1;
  const auto skip_stars = [&] {
    for (std::size_t i = 0; i < g.size(); ++i)
      if (at[i] != 0 && g[i] == "**") at[i + 1] = 1;
  };
  for (const std::string_view name : components(folder)) {
    skip_stars();
    if (at[g.size()] != 0 && !g.empty()) return true;
    std::vector<char> next(g.size() + 1, 0);
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (at[i] == 0) continue;
      if (g[i] == "**")
        next[i] = 1;
      else if (component_matches(g[i], name))
        next[i + 1] = 1;
    }
    at = std::move(next);
  }
  return !g.empty() && std::any_of(at.begin(), at.end(), [](char c) { return c != 0; });
}

}  // namespace

bool any_glob_reaches(const std::vector<std::string>& globs, std::string_view folder) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& g) { return glob_reaches(g, folder); });
}

bool any_glob_covers(const std::vector<std::string>& globs, std::string_view path) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& g) { return glob_covers(g, path); });
}

}  // namespace proctor
