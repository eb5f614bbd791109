#include <doctest/doctest.h>
#include <unistd.h>

#include "common/images/image_store.h"
#include "tests/integration/sandbox/engine_under_test.h"
#include "tests/integration/sandbox/oci_runtime_under_test.h"
#include "tests/support/test_image.h"
#include "worker/sandbox/runtime_files.h"

namespace proctor::testing {
namespace {

// One store for all cases of this process: unpacking is dear.
struct Images {
  TempDir dir = TempDir::create("proctor-test-images").value();
  TestImage image = write_test_image(dir.path(), "proctor-test:latest").value();
  Images() {
    const auto store = ImageStore::open(dir.path() / "store");
    if (!store.ok()) FAIL(store.error().detail);
    const auto imported = store->import_archive(image.archive);
    if (!imported.ok()) FAIL(imported.error().detail);
  }
};

class OciBench final : public Bench {
 public:
  OciBench(TempDir dir, std::string owner, std::string image, std::unique_ptr<SandboxEngine> engine)
      : dir_(std::move(dir)),
        owner_(std::move(owner)),
        image_(std::move(image)),
        engine_(std::move(engine)) {}
  SandboxEngine& engine() override { return *engine_; }
  const fs::path& scratch() override { return dir_.path(); }
  SandboxSpec spec() override {
    SandboxSpec s;
    s.label = "17.2-agent";
    s.workspace = dir_.path() / "workspace";
    s.image = image_;
    if (auto user = OwnUser::take(); engine_->has_own_users() && user.ok()) s.user = *user;
    s.env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/home/proctor"}};
    return s;
  }
  bool userspace() const override { return engine_->enforcement().contains("kernel"); }
  std::vector<std::string> leftovers() override {
    std::vector<std::string> out = busy_groups_of(owner_);
    const std::string prefix = "proctor-oci-" + std::to_string(::getpid()) + "-";
    for (const auto& folder : fs::directory_iterator(fs::temp_directory_path())) {
      if (!folder.path().filename().string().starts_with(prefix)) continue;
      for (const auto& entry : fs::directory_iterator(folder.path())) {
        const std::string name = entry.path().filename().string();
        if (name == "state") {
          for (const auto& state : fs::directory_iterator(entry.path()))
            out.push_back(state.path().string());
        } else if (name != "shown") {  // to every container, the engine's
          out.push_back(entry.path().string());
        }
      }
    }
    return out;
  }

 private:
  TempDir dir_;
  std::string owner_, image_;
  std::unique_ptr<SandboxEngine> engine_;
};

}  // namespace

std::unique_ptr<Bench> make_oci_bench() {
  SandboxOptions options;
  options.oci_runtime = oci_runtime_under_test();
  const auto runtime = find_oci_runtime(options.oci_runtime);
  if (::geteuid() != 0 || !runtime.ok()) {
    MESSAGE("not run: OCI sandboxes need root and a runtime: "
            << (runtime.ok() ? "" : runtime.error().detail));
    return nullptr;
  }
  static const Images images;
  auto dir = TempDir::create("proctor-sandbox-test");
  REQUIRE(dir.ok());
  REQUIRE(make_dirs(dir->path() / "workspace").ok());
  options.owner = "test-" + std::to_string(::getpid());
  options.images = images.dir.path() / "store";
  auto engine = open_sandbox_engine(SandboxKind::kOci, options);
  if (!engine.ok()) FAIL(engine.error().detail);
  return std::make_unique<OciBench>(std::move(*dir), options.owner, images.image.id,
                                    std::move(*engine));
}

}  // namespace proctor::testing
