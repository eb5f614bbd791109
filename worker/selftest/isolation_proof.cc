#include "worker/selftest/isolation_proof.h"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/digest.h"
#include "common/base/json.h"
#include "common/base/parse.h"
#include "common/base/subprocess.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/images/image_store.h"
#include "worker/sandbox/docker_api.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/selftest/attack_program.h"
#include "worker/selftest/isolation_rules.h"

namespace proctor {
namespace {
constexpr std::size_t kBlock = 512;

// POSIX ustar: name at 0, mode at 100, size at 124, time at 136, checksum at 148, type at 156.
std::string tar_entry(const std::string& name, char type, unsigned mode, std::string_view bytes) {
  std::array<char, kBlock> head{};
  std::memcpy(head.data(), name.data(), name.size());
  std::snprintf(head.data() + 100, 8, "%07o", mode);
  std::snprintf(head.data() + 108, 8, "%07o", 0U);
  std::snprintf(head.data() + 116, 8, "%07o", 0U);
  std::snprintf(head.data() + 124, 12, "%011zo", bytes.size());
  std::snprintf(head.data() + 136, 12, "%011o", 0U);
  std::memset(head.data() + 148, ' ', 8);
  head[156] = type;
  std::memcpy(head.data() + 257, "ustar\00000", 8);
  unsigned sum = 0;
  for (const char c : head) sum += static_cast<unsigned char>(c);
  std::snprintf(head.data() + 148, 8, "%06o", sum);
  std::string out(head.data(), head.size());
  out += bytes;
  out.append((kBlock - bytes.size() % kBlock) % kBlock, '\0');
  return out;
}

std::string ended(std::string tar) {
  return tar.append(2 * kBlock, '\0');
}

// An image that holds the attack program and nothing else, in the format of `docker save`: engines
// and the image store load it without a registry.
struct AttackImage {
  std::string archive;  // a tar
  std::string id;       // "sha256:..."
};
AttackImage make_attack_image(const std::string& name) {
  std::string layer;
  for (const char* folder : {"bin/", "dev/", "etc/", "home/", "opt/", "proc/", "run/", "sbin/",
                             "sys/", "tmp/", "workspace/"})
    layer += tar_entry(folder, '5', 0755, {});
  layer += tar_entry("bin/sh", '0', 0755, attack_program());
  layer += tar_entry("etc/passwd", '0', 0644, "root:x:0:0:root:/:/bin/sh\n");
  layer = ended(std::move(layer));
  const Json config = {
      {"architecture", host_architecture()},
      {"os", "linux"},
      {"config", {{"Env", Json::array({"PATH=/bin"})}}},
      {"rootfs", {{"type", "layers"}, {"diff_ids", {"sha256:" + sha256(layer).hex()}}}}};
  const std::string text = config.dump();
  const std::string hex = sha256(text).hex();
  const Json manifest = Json::array({{{"Config", hex + ".json"},
                                      {"RepoTags", Json::array({name})},
                                      {"Layers", Json::array({"layer.tar"})}}});
  return {
      ended(tar_entry(hex + ".json", '0', 0644, text) + tar_entry("layer.tar", '0', 0644, layer) +
            tar_entry("manifest.json", '0', 0644, manifest.dump())),
      "sha256:" + hex};
}
}  // namespace

LoadedImage::LoadedImage(std::string socket) : socket_(std::move(socket)) {
  static std::atomic<int> next{0};
  name_ = "proctor-selftest:p" + std::to_string(::getpid()) + "." + std::to_string(next++);
}

LoadedImage::~LoadedImage() {
  if (loaded_) (void)call("DELETE", "/images/" + name_, "").ok();
}

Status LoadedImage::load() {
  AttackImage image = make_attack_image(name_);
  id_ = std::move(image.id);
  PROCTOR_CHECK_OK(call("POST", "/images/load?quiet=1", image.archive));
  loaded_ = true;
  return ok_status();
}

Status LoadedImage::call(const char* method, const std::string& target,
                         const std::string& body) const {
  constexpr std::chrono::seconds kWithin{20};
  constexpr std::size_t kReplyMax = std::size_t{4} << 20;
  PROCTOR_TRY(const HttpReply reply,
              DockerApi(socket_).call(method, target, body, kWithin, kReplyMax));
  if (reply.status <= 299) return ok_status();
  return Error{Errc::kUnavailable, "docker engine: " + std::to_string(reply.status)};
}

Result<std::string> import_attack_image(const fs::path& store, const fs::path& dir) {
  const AttackImage image = make_attack_image("proctor-selftest:oci");
  const fs::path archive = dir / "image.tar";
  PROCTOR_CHECK_OK(write_file(archive, image.archive, Durability::kLazy));
  PROCTOR_TRY(const ImageStore opened, ImageStore::open(store));
  PROCTOR_TRY([[maybe_unused]] const auto imported, opened.import_archive(archive));
  return image.id;
}

namespace {
using std::chrono::milliseconds;
using Verdict = IsolationProof::Verdict;

// A look reads all of /proc, and an engine may take seconds: the pauses between them grow.
constexpr milliseconds kPoll{2}, kPollMost{50}, kLongest{20'000};
constexpr std::size_t kOutputMax = 4096, kConfigMax = std::size_t{1} << 20;
constexpr const char* kSentry = "runsc-sandbox";
// Where hosts keep what is theirs.
constexpr const char* kHostFolders[] = {"/", "/boot", "/etc", "/home", "/root", "/run", "/var"};

template <class Wanted>
std::optional<pid_t> find_process(const Wanted& wanted) {
  std::error_code ec;
  for (fs::directory_iterator it("/proc", ec), end; !ec && it != end; it.increment(ec)) {
    const auto pid = whole_number<pid_t>(it->path().filename().native());
    if (pid && wanted(it->path())) return pid;
  }
  return std::nullopt;
}

// By this host's kernel, with these words on its command line.
std::optional<pid_t> find_standing(const std::string& mark) {
  return find_process([&](const fs::path& dir) {
    return read_proc_file(dir / "comm") == std::string(kStandName) + "\n" &&
           read_proc_file(dir / "cmdline").find(mark) != std::string::npos;
  });
}

// The folder that a runtime of gVisor's says it took the container from; empty: it says none.
fs::path bundle_of(const std::string& cmdline) {
  constexpr std::string_view kWord = "--bundle=";
  std::istringstream words(cmdline);
  for (std::string word; std::getline(words, word, '\0');)
    if (word.starts_with(kWord)) return word.substr(kWord.size());
  return {};
}

// The process that is the kernel of what has these words on its command line: control groups do not
// tell, for they are used again by one sandbox after the other, under names of their own.
std::optional<pid_t> find_sentry(const std::string& mark) {
  return find_process([&](const fs::path& dir) {
    const std::string cmdline = read_proc_file(dir / "cmdline");
    if (!cmdline.starts_with(kSentry)) return false;
    const auto config = read_file(bundle_of(cmdline) / "config.json", kConfigMax);
    return config.ok() && config->find(mark) != std::string::npos;
  });
}

// The program in its sandbox, for as long as this lives.
class Standing {
 public:
  Standing(SandboxEngine& engine, SandboxSpec spec, const ExecSpec& exec)
      : runs_([this, &engine, spec = std::move(spec), exec](const std::stop_token& stop) {
          result_ = run(engine, spec, exec, stop);
          ended_ = true;
        }) {}
  bool has_ended() const { return ended_; }
  // Ends it; what came of it.
  Result<ExecOutcome> finish() {
    runs_.request_stop();
    if (runs_.joinable()) runs_.join();
    return *result_;
  }

 private:
  static Result<ExecOutcome> run(SandboxEngine& engine, const SandboxSpec& spec,
                                 const ExecSpec& exec, const std::stop_token& stop) {
    PROCTOR_TRY(const auto sandbox, engine.open(spec));
    return sandbox->run(exec, stop);
  }
  std::optional<Result<ExecOutcome>> result_;
  std::atomic<bool> ended_{false};
  std::jthread runs_;  // the last: it uses the others
};

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : "; ") + text;
  return out;
}

std::vector<HostPlace> hidden_places(const ProcessView& host, const std::vector<fs::path>& ours) {
  std::vector<fs::path> all(std::begin(kHostFolders), std::end(kHostFolders));
  all.insert(all.end(), ours.begin(), ours.end());
  std::vector<HostPlace> out;
  for (const fs::path& path : all) {
    std::error_code ec;
    const fs::path real = fs::canonical(path, ec);
    if (!ec) out.push_back(host_place(host.mounts, real.string()));
  }
  return out;
}

IsolationProof told(const std::vector<std::string>& broken) {
  return {broken.empty() ? Verdict::kProved : Verdict::kRefuted, joined(broken)};
}

class Prover {
 public:
  Prover(SandboxEngine& engine, const SandboxSpec& spec, const IsolationPlace& place)
      : engine_(engine), spec_(spec), place_(place), limits_(engine.enforcement()) {
    static std::atomic<int> next{0};
    mark_ = "run=" + std::to_string(::getpid()) + ".stand" + std::to_string(next++);
  }

  Result<IsolationProof> prove() {
    ExecSpec exec;
    exec.command = "exec " + std::string(kAttackAt) + "/attack stand " + mark_;
    exec.timeout = kLongest;
    exec.stdout_file = place_.output / "stdout";
    exec.stderr_file = place_.output / "stderr";
    exec.output_max = kOutputMax;
    std::error_code ec;
    fs::remove(exec.stdout_file, ec);  // of an earlier one, which said that it stood
    Standing standing(engine_, spec_, exec);
    std::optional<Result<IsolationProof>> found;
    for (milliseconds pause = kPoll; !found && !standing.has_ended();
         pause = std::min(2 * pause, kPollMost)) {
      // Asked first: what it says it was before we looked for it.
      const bool stands = says_it_stands(exec.stdout_file);
      found = is_userspace() ? look_at_sentry(stands) : look(stands);
      if (!found) pause_for(pause, {});
    }
    PROCTOR_TRY(const ExecOutcome outcome, standing.finish());
    if (found) return *std::move(found);
    return Error{Errc::kUnavailable,
                 "nothing stood still in it: exit code " + std::to_string(outcome.exit_code)};
  }

 private:
  bool is_userspace() const { return limits_.contains("kernel"); }

  static bool says_it_stands(const fs::path& file) {
    const auto said = read_file(file, 2 * kOutputMax);
    return said.ok() && said->find(kStandsLine) != std::string::npos;
  }

  std::optional<Result<IsolationProof>> look(bool stands) const {
    const auto pid = find_standing(mark_);
    if (!pid && !stands) return std::nullopt;
    if (!pid)
      return IsolationProof{Verdict::kUnseen, "its processes are not to be seen from this worker"};
    return judge(*pid, [&](const ProcessView& inside, const ProcessView& host) {
      return broken_promises(inside, host, isolation_rules(engine_.kind(), limits_, spec_),
                             hidden_places(host, place_.hidden));
    });
  }

  // A kernel in user space has its own processes, which this host's does not know.
  std::optional<Result<IsolationProof>> look_at_sentry(bool stands) const {
    if (find_standing(mark_)) return told({"its kernel is the host's"});
    if (!stands) return std::nullopt;
    const auto pid = find_sentry(mark_);
    if (!pid) return IsolationProof{Verdict::kUnseen, "its kernel is not to be seen"};
    return judge(*pid, [&](const ProcessView& kernel, const ProcessView& host) {
      return broken_userspace(kernel, host, spec_);
    });
  }

  template <class Judge>
  static Result<IsolationProof> judge(pid_t pid, const Judge& broken) {
    const auto inside = look_at_process(pid), host = look_at_process(::getpid());
    for (const auto* view : {&inside, &host})
      if (!view->ok()) return IsolationProof{Verdict::kUnseen, view->error().detail};
    return told(broken(*inside, *host));
  }

  SandboxEngine& engine_;
  const SandboxSpec& spec_;
  const IsolationPlace& place_;
  std::map<std::string, std::string> limits_;
  std::string mark_;
};
}  // namespace

Result<IsolationProof> prove_isolation(SandboxEngine& engine, const SandboxSpec& spec,
                                       const IsolationPlace& place) {
  return Prover(engine, spec, place).prove();
}

// The proof of a whole kind: what a worker asks at its start.

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
