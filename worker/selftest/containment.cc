#include "worker/selftest/containment.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/base/words.h"
#include "worker/selftest/attack_program.h"
#include "worker/selftest/isolation_proof.h"
#include "worker/selftest/isolation_rules.h"

namespace proctor {
namespace {
Result<UniqueFd> listening(const sockaddr* address, socklen_t size, int family) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error("bait: socket", errno);
  if (::bind(fd.get(), address, size) != 0 || ::listen(fd.get(), 16) != 0)
    return errno_error("bait: listen", errno);
  return fd;
}

Result<UniqueFd> listening_unix(std::string_view path, bool abstract) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t skip = abstract ? 1 : 0;
  if (sizeof address.sun_path <= path.size() + skip)
    return Error{Errc::kInvalid, "bait: " + std::string(path) + " is too long for a socket"};
  std::copy(path.begin(), path.end(), static_cast<char*>(address.sun_path) + skip);
  const std::size_t size =
      abstract ? offsetof(sockaddr_un, sun_path) + skip + path.size() : sizeof address;
  return listening(reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size),
                   AF_UNIX);
}
}  // namespace

Result<Bait> Bait::lay(const fs::path& dir) {
  Bait bait;
  bait.secret_ = dir / "secret";
  bait.socket_ = dir / "engine.sock";
  bait.abstract_ = "proctor-bait-" + std::to_string(::getpid()) + "-" + dir.filename().string();
  std::error_code ec;
  bait.program_ = fs::read_symlink("/proc/self/exe", ec).filename().string();
  PROCTOR_CHECK_OK(
      write_file(bait.secret_, "a secret of the host\n", Durability::kLazy, kOpenFile));
  PROCTOR_TRY(bait.file_socket_, listening_unix(bait.socket_.string(), false));
  PROCTOR_TRY(bait.abstract_socket_, listening_unix(bait.abstract_, true));
  sockaddr_in local{};
  local.sin_family = AF_INET;
  local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  PROCTOR_TRY(bait.tcp_,
              listening(reinterpret_cast<const sockaddr*>(&local), sizeof local, AF_INET));
  socklen_t size = sizeof local;
  if (::getsockname(bait.tcp_.get(), reinterpret_cast<sockaddr*>(&local), &size) != 0)
    return errno_error("bait: getsockname", errno);
  bait.port_ = ntohs(local.sin_port);
  return bait;
}

std::string Bait::words() const {
  return "secret=" + secret_.string() + " engine=" + socket_.string() +
         " port=" + std::to_string(port_) + " abstract=" + abstract_ + " mark=" + program_;
}

namespace {
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Verdict = ContainmentResult::Verdict;

constexpr std::size_t kOutputMax = std::size_t{256} << 10;
constexpr std::uint64_t kDiskBytes = std::uint64_t{32} << 20, kDiskFiles = 500,
                        kFileBytes = std::uint64_t{8} << 20;
// From the end of its time to the end of all of it; and what an engine needs to say so, which is
// much more on a host under load: at most so many times what it needs then to run nothing at all.
constexpr milliseconds kKillWithin{2'000}, kEngineNeeds{1'500};
constexpr int kTimesNothing = 10;

constexpr auto kEnds = each_once(std::to_array<Word<ExecOutcome::End>>(
    {{"it ended by itself", ExecOutcome::End::kExited},
     {"it was killed by a signal", ExecOutcome::End::kSignalled},
     {"only its time limit ended it", ExecOutcome::End::kTimedOut},
     {"it was stopped at its memory limit", ExecOutcome::End::kMemory},
     {"it was stopped at its disk limit", ExecOutcome::End::kDisk},
     {"it was stopped at its CPU limit", ExecOutcome::End::kCpu},
     {"it was cancelled", ExecOutcome::End::kCancelled}}));

// The first few lines that begin with `word`.
std::string lines_in(std::string_view out, std::string_view word) {
  constexpr int kShown = 5;
  std::string text;
  int count = 0;
  while (!out.empty()) {
    std::string_view line = take_until(out, '\n');
    if (!take_word(line, word) || kShown < ++count) continue;
    text += (text.empty() ? "" : "; ") + printable(line, 160);
  }
  return text;
}

// Living processes of this machine with `mark` in their command line.
std::size_t processes_marked(std::string_view mark) {
  std::size_t count = 0;
  std::error_code ec;
  for (fs::directory_iterator it("/proc", ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
    if (read_proc_file(it->path() / "cmdline").find(mark) != std::string::npos) ++count;
  }
  return count;
}
}  // namespace

Containment::Containment(SandboxEngine& engine, SandboxSpec base, fs::path dir, Bait bait)
    : engine_(&engine), base_(std::move(base)), dir_(std::move(dir)), bait_(std::move(bait)) {}

Result<Containment> Containment::prepare(SandboxEngine& engine, SandboxSpec base,
                                         const fs::path& dir) {
  PROCTOR_CHECK_OK(make_dirs(dir / "program"));
  PROCTOR_CHECK_OK(make_dirs(dir / "bait"));
  PROCTOR_CHECK_OK(
      write_file(dir / "program/attack", attack_program(), Durability::kLazy, /*mode=*/0755));
  PROCTOR_TRY(Bait bait, Bait::lay(dir / "bait"));
  return Containment(engine, std::move(base), dir, std::move(bait));
}

SandboxSpec Containment::spec_of(const ContainmentCase& what) const {
  SandboxSpec spec = base_;
  spec.label = std::string("selftest-") + what.name;
  spec.workspace = dir_ / "workspace";
  spec.workspace_volume.clear();
  // As runs have it.
  if (engine_->has_own_users())
    if (auto user = OwnUser::take(); user.ok()) spec.user = std::move(user).value();
  spec.mounts.push_back({dir_ / "program", kAttackAt, false});
  spec.env = {{"PATH", "/usr/bin:/bin"}, {"HOME", "/home/proctor"}};
  spec.memory_bytes = what.memory_mib << 20;
  spec.processes = what.processes;
  spec.cpu = what.cpu;
  spec.file_bytes = kFileBytes;
  spec.disk.places = {{spec.workspace, 0, 0}};
  spec.disk.bytes = kDiskBytes;
  spec.disk.files = kDiskFiles;
  return spec;
}

ContainmentResult Containment::run(const ContainmentCase& what) {
  const auto begun = Clock::now();
  ContainmentResult result;
  if (!what.harmless && !proved_) {
    result.verdict = Verdict::kNotTried;
    result.detail = "it would harm a host that nothing protects from it";
    return result;
  }
  // The attack would succeed, at the host's cost.
  if (what.limit != nullptr) {
    const auto limits = engine_->enforcement();
    const auto by = limits.find(what.limit);
    if (by == limits.end() || by->second == "none") {
      result.verdict = Verdict::kNotEnforced;
      result.detail = "nobody keeps this limit here: not tried";
      return result;
    }
  }
  const SandboxSpec spec = spec_of(what);
  if (const Status made = make_dirs(spec.workspace); !made.ok()) {
    result.detail = made.error().detail;
    return result;
  }
  ::chmod(spec.workspace.c_str(), 0777);  // the user inside may be another
  result = what.proof ? prove(spec) : attack(what, spec);
  if (const Status gone = remove_tree(spec.workspace); !gone.ok()) {
    result.detail += (result.detail.empty() ? "" : "; ") + gone.error().detail;
    if (result.verdict == Verdict::kContained) result.verdict = Verdict::kEscaped;
  }
  // One escape is enough: what is worse is not tried after it.
  if (what.proof) proved_ = result.verdict == Verdict::kContained;
  if (result.verdict == Verdict::kEscaped) proved_ = false;
  result.took = std::chrono::duration_cast<milliseconds>(Clock::now() - begun);
  return result;
}

ContainmentResult Containment::prove(const SandboxSpec& spec) {
  ContainmentResult result;
  const auto proof = prove_isolation(*engine_, spec, {dir_, {dir_}});
  result.detail = proof.ok() ? proof->detail : proof.error().detail;
  if (!proof.ok()) return result;
  using Proof = IsolationProof::Verdict;
  result.verdict = proof->verdict == Proof::kProved    ? Verdict::kContained
                   : proof->verdict == Proof::kRefuted ? Verdict::kEscaped
                                                       : Verdict::kNotTried;
  return result;
}

ContainmentResult Containment::attack(const ContainmentCase& what, const SandboxSpec& spec) {
  static std::atomic<int> next{0};
  const std::string mark = "run=" + std::to_string(::getpid()) + "." + std::to_string(next++);
  ContainmentResult result;
  const auto fail = [&](const Error& e) {
    result.detail = e.detail;
    return result;
  };
  ExecSpec exec;
  exec.command = "exec " + std::string(kAttackAt) + "/attack " + what.attack + " " + bait_.words() +
                 " " + mark;
  exec.timeout = what.timeout;
  exec.stdout_file = dir_ / "stdout";
  exec.stderr_file = dir_ / "stderr";
  exec.output_max = kOutputMax;
  auto sandbox = engine_->open(spec);
  if (!sandbox.ok()) return fail(sandbox.error());
  const auto ran_from = Clock::now();
  auto outcome = (*sandbox)->run(exec, {});
  const auto ran = std::chrono::duration_cast<milliseconds>(Clock::now() - ran_from);
  if (!outcome.ok()) return fail(outcome.error());
  result.outcome = *outcome;
  result.detail = judge(what, exec, *outcome, mark);
  sandbox->reset();
  if (result.detail.empty() && what.timeout + kKillWithin + kEngineNeeds < ran) {
    const auto nothing = cost_of_nothing(spec);
    if (!nothing.ok()) return fail(nothing.error());
    if (what.timeout + kKillWithin + kTimesNothing * *nothing < ran)
      result.detail = "it took " + std::to_string(ran.count()) + " ms to end it";
  }
  result.verdict = result.detail.empty() ? Verdict::kContained : Verdict::kEscaped;
  return result;
}

Result<milliseconds> Containment::cost_of_nothing(const SandboxSpec& spec) {
  ExecSpec exec;
  exec.command = "true";
  exec.timeout = ContainmentCase{}.timeout;
  exec.stdout_file = dir_ / "stdout";
  exec.stderr_file = dir_ / "stderr";
  exec.output_max = kOutputMax;
  PROCTOR_TRY(auto sandbox, engine_->open(spec));
  const auto from = Clock::now();
  PROCTOR_CHECK_OK(sandbox->run(exec, {}));
  return std::chrono::duration_cast<milliseconds>(Clock::now() - from);
}

std::string Containment::judge(const ContainmentCase& what, const ExecSpec& exec,
                               const ExecOutcome& out, const std::string& mark) const {
  const auto said = read_file(exec.stdout_file, 2 * kOutputMax);
  const auto complained = read_file(exec.stderr_file, 2 * kOutputMax);
  if (!said.ok()) return said.error().detail;
  if (!complained.ok()) return complained.error().detail;
  if (const std::string escapes = lines_in(*said, "ESCAPED: "); !escapes.empty()) return escapes;
  // Nobody has stopped what it had, and no time was left to see whether somebody would.
  if (const std::string beyond = lines_in(*said, "BEYOND: ");
      !beyond.empty() && out.end == ExecOutcome::End::kTimedOut)
    return std::string(word_in(kEnds, out.end)) + ", and it had " + beyond;
  if (std::ranges::find(what.ends, out.end) == what.ends.end()) {
    return std::string(word_in(kEnds, out.end)) + " (exit code " + std::to_string(out.exit_code) +
           ") " + printable(*complained, 200);
  }
  const bool flooded = kOutputMax <= said->size();
  if (kOutputMax < said->size() || kOutputMax < complained->size())
    return "more output was kept than is allowed";
  if (what.done && !flooded && said->find("DONE") == std::string::npos) {
    return "it did not come to its end: exit code " + std::to_string(out.exit_code) + ", " +
           printable(*said, 100) + printable(*complained, 200);
  }
  if (flooded && out.stdout_bytes <= kOutputMax) return "output was lost without being counted";
  if (std::string_view(what.name) == "memory-by-many" && 0 < out.memory_peak &&
      (what.memory_mib << 20) < out.memory_peak)
    return "all together had " + std::to_string(out.memory_peak) + " bytes";
  if (const std::size_t left = processes_marked(mark); left != 0)
    return std::to_string(left) + " of its processes are still alive";
  return {};
}

// The attacks of a hostile agent, and what must come of each.

const std::vector<ContainmentCase>& containment_cases() {
  using End = ExecOutcome::End;
  static const std::vector<ContainmentCase> all = [] {
    std::vector<ContainmentCase> c;
    const auto add = [&](const char* name, const char* promise, std::string attack) -> auto& {
      c.push_back({name, promise, std::move(attack), {End::kExited}, true});
      return c.back();
    };
    // Whose end the sandbox must bring about.
    const auto stopped = [&](const char* name, const char* promise, std::string attack,
                             const char* limit, std::vector<End> ends) -> auto& {
      ContainmentCase& one = add(name, promise, std::move(attack));
      one.ends = std::move(ends);
      one.done = false;
      one.limit = limit;
      return one;
    };
    // Harmless on any host.
    {
      ContainmentCase& one =
          add("isolation", "namespaces, rights, mounts and user are as promised, seen by the host",
              "stand");
      one.proof = one.harmless = true;
    }
    add("other-processes", "processes of the host are not to be seen", "other-processes").harmless =
        true;
    add("network", "nothing leaves by any network, and the host's loopback is not there", "network")
        .harmless = true;
    add("odd-names", "terminal escapes in names and output end nothing", "odd-names").harmless =
        true;
    // These would mount, kill, set and fill where nothing is in their way.
    add("host-files", "files, devices and sockets of the host are out of reach", "host-files");
    add("sandbox-init", "who reports the exit code cannot be traced, read or written",
        "sandbox-init");
    add("privileges", "no capability, namespace, mount, user or higher limit is to be had",
        "privileges");
    add("kernel-calls", "clocks, keyrings, modules, logs and the like are refused", "kernel-calls");
    add("unlisted-calls", "no system call is to be had but those of the published list",
        "unlisted-calls");
    add("file-size", "no single file is larger than the disk limit, with or without holes",
        "one-large-file mib=8")
        .limit = "file";
    add("descriptors", "open files are limited", "exhaust-descriptors").limit = "open_files";
    {
      ContainmentCase& one = add("tmp-in-memory", "what fills /tmp and shared memory is counted",
                                 "fill-memory-folders mib=256");
      one.ends = {End::kExited, End::kMemory, End::kSignalled};
      one.done = false;
      one.limit = "memory_files";
    }
    for (const auto& [name, attack] :
         {std::pair{"memory-tcp", "hold-sockets kind=tcp mib=200 allowed=72"},
          std::pair{"memory-udp", "hold-sockets kind=udp mib=200 allowed=72"}}) {
      ContainmentCase& one =
          stopped(name, "what sockets hold of memory is limited", attack, "memory_sockets",
                  {End::kExited, End::kMemory, End::kTimedOut});
      one.memory_mib = 64;
    }
    for (const auto& [name, attack] :
         {std::pair{"memory-netlink", "hold-sockets kind=netlink mib=200 allowed=16"},
          std::pair{"memory-datagrams", "hold-sockets kind=begun mib=24 allowed=16"}}) {
      ContainmentCase& one = stopped(name, "... and what no control group counts of it", attack,
                                     "disk", {End::kMemory, End::kExited, End::kTimedOut});
      one.memory_mib = 64;
    }
    stopped("kill-all", "signals reach nothing but the attack itself", "kill-all", nullptr,
            {End::kSignalled, End::kExited});
    stopped("fork-bomb", "processes beyond the limit are not to be had", "fork-bomb most=66",
            "processes", {End::kTimedOut})
        .timeout = milliseconds(700);
    {
      ContainmentCase& one = stopped("memory-bomb", "memory beyond the limit ends the command",
                                     "memory-bomb", "memory", {End::kMemory, End::kSignalled});
      one.memory_mib = 64;
    }
    {
      ContainmentCase& one =
          stopped("memory-by-many", "memory of all processes together is limited",
                  "memory-bomb children=8 mib=32", "memory_sum",
                  {End::kMemory, End::kSignalled, End::kExited, End::kTimedOut});
      one.memory_mib = 64;
      one.timeout = milliseconds(1'500);
    }
    {
      ContainmentCase& one = stopped("cpu", "CPU seconds of all processes together are limited",
                                     "spin processes=4", "cpu", {End::kCpu});
      one.cpu = milliseconds(1'000);
    }
    stopped("disk-full", "bytes on disk beyond the limit end the command", "fill-files mib=4",
            "disk", {End::kDisk});
    stopped("disk-behind-descriptors", "... whatever else there is to be looked at",
            "fill-files mib=4 holders=25 most=1024", "disk", {End::kDisk});
    stopped("empty-files", "files on disk beyond the limit end the command", "fill-empty", "disk",
            {End::kDisk});
    stopped("deep-folders", "folders deeper than any program can follow are cleared away",
            "deep-folders depth=100000", nullptr, {End::kExited, End::kDisk});
    add("output", "output is cut and counted, lines without an end too", "output-flood mib=48");
    stopped("survivors-at-exit",
            "detached, deaf, stopped and fleeing processes end with the command", "survivors",
            nullptr, {End::kExited});
    stopped("survivors-at-timeout", "... and with its time limit, within two seconds",
            "survivors stay=1", nullptr, {End::kTimedOut})
        .timeout = milliseconds(500);
    return c;
  }();
  return all;
}
}  // namespace proctor
