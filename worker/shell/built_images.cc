#include "worker/shell/built_images.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/contract/dockerfile.h"
#include "common/images/image_archive.h"
#include "worker/sandbox/docker_build.h"

namespace proctor {
namespace {
using std::chrono::milliseconds;

constexpr const char* kLock = ".lock";
constexpr const char* kUse = ".use";
// Of one command of a build, whatever the task: as of a method's setup.
constexpr std::uint64_t kBuildMemory = std::uint64_t{4} << 30;
constexpr milliseconds kLockPoll{50};
constexpr std::uint32_t kOpenMode = 0644;

std::string name_of(const std::string& mark) {
  return std::string(kBuiltImage) + ":" + mark;
}

const ReferencedFile& file_of(const Contract& contract, const std::string& path) {
  const auto it = std::ranges::find(contract.files, path, &ReferencedFile::path);
  PROCTOR_ASSERT(it != contract.files.end());
  return *it;
}
}  // namespace

BuiltImages::BuiltImages(const fs::path& image_store, std::string docker_socket)
    : socket_(std::move(docker_socket)) {
  std::error_code ec;
  const fs::path absolute = fs::absolute(image_store, ec).lexically_normal();
  folder_ = (ec ? image_store : absolute).parent_path() / "built-images";
  mine_ = sha256(folder_.string()).short_hex();
}

// flock(2) knows no waiting that ends.
Result<FileLock> BuiltImages::take(const std::string& inputs, milliseconds patience,
                                   const std::stop_token& cancel) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    Result<FileLock> lock = FileLock::try_acquire(lock_file(inputs, kLock));
    if (lock.ok() || lock.error().code != Errc::kConflict) return lock;
    if (cancel.stop_requested() || until <= std::chrono::steady_clock::now())
      return Error{Errc::kUnavailable, "another run's build of the same image does not end"};
    pause_for(kLockPoll, cancel);
  }
}

Result<BuiltImage> BuiltImages::have(const Contract& contract, std::stop_token cancel) const {
  const ImageBuild& wanted = *contract.environment.build;
  const std::string inputs = wanted.inputs.hex();
  PROCTOR_CHECK_OK(make_private_dirs(folder_));
  PROCTOR_TRY(const FileLock alone, take(inputs, wanted.timeout + std::chrono::minutes(1), cancel));
  BuiltImage out;
  Result<std::string> there = image_in_engine(socket_, name_of(mark_of(inputs)));
  if (!there.ok() && there.error().code != Errc::kNotFound) return std::move(there).error();
  if (there.ok()) {
    out.id = std::move(there).value();
  } else {
    const auto began = std::chrono::steady_clock::now();
    PROCTOR_TRY(out, build(contract, std::move(cancel)));
    out.took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
  }
  if (out.id.empty()) {
    if (const Status gone = remove_build(socket_, mark_of(inputs)); !gone.ok())
      log::warn("layers of a build that failed: " + gone.error().detail);
    return out;
  }
  PROCTOR_TRY(out.use, FileLock::share(lock_file(inputs, kUse)));
  std::error_code ignored;
  fs::last_write_time(lock_file(inputs, kUse), fs::file_time_type::clock::now(), ignored);
  return out;
}

// Requires: its lock is held.
Result<BuiltImage> BuiltImages::build(const Contract& contract, std::stop_token cancel) const {
  const ImageBuild& wanted = *contract.environment.build;
  BuiltImage out;
  for (const std::string& base : wanted.bases) {
    Result<std::string> id = image_in_engine(socket_, base);
    if (!id.ok() && id.error().code != Errc::kNotFound) return std::move(id).error();
    if (!id.ok()) {
      out.failure = "its base " + base +
                    " is not in this host's Docker Engine, and nothing is pulled: proctor images "
                    "import FILE --engine brings it";
      return out;
    }
    out.bases.emplace(base, std::move(id).value());
  }
  const std::string mark = mark_of(wanted.inputs.hex());
  std::vector<ContextFile> files = {
      {kBuildDockerfile, kOpenMode,
       dockerfile_for(file_of(contract, wanted.dockerfile).bytes, out.bases,
                      std::string(kBuildLabel) + "=" + mark)},
      // Neither is a file of the contract's: no COPY finds them.
      {kBuildIgnores, kOpenMode, std::string(kBuildDockerfile) + "\n" + kBuildIgnores + "\n"}};
  for (const std::string& path : wanted.files) {
    const ReferencedFile& file = file_of(contract, path);
    files.push_back({wanted.name_of(path), file.mode, file.bytes});
  }
  DockerBuild build;
  build.name = name_of(mark);
  build.label = mark;
  PROCTOR_TRY(build.context, build_context(files));
  build.dockerfile = kBuildDockerfile;
  build.arguments = wanted.arguments;
  build.network = wanted.network;
  build.memory_bytes = kBuildMemory;
  log::info("building the image of task " + contract.id + " (" + wanted.inputs.short_hex() + ")");
  PROCTOR_TRY(DockerBuilt built,
              build_docker_image(socket_, build, wanted.timeout, std::move(cancel)));
  out.id = std::move(built.id);
  out.failure = std::move(built.failure);
  out.log = std::move(built.log);
  out.built = !out.id.empty();
  return out;
}

Result<bool> BuiltImages::remove(const std::string& inputs, std::chrono::seconds unused_for) const {
  PROCTOR_TRY(const FileLock alone, FileLock::try_acquire(lock_file(inputs, kLock)));
  PROCTOR_TRY(const FileLock unused, FileLock::try_acquire(lock_file(inputs, kUse)));
  const bool whole = image_in_engine(socket_, name_of(mark_of(inputs))).ok();
  std::error_code ec;
  const auto used = fs::last_write_time(lock_file(inputs, kUse), ec);
  if (whole && !ec && fs::file_time_type::clock::now() - used < unused_for) return false;
  PROCTOR_CHECK_OK(remove_build(socket_, mark_of(inputs)));
  return true;
}

Result<BuiltImages::Swept> BuiltImages::sweep(std::chrono::seconds unused_for) const {
  Swept out;
  const std::string ending = "-" + mine_;
  PROCTOR_TRY(const std::vector<std::string> marks, labelled_builds(socket_, ending));
  if (!marks.empty()) PROCTOR_CHECK_OK(make_private_dirs(folder_));
  for (const std::string& mark : marks) {
    const std::string inputs = mark.substr(0, mark.size() - ending.size());
    // A label is text that anybody may have written.
    if (!Digest::from_hex(inputs).ok()) continue;
    const Result<bool> gone = remove(inputs, unused_for);
    if (gone.ok() && *gone) ++out.removed;
    if (!gone.ok() && gone.error().code != Errc::kConflict) return gone.error();
    if (!gone.ok()) ++out.in_use;
  }
  return out;
}
}  // namespace proctor
