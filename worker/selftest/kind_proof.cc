// The proof of a whole kind: what a worker asks at its start.
#include <sys/stat.h>

#include <memory>
#include <optional>
#include <utility>

#include "worker/sandbox/runtime_files.h"
#include "worker/selftest/attack_program.h"
#include "worker/selftest/isolation_proof.h"
#include "worker/selftest/loaded_image.h"

namespace proctor {
namespace {

constexpr const char* kFolderPrefix = "proctor-proof-";

}  // namespace

Result<IsolationProof> prove_kind(SandboxEngine& engine, const SandboxOptions& options) {
  // Of a worker that was killed meanwhile, the next one takes it away.  Readable by all, for the
  // user in a container is not us.
  remove_left_folders(kFolderPrefix);
  PROCTOR_TRY(const HeldFolder dir, make_runtime_folder(kFolderPrefix));
  SandboxSpec spec;
  spec.label = "proof-" + dir.path().filename().string();
  spec.workspace = dir.path() / "workspace";
  if (engine.has_own_users()) {
    PROCTOR_TRY(spec.user, OwnUser::take());
  }
  spec.env = {{"PATH", "/usr/bin:/bin"}, {"HOME", "/home/proctor"}};
  spec.mounts = {{dir.path() / "program", kAttackAt, false}};
  const IsolationPlace place{dir.path(), {dir.path()}};
  PROCTOR_CHECK_OK(make_dirs(spec.workspace));
  ::chmod(spec.workspace.c_str(), 0777);  // nor is he ours
  PROCTOR_CHECK_OK(make_dirs(dir.path() / "program"));
  PROCTOR_CHECK_OK(write_file(dir.path() / "program/attack", attack_program(), Durability::kLazy,
                              /*mode=*/0755));
  if (engine.kind() == SandboxKind::kDocker) {
    LoadedImage image(options.docker_socket);
    PROCTOR_CHECK_OK(image.load());
    spec.image = image.id();
    return prove_isolation(engine, spec, place);
  }
  if (engine.kind() != SandboxKind::kOci) return prove_isolation(engine, spec, place);
  // Of the same runtime; which images its store holds, and whether they have a shell, is theirs.
  SandboxOptions apart = options;
  apart.images = dir.path() / "store";
  PROCTOR_TRY(spec.image, import_attack_image(apart.images, dir.path()));
  PROCTOR_TRY(const auto other, open_sandbox_engine(SandboxKind::kOci, apart));
  if (!other->has_own_users()) spec.user.reset();  // its store lies on another file system
  return prove_isolation(*other, spec, place);
}

}  // namespace proctor
