#pragma once
// Path globs as contracts write them: `*` and `?` inside one component, `**` for any number of
// components.  A glob that matches a folder covers everything under it.  Pure; no failures: a
// glob that can match nothing matches nothing.
#include <string>
#include <string_view>
#include <vector>

namespace proctor {

// Both relative, '/' between components; a trailing '/' of the glob is ignored.
bool glob_covers(std::string_view glob, std::string_view path);
bool any_glob_covers(const std::vector<std::string>& globs, std::string_view path);
// May something below `folder` be covered, or all of it?  "" is the root.
bool any_glob_reaches(const std::vector<std::string>& globs, std::string_view folder);

}  // namespace proctor
