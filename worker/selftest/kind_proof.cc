// The proof of a whole kind: what a worker asks at its start.
#include <sys/stat.h>

#include <memory>
#include <optional>
#include <utility>

#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/selftest/attack_program.h"
#include "worker/selftest/isolation_proof.h"
#include "worker/selftest/loaded_image.h"

namespace proctor {
namespace {

constexpr const char* kFolderPrefix = "proctor-proof-";
// Prints a line for each command that fails; one that this host lacks (127) does not count.
constexpr const char* kOrdinary =
    "echo x > f; for c in 'ls -l' 'stat f' 'cp f g' 'mv g h' 'cat h' 'mkdir d' 'ln -s f l' "
    "'chmod 600 h' 'find . -name h' 'rm -r d h l'; do said=$($c 2>&1); code=$?; "
    "[ $code = 0 ] || [ $code = 127 ] || echo \"$c: exit $code, $said\"; done; echo done";

// The first that fails, by this host's programs; "done": all work.
Result<std::string> failing_command(SandboxEngine& engine, SandboxSpec spec, const fs::path& dir) {
  std::error_code ec;
  for (const char* at : {"/bin", "/lib", "/lib64", "/usr"})
    if (const fs::path real = fs::canonical(at, ec); !ec) spec.mounts.push_back({real, at, false});
  ExecSpec exec;
  exec.command = kOrdinary;
  exec.stdout_file = dir / "ordinary";
  exec.stderr_file = dir / "stderr";
  PROCTOR_TRY(const auto sandbox, engine.open(spec));
  PROCTOR_TRY([[maybe_unused]] const ExecOutcome outcome, sandbox->run(exec, {}));
  PROCTOR_TRY(const std::string said, read_file(exec.stdout_file, exec.output_max));
  return said.substr(0, said.find('\n'));
}

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
  PROCTOR_TRY(IsolationProof proof, prove_isolation(*other, spec, place));
  if (options.oci_runtime != kRunsc || proof.verdict == IsolationProof::Verdict::kRefuted)
    return proof;
  const Result<std::string> failing = failing_command(*other, spec, dir.path());
  if (failing.ok() && *failing == "done") return proof;
  CommandSpec version;
  version.argv = {kRunsc, "--version"};
  PROCTOR_TRY(const std::string said, run_for_output(version));
  return IsolationProof{IsolationProof::Verdict::kUnfit,
                        printable(said.substr(0, said.find('\n'))) +
                            " fails ordinary commands (docs/sandbox.md): " +
                            printable(failing.ok() ? *failing : failing.error().detail)};
}

}  // namespace proctor
