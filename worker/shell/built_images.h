#pragma once
// Images that contracts say how to make (common/contract/contract.h): built by the Docker Engine
// when the first run of this host needs one, under a lock between processes, and found again by
// what they are made of, by every worker with the same image store.  Of an engine that several
// hosts or stores share each store has its own, so that nobody removes another's.  Blocking.
// Thread-safe.
//   built-images/ beside the store of images:
//     <inputs>.lock   held by who looks for one, or builds it
//     <inputs>.use    held shared by runs that use it; its mtime: last used
#include <chrono>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/file_lock.h"
#include "common/base/files.h"
#include "common/base/result.h"
#include "common/contract/contract.h"

namespace proctor {
// How a run got its image.
struct BuiltImage {
  std::string id;                            // "sha256:..."; empty: it cannot be built
  std::string failure;                       // then: why
  std::string log;                           // of who built it, or tried to
  bool built = false;                        // by this call
  std::map<std::string, std::string> bases;  // then: as they are named, and their ids here
  std::chrono::milliseconds took{0};
  std::optional<FileLock> use;  // nobody removes it while this lives
};

class BuiltImages {
 public:
  // `image_store`: a folder, which need not be there.
  BuiltImages(const fs::path& image_store, std::string docker_socket);

  // Requires: the contract has a build.  It waits for another who builds the same.
  // kUnavailable: the engine, or this host's disk; cancelled.
  Result<BuiltImage> have(const Contract& contract, std::stop_token cancel) const;

  struct Swept {
    std::size_t removed = 0, in_use = 0;
  };
  // Those that nobody has used for so long, and what a killed builder left.
  Result<Swept> sweep(std::chrono::seconds unused_for) const;

 private:
  // The label and name of what is made of this: no other store has the same.
  std::string mark_of(const std::string& inputs) const { return inputs + "-" + mine_; }
  fs::path lock_file(const std::string& inputs, const char* ending) const {
    return folder_ / (inputs + ending);
  }
  Result<BuiltImage> build(const Contract& contract, std::stop_token cancel) const;
  Result<FileLock> take(const std::string& inputs, std::chrono::milliseconds patience,
                        const std::stop_token& cancel) const;
  // True: it is gone.
  Result<bool> remove(const std::string& inputs, std::chrono::seconds unused_for) const;

  fs::path folder_;
  std::string mine_;  // of this folder
  std::string socket_;
};

// Unused for so long, a worker's start removes them.
inline constexpr std::chrono::hours kBuiltImagesKept{24 * 7};
}  // namespace proctor
