#include <algorithm>

#include "common/base/line_pattern.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/score/taxonomy.h"

namespace proctor {
namespace {
// By tool, anchored at the beginning of a line, as versions of 2022 to 2025 write them.  A path
// that is the candidate's own ('./x') is no dependency.
constexpr std::string_view kMissing = "missing_dependency", kOther = "incompatible_environment";
constexpr std::pair<std::string_view, std::string_view> kExtractors[] = {
    // Python, pip
    {kMissing, R"(^(E +)?(ModuleNotFoundError|ImportError|\S*python[\d.]*): No module named )"},
    {kMissing, R"(^ERROR: (Could not find a version that satisfies|No matching distribution) )"},
    {kOther,
     R"(^ERROR: (Package .* requires|Ignored the .* that require) a different (?i:python))"},
    // C and C++, linkers, CMake
    {kMissing, R"(^\S+:\d+:\d+: fatal error: (\S+: No such file or dir|'\S+' file not found))"},
    {kMissing, R"(^\S*ld(\.\w+)?: (cannot find -l|error: unable to find library -l))"},
    {kMissing, R"(^ +(Could not find a package configuration file |Could NOT find .*missing: ))"},
    {kOther, R"(^ *CMake \S+ or higher is required\.)"},
    // Node, npm, TypeScript
    {kMissing, R"(^npm (ERR!|error) code (ETARGET|E404))"},
    {kMissing, R"(^Error( \[ERR_MODULE_NOT_FOUND\])?: Cannot find (module|package) '[^./])"},
    {kMissing, R"(^\S+ (- )?error TS2307: Cannot find module '[^./])"},
    {kOther, R"(^npm (ERR!|error) code (EBADENGINE|EBADPLATFORM))"},
    // Rust
    {kMissing, R"(^error(\[E0432\]: unresolved import `\w+`$|\[E0463\]|: no matching package ))"},
    {kOther, R"(^error: (package .* cannot be built because it|rustc \S+ is not supported by) )"},
    // Go
    {kMissing,
     R"(^(\S+: )?(no required module provides|cannot find( module providing)?) package )"},
    {kMissing, R"(^(\S+: )?package \S+ is not in (GOROOT|std)\b)"},
    {kOther, R"(^(go: \S+ requires go >= |note: module requires Go ))"},
    // Java, Maven, Gradle
    {kMissing, R"(^\[ERROR\] .*Could not (resolve dependencies|find artifact) )"},
    {kMissing, R"(^(\[ERROR\] )?\S+\.java:\S+ (error: )?package \S+ does not exist)"},
    {kMissing, R"(^ *> Could not (find|resolve) \S+:\S+)"},
    {kOther, R"(^(Exception in .*|Caused by: |\s+)?java\.lang\.UnsupportedClassVersionError)"},
    {kOther, R"(^(\[ERROR\] .*)?error: (invalid (source|target) release|release version \d+ not))"},
    // The loader, the kernel
    {kOther, R"(^(\S+: )+version .(GLIBC|GLIBCXX|CXXABI)_\S+ not found)"},
    {kOther, R"(^(line \d+: |\S+: )+(cannot execute binary file: )?Exec format error)"}};

const auto& compiled() {
  static const auto kCompiled = [] {
    std::vector<std::pair<std::string_view, LinePattern>> out;
    for (const auto& [id, text] : kExtractors)
      out.emplace_back(id, LinePattern::compile(text).value());
    return out;
  }();
  return kCompiled;
}
}  // namespace

std::vector<Fragment> FragmentFinder::find(std::string_view output) {
  constexpr std::size_t kLineBytes = 1'000, kAdded = 20;  // printable() adds 19 at most
  std::vector<Fragment> out;
  std::uint64_t number = 0;
  while (!output.empty()) {
    const bool is_read = output.size() <= kReadBytes;
    const std::string_view line = take_until(output, '\n').substr(0, kLineBytes);
    ++number;
    const auto found = std::ranges::find_if(
        compiled(), [&](const auto& e) { return is_read && e.second.matches(line); });
    if (found != compiled().end() && told_[found->first]++ < kMost)
      out.push_back({std::string(found->first), number, printable(line, kTextBytes - kAdded)});
  }
  return out;
}
}  // namespace proctor
