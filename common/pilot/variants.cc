#include "common/pilot/variants.h"

#include <algorithm>

#include "common/base/glob.h"
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

// A new file of which no rule of the contract speaks; nothing where every new file breaks one.
std::string junk_patch(const Contract& contract) {
  const std::string path = "proctor-selfcheck-junk.txt";
  const Policy& policy = contract.policy;
  if (!policy.writable.empty() && !any_glob_covers(policy.writable, path)) return "";
  if (is_test_path(contract, path)) return "";
  return "diff --git a/" + path + " b/" + path + "\nnew file mode 100644\n--- /dev/null\n+++ b/" +
         path + "\n@@ -0,0 +1 @@\n+Nothing asks for this file.\n";
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
  if (std::string junk = junk_patch(contract); !junk.empty())
    out.push_back({kVariantJunk, std::move(junk)});
  if (reference == nullptr) return out;
  const PatchParts parts = parts_of(contract, parse_patch(reference->bytes));
  const bool both = !parts.tests.empty() && !parts.source.empty();
  if (!parts.tests.empty()) out.push_back({kVariantTestsOnly, render_patch(parts.tests)});
  if (both) out.push_back({kVariantSourceOnly, render_patch(parts.source)});
  for (Mutant& mutant : mutants_of(parts.source, settings.seed, settings.mutants))
    out.push_back({std::move(mutant.name), std::move(mutant.patch), std::move(mutant.what)});
  return out;
}

}  // namespace proctor
