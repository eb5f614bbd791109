#include <unistd.h>

#include "tests/hostile/weak.h"
#include "tests/support/programs.h"

namespace proctor::testing {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// By its own name; empty: this machine has none.
std::string find_program(const char* name) {
  CommandSpec find;
  find.argv = {"sh", "-c", std::string("command -v ") + name};
  const CommandOutcome out = must(run_command(find));
  return out.exit_code == 0 ? out.out.substr(0, out.out.find('\n')) : "";
}

}  // namespace

bool may_weaken(const WeakKind& kind) {
  const bool engine = *kind.engine == '\0' || !find_program("dockerd").empty();
  if (::geteuid() == 0 && !find_program(kind.program).empty() && engine) return true;
  MESSAGE("not run: needs root and " << std::string(kind.program)
                                     << (engine ? "" : " and dockerd"));
  return false;
}

std::string lay_weak_program(const fs::path& dir, const WeakKind& kind,
                             const std::string& changes) {
  const std::string script =
      replaced(replaced(kind.script, "@CHANGES@", changes), "@REAL@", find_program(kind.program));
  REQUIRE(make_dirs(dir / "bin").ok());
  REQUIRE(write_file(dir / "bin" / kind.program, script, Durability::kLazy, 0755).ok());
  return (dir / "bin").string();
}

}  // namespace proctor::testing
