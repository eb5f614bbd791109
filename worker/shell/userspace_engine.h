#pragma once
// The engine of runs that ask for isolation in user space (policy.isolation): OCI containers under
// runsc, whatever runs other images here.  Opened when first asked for and kept.  Thread-safe.
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "common/base/result.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {

class UserspaceEngine {
 public:
  // `options`: of the worker's other engines.
  explicit UserspaceEngine(SandboxOptions options);
  // kUnavailable: no runsc, one that offered() found unfit, not root, or the image is not in this
  // host's store; with what would help.
  Result<SandboxEngine*> for_image(const std::string& image);
  // Is runsc here, does it work (ordinary commands tell, once), does it isolate (likewise), and
  // does the store hold any image?
  bool offered();
  // It was seen not to isolate what runs in it.
  bool is_refuted();
  void clean_up(const std::set<std::string>& keep);

 private:
  Result<SandboxEngine*> open();  // with the lock
  Status try_out(const std::string& image);
  SandboxOptions options_;
  std::mutex mutex_;
  std::unique_ptr<SandboxEngine> engine_;
  std::optional<bool> works_;
  std::optional<Error> unfit_;  // or refuted
  bool refuted_ = false;
};

// One empty command in this image: kUnavailable where the runtime may not do what it needs.
Status probe_engine(SandboxEngine& engine, const std::string& image);

}  // namespace proctor
