#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>

#include "common/images/image_store.h"
#include "tests/hostile/kind.h"
#include "tests/integration/sandbox/oci_runtime_under_test.h"
#include "tests/support/test_image.h"
#include "worker/sandbox/runtime_files.h"

namespace proctor::testing {
namespace {

constexpr const char* kRuntimeVariable = "PROCTOR_OCI_RUNTIME";

// The programs we start look for images in a store of our own.
struct Oci final : Kind {
  TempDir dir = TempDir::create("hostile-images").value();
  TestImage made;
  explicit Oci(Tools tools) {
    auto written = tools == Tools::kPython ? write_python_image(dir.path(), "tools:1")
                                           : write_test_image(dir.path(), "tools:1");
    if (!written.ok()) FAIL(written.error().detail);
    made = std::move(written).value();
    const fs::path store = dir.path() / "store";
    const auto opened = ImageStore::open(store);
    if (!opened.ok()) FAIL(opened.error().detail);
    const auto imported = opened->import_archive(made.archive);
    if (!imported.ok()) FAIL(imported.error().detail);
    ::setenv(kImageStoreVariable, store.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    if (const std::string runtime = oci_runtime_under_test(); !runtime.empty())
      ::setenv(kRuntimeVariable, runtime.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  Oci(const Oci&) = delete;
  Oci& operator=(const Oci&) = delete;
  ~Oci() override { ::unsetenv(kImageStoreVariable); }  // NOLINT(concurrency-mt-unsafe)
  std::string image() const override { return "tools@" + made.id; }
  // They are that kernel's own.
  bool special_files() const override { return oci_runtime_under_test() != "runsc"; }
  // A kernel in user space starts a program in some ten times the time.
  int patience() const override { return oci_runtime_under_test() == "runsc" ? 6 : 1; }
};

}  // namespace

std::unique_ptr<Kind> make_oci_kind(Tools tools) {
  const auto runtime = find_oci_runtime(oci_runtime_under_test());
  if (::geteuid() == 0 && runtime.ok()) return std::make_unique<Oci>(tools);
  MESSAGE("not run: OCI sandboxes need root and a runtime: "
          << (runtime.ok() ? "" : runtime.error().detail));
  return nullptr;
}

}  // namespace proctor::testing
