#include "common/pilot/variants.h"

#include <algorithm>
#include <array>

#include "common/base/text.h"
#include "common/pilot/mutants.h"

namespace proctor {
namespace {

const std::vector<std::string>& test_names() {
  static const std::vector<std::string> kNames{"**/*_test.*", "**/test_*", "**/*.t", "**/*Test.*"};
  return kNames;
}
const std::vector<std::string>& test_folders() {
  static const std::vector<std::string> kFolders{"**/test*"};
  return kFolders;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

const ReferencedFile* reference_of(const Contract& contract) {
  if (contract.reference_patch.empty()) return nullptr;
  const auto it =
      std::ranges::find(contract.files, contract.reference_patch, &ReferencedFile::path);
  return it == contract.files.end() ? nullptr : &*it;
}

// A new file of one line; empty where a rule of the contract speaks of it.
std::string new_file(const Contract& contract, const std::string& path, std::string_view line) {
  const Policy& policy = contract.policy;
  if (!policy.writable.empty() && !any_glob_covers(policy.writable, path)) return "";
  if (is_test_path(contract, path)) return "";
  std::string out = "diff --git a/" + path + " b/" + path +
                    "\nnew file mode 100644\n--- /dev/null\n+++ b/" + path + "\n@@ -0,0 +1 @@\n+";
  return out.append(line).append("\n");
}

// Ends the process with 0, whatever was to come.
struct Exit {
  std::string_view path, statement;
};
constexpr std::string_view kPythonExit = "__import__('os')._exit(0)";
constexpr std::string_view kPerlExit = "BEGIN { require POSIX; POSIX::_exit(0); } 1;";
constexpr std::string_view kRubyExit = "exit!(0)";
// Runners' names, where an interpreter looks in the workspace first.
constexpr std::array<Exit, 7> kShadows{{{"unittest.py", kPythonExit},
                                        {"pytest.py", kPythonExit},
                                        {"sitecustomize.py", kPythonExit},
                                        {"Test/More.pm", kPerlExit},
                                        {"lib/Test/More.pm", kPerlExit},
                                        {"minitest/autorun.rb", kRubyExit},
                                        {"lib/minitest/autorun.rb", kRubyExit}}};
// By the end of a file's name.
constexpr std::array<Exit, 16> kExits{{{".py", kPythonExit},
                                       {".pl", kPerlExit},
                                       {".pm", kPerlExit},
                                       {".rb", kRubyExit},
                                       {".js", "process.exit(0);"},
                                       {".mjs", "process.exit(0);"},
                                       {".cjs", "process.exit(0);"},
                                       {".ts", "process.exit(0);"},
                                       {".sh", "exit 0"},
                                       {".lua", "os.exit(0)"},
                                       {".php", "exit(0);"},
                                       {".rs", "std::process::exit(0);"},
                                       {".java", "Runtime.getRuntime().halt(0);"},
                                       {".c", "__builtin__exit(0);"},
                                       {".cc", "__builtin__exit(0);"},
                                       {".cpp", "__builtin__exit(0);"}}};

std::string shadowed_runner(const Contract& contract) {
  std::string out;
  for (const Exit& e : kShadows) out += new_file(contract, std::string(e.path), e.statement);
  return out;
}

// The hunk as it was before, with the statement where its changes begin.
PatchHunk with_exit(const PatchHunk& hunk, std::string_view statement) {
  const auto changed = [](const std::string& line) { return line[0] == '+' || line[0] == '-'; };
  PatchHunk out = hunk;
  out.lines.clear();
  bool dropped = false, placed = false;
  for (const std::string& line : hunk.lines) {
    if (changed(line) && !placed) {
      const std::size_t text = std::min(line.find_first_not_of(" \t", 1), line.size());
      out.lines.push_back("+" + line.substr(1, text - 1) + std::string(statement));
      placed = true;
    }
    dropped = line[0] == '+' || (line[0] == '\\' && dropped);
    if (!dropped) out.lines.push_back(line[0] == '-' ? " " + line.substr(1) : line);
  }
  return out;
}

// No repair, but an end with 0 where it would begin.
std::string early_exit(const PatchText& source) {
  for (const PatchFile& file : source) {
    const auto exit =
        std::ranges::find_if(kExits, [&](const Exit& e) { return file.path.ends_with(e.path); });
    if (exit == kExits.end() || file.hunks.empty() ||
        file.header.find("+++ /dev/null") != std::string::npos)
      continue;
    PatchFile only = file;
    only.hunks = {with_exit(file.hunks.front(), exit->statement)};
    return render_patch({only});
  }
  return "";
}

}  // namespace

bool is_test_path(const Contract& contract, const std::string& path) {
  if (any_glob_covers(contract.policy.protected_, path)) return true;
  if (std::ranges::any_of(contract.acceptance_files,
                          [&](const AcceptanceFile& f) { return f.to == path; }))
    return true;
  return any_glob_covers(test_names(), path) || any_glob_covers(test_folders(), folder_of(path));
}

PatchParts parts_of(const Contract& contract, PatchText reference) {
  PatchParts out;
  for (PatchFile& file : reference) {
    PatchText& part = is_test_path(contract, file.path) ? out.tests : out.source;
    part.push_back(std::move(file));
  }
  return out;
}

std::vector<std::string> tests_in_reference(const Contract& contract) {
  std::vector<std::string> out;
  const ReferencedFile* file = reference_of(contract);
  if (file == nullptr) return out;
  for (const PatchFile& test : parts_of(contract, parse_patch(file->bytes)).tests)
    out.push_back(test.path);
  return out;
}

std::vector<Variant> variants_of(const Contract& contract, const SelfcheckSettings& settings) {
  std::vector<Variant> out;
  const ReferencedFile* reference = reference_of(contract);
  if (reference != nullptr) out.push_back({kVariantReference, reference->bytes});
  out.push_back({kVariantNoop});
  out.push_back({kVariantEmpty});
  const auto add = [&](const char* name, std::string patch) {
    if (!patch.empty()) out.push_back({name, std::move(patch)});
  };
  add(kVariantJunk,
      new_file(contract, "proctor-selfcheck-junk.txt", "Nothing asks for this file."));
  add(kVariantShadowedRunner, shadowed_runner(contract));
  if (reference == nullptr) return out;
  const PatchParts parts = parts_of(contract, parse_patch(reference->bytes));
  const bool both = !parts.tests.empty() && !parts.source.empty();
  if (!parts.tests.empty()) out.push_back({kVariantTestsOnly, render_patch(parts.tests)});
  if (both) out.push_back({kVariantSourceOnly, render_patch(parts.source)});
  add(kVariantEarlyExit, early_exit(parts.source));
  for (Mutant& mutant : mutants_of(parts.source, settings.seed, settings.mutants))
    out.push_back({std::move(mutant.name), std::move(mutant.patch), std::move(mutant.what)});
  return out;
}

}  // namespace proctor
