#pragma once
// The containment suite: attacks of a hostile agent, what each must not achieve, and the judge.
// Written once: `proctor-worker selftest` runs it on any host, tests/hostile on every kind of
// sandbox.  Blocking; one thread.  An attack's success is a result, never an Error.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "common/base/words.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// Things of the host that the attacks reach for: a file, sockets that listen with and without a
// path, a port on the loopback.  Owns them; nobody answers there.  Fails with errno_error's codes.
class Bait {
 public:
  // In `dir`, which no sandbox shows.
  static Result<Bait> lay(const fs::path& dir);
  // "secret=... engine=... port=... abstract=... mark=...": the attacks' words.
  std::string words() const;

 private:
  fs::path secret_, socket_;
  std::string abstract_, program_;
  int port_ = 0;
  UniqueFd file_socket_, abstract_socket_, tcp_;
};

// One attack, and what must come of it.
struct ContainmentCase {
  const char* name;
  const char* promise;  // "processes beyond the limit are not to be had"
  std::string attack;   // the program's words
  using End = ExecOutcome::End;
  std::vector<End> ends;  // how it may end
  bool done = false;      // it must have come to its own end
  // On a host that nothing protects from it this does no harm: it looks, asks, sends a packet.  All
  // others are tried only where isolation was just proved from outside.
  bool harmless = false;
  bool proof =
      false;  // that proof: the attack stands still and is looked at, whatever else is here
  // A limit by its name in SandboxEngine::enforcement(): who keeps it is asked of the engine, and
  // "none" there means that nobody keeps this promise.  Null: it is kept by the sandbox's making.
  const char* limit = nullptr;
  // For those that end by themselves or at another limit: so long that they do on a host under
  // load, also where every instruction is emulated.
  std::chrono::milliseconds timeout{120'000};
  std::uint64_t memory_mib = 256;
  std::uint32_t processes = 64;
  std::chrono::milliseconds cpu{0};
};
const std::vector<ContainmentCase>& containment_cases();

struct ContainmentResult {
  enum class Verdict { kContained, kEscaped, kNotEnforced, kNotTried, kError };
  Verdict verdict = Verdict::kError;
  std::string detail;  // what escaped; who does not enforce; why it was not tried; what failed
  std::chrono::milliseconds took{0};
  std::optional<ExecOutcome> outcome{};
};
constexpr auto words(ContainmentResult::Verdict) {
  return std::to_array<Word<ContainmentResult::Verdict>>(
      {{"contained", ContainmentResult::Verdict::kContained},
       {"ESCAPED", ContainmentResult::Verdict::kEscaped},
       {"NOT ENFORCED", ContainmentResult::Verdict::kNotEnforced},
       {"NOT TRIED", ContainmentResult::Verdict::kNotTried},
       {"ERROR", ContainmentResult::Verdict::kError}});
}

class Containment {
 public:
  // `base`: a spec that works on `engine`, but for the workspace.  `dir`: an empty folder of ours,
  // open to others when the user inside is not us.
  static Result<Containment> prepare(SandboxEngine& engine, SandboxSpec base, const fs::path& dir);
  // Cases come in the order of containment_cases(): the proof first.
  ContainmentResult run(const ContainmentCase& what);

 private:
  Containment(SandboxEngine& engine, SandboxSpec base, fs::path dir, Bait bait);
  SandboxSpec spec_of(const ContainmentCase& what) const;
  ContainmentResult attack(const ContainmentCase& what, const SandboxSpec& spec);
  ContainmentResult prove(const SandboxSpec& spec);
  Result<std::chrono::milliseconds> cost_of_nothing(const SandboxSpec& spec);
  std::string judge(const ContainmentCase& what, const ExecSpec& exec, const ExecOutcome& out,
                    const std::string& mark) const;
  SandboxEngine* engine_;
  SandboxSpec base_;
  fs::path dir_;
  Bait bait_;
  bool proved_ = false;  // isolation, and no attack has escaped since
};
}  // namespace proctor
