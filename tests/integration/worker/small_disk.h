#pragma once
// A file system of 64 MiB over a folder, which a test may fill.
#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <utility>

#include "common/base/files.h"
#include "common/base/subprocess.h"

namespace proctor::testing {

class SmallDisk {
 public:
  // None, and that is said, where nothing can be mounted.
  static std::optional<SmallDisk> over(const fs::path& folder) {
    REQUIRE(make_dirs(folder).ok());
    if (called({"mount", "-t", "tmpfs", "-o", "size=64m", "proctor-test", folder.string()}))
      return SmallDisk(folder);
    MESSAGE("not run: no small disk can be mounted here");
    return std::nullopt;
  }
  SmallDisk(SmallDisk&& other) noexcept : at_(std::exchange(other.at_, {})) {}
  SmallDisk& operator=(SmallDisk&&) = delete;
  ~SmallDisk() {
    if (!at_.empty()) (void)called({"umount", "-l", at_.string()});
  }

  // Full by our measure, with room for a result, which is a few hundred bytes.
  void fill() const {
    constexpr std::uint64_t kLeft = 512 * 1024, kBlock = 4096;
    REQUIRE(called({"dd", "if=/dev/zero", "of=" + ballast().string(), "bs=4096",
                    "count=" + std::to_string((fs::space(at_).available - kLeft) / kBlock)}));
    filled_ = std::chrono::steady_clock::now();
  }
  bool full_for(std::chrono::milliseconds time) const {
    return filled_ + time <= std::chrono::steady_clock::now();
  }
  void clear() const { fs::remove(ballast()); }

 private:
  explicit SmallDisk(fs::path at) : at_(std::move(at)) {}
  static bool called(std::vector<std::string> argv) {
    CommandSpec spec;
    spec.argv = std::move(argv);
    return run_command(spec).value().success();
  }
  fs::path ballast() const { return at_ / "ballast"; }

  fs::path at_;
  mutable std::chrono::steady_clock::time_point filled_;
};

}  // namespace proctor::testing
