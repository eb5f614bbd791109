#include "worker/selftest/isolation_proof.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/parse.h"
#include "common/base/system_clock.h"
#include "worker/selftest/isolation_rules.h"
#include "worker/selftest/process_view.h"
#include "worker/selftest/stand_name.h"

namespace proctor {
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

}  // namespace proctor
