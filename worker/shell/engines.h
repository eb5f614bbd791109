#pragma once
// Engines: which sandbox an attempt runs in.
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/contract/contract.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// The kind a contract asks for; kDocker stands for whatever runs images here.  Pure.
SandboxKind wanted_kind(const Environment& environment);

// The sandbox that an attempt asks for.
struct EngineWish {
  const Environment& environment;
  Isolation isolation = Isolation::kKernel;
};

// Which engine runs images.  kAuto: OCI for those that this host's store holds, Docker for all
// others.
enum class ImageRunner { kAuto, kOci, kDocker };

// Engines: which sandbox an attempt runs in, opened when first asked for and kept.  Thread-safe.
// A contract says whether it runs in an image; one without runs under bubblewrap, never the other
// way round because of what this host lacks.  Which of the two kinds that run images does it is the
// host's: they show a command the same, and the manifest says which it was.
class Engines {
 public:
  enum class Null { kForbidden, kAllowed };
  Engines(SandboxOptions options, Null null, ImageRunner images, std::chrono::seconds engine_wait)
      : options_(std::move(options)), null_(null), images_(images), engine_wait_(engine_wait) {}

  // kUnavailable: this host cannot offer it (the text names the image and the engine), or was seen
  // not to isolate what runs in that kind.
  // kInvalid: a null sandbox outside a benchmark, docker without an image.
  Result<SandboxEngine*> engine_for(const EngineWish& wish);
  // The same, but a Docker Engine that does not answer is waited for, and that is said: it may be
  // restarting, and a run must not be spent on it.  After `engine_wait` another worker may try.
  Result<SandboxEngine*> wait_for(const EngineWish& wish, std::stop_token cancel);
  // Removes what earlier lives of this worker left, in every kind; but for commands of these names,
  // which somebody will adopt.  A Docker Engine that is away keeps its part until it is back, and
  // loses it then, before anything new begins there.
  void clean_up(const std::set<std::string>& keep = {});
  // "sandbox:bubblewrap", ... of the kinds that answer here now.  May take a second.
  // "sandbox:docker" runs every image, "sandbox:oci" those that follow, each as "image:NAME" and by
  // its id; "isolation:userspace" where runsc does, too.
  std::vector<std::string> features();
  // Opens this kind, which takes a while, before anybody needs it.
  void open_ahead(SandboxKind kind) { static_cast<void>(get_proved(kind).ok()); }

 private:
  // A kind; and OCI once more, under runsc whatever runs other images here, for runs that ask for
  // isolation in user space (policy.isolation).
  struct Runtime {
    Runtime(SandboxKind of, bool in_userspace = false)  // NOLINT(google-explicit-constructor)
        : kind(of), userspace(in_userspace) {}
    SandboxKind kind;
    bool userspace;
    friend auto operator<=>(const Runtime&, const Runtime&) = default;
  };
  static inline const Runtime kUserspace{SandboxKind::kOci, true};
  struct Proofs {
    std::mutex mutex{};  // held while one is looked for, which takes as long as a command
    std::map<Runtime, Status> found{};
    std::set<Runtime> refuted{};
  };
  Proofs& proofs_of(const Runtime& of) { return of.userspace ? userspace_proofs_ : proofs_; }
  static std::string name_of(const Runtime& runtime);
  SandboxOptions options_of(const Runtime& runtime) const;
  Result<SandboxEngine*> get(const Runtime& runtime);
  Result<SandboxEngine*> get_proved(const Runtime& runtime);
  Status proved(const Runtime& runtime, SandboxEngine& engine);
  Result<SandboxEngine*> try_again(const Runtime& runtime);
  bool is_refuted(const Runtime& runtime);
  Result<SandboxEngine*> userspace_for(const std::string& image);
  // Is runsc here, does it work (one command tells, once) and isolate (likewise), and does the
  // store hold any image?
  bool offers_userspace();
  SandboxKind kind_for(const Environment& environment);
  bool offers(SandboxKind kind) const;
  bool oci_works(const std::string& image);
  void not_to_be_had(SandboxKind kind, const Error& why);
  SandboxOptions options_;
  Null null_;
  ImageRunner images_;
  std::chrono::seconds engine_wait_;
  std::mutex mutex_;
  std::map<Runtime, std::unique_ptr<SandboxEngine>> open_;
  std::optional<std::set<std::string>> docker_unclean_;  // with what is to be kept
  std::set<SandboxKind> told_;
  Proofs proofs_, userspace_proofs_;  // neither waits for the other
  std::optional<bool> oci_works_;     // once tried
  std::mutex userspace_mutex_;        // held while runsc is tried: no run gets it before
  std::optional<bool> userspace_works_;
};
}  // namespace proctor
