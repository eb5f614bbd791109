#include "worker/shell/gc_command.h"

#include <cstdio>

#include "common/base/command_line.h"
#include "common/contract/fields.h"
#include "common/images/image_store.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/sandbox.h"
#include "worker/shell/built_images.h"
#include "worker/shell/default_root.h"
#include "worker/workspace/cache.h"

namespace proctor {
namespace {

constexpr int kOk = 0, kBadInput = 2, kInfrastructure = 4;
constexpr double kMiB = 1024.0 * 1024.0;

// Of images nobody knows what their removal gives back: with --max 0 all that no run uses go, else
// those that none has used for long.
Status remove_images(const fs::path& store, const std::string& socket, bool all) {
  if (!docker_answers(socket)) return ok_status();
  PROCTOR_TRY(const BuiltImages::Swept swept,
              BuiltImages(store, socket)
                  .sweep(all ? std::chrono::seconds(0) : std::chrono::seconds(kBuiltImagesKept)));
  if (0 < swept.removed + swept.in_use)
    std::fprintf(stdout, "removed %zu built images; %zu in use\n", swept.removed, swept.in_use);
  return ok_status();
}

}  // namespace

int collect_garbage(int argc, char** argv) {
  cli::CommandLine app;
  std::string max = "0";
  fs::path root = default_worker_root();
  fs::path store = default_image_store();
  std::string socket = "/var/run/docker.sock";
  app.name("proctor-worker gc");
  app.description(
      "Removes the mirrors, checked-out trees and kept setups that were used longest ago, until "
      "the\n"
      "rest takes at most --max. What a running worker uses stays; what is removed is made again\n"
      "when a run needs it. Of images that workers built from Dockerfiles those go that no run "
      "has\n"
      "used for a week; with --max 0 all that none uses. Control groups that killed workers left\n"
      "go too. May be run at any time, beside workers.\n\n"
      "Example: proctor-worker gc --max 20GiB");
  app.footer("Exit codes: 0 done, 2 bad use, 4 infrastructure.");
  app.add_option("--max", max, "what they may take: 500MiB, 20GiB; 0: nothing")
      .capture_default_str();
  app.add_option("--root", root, "the workers' folder").capture_default_str();
  app.add_option("--image-store", store, "beside which it is kept what images workers built")
      .capture_default_str();
  app.add_option("--docker-socket", socket, "of the Docker Engine that built images")
      .envname("PROCTOR_DOCKER_SOCKET")
      .capture_default_str();
  if (const auto ended = app.parse(argc, argv, kBadInput)) return *ended;
  const Result<std::uint64_t> bytes_max = max == "0" ? std::uint64_t{0} : parse_size(max);
  const Result<CacheReport> done =
      bytes_max.ok() ? make_room(root, *bytes_max) : in_context("--max " + max, bytes_max.error());
  if (!done.ok()) {
    std::fprintf(stderr, "proctor-worker gc: %s\n", done.error().detail.c_str());
    const Errc code = done.error().code;
    return code == Errc::kInvalid || code == Errc::kNotFound ? kBadInput : kInfrastructure;
  }
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / kMiB; };
  std::fprintf(stdout,
               "%llu mirrors, trees and setups, %.1f MiB; removed %llu, %.1f MiB; %llu in use\n",
               static_cast<unsigned long long>(done->items), mib(done->bytes),
               static_cast<unsigned long long>(done->removed), mib(done->removed_bytes),
               static_cast<unsigned long long>(done->in_use));
  if (const Status removed = remove_images(store, socket, *bytes_max == 0); !removed.ok()) {
    std::fprintf(stderr, "proctor-worker gc: %s\n", removed.error().detail.c_str());
    return kInfrastructure;
  }
  if (const std::size_t groups = CgroupHost::detect("gc").sweep(); 0 < groups)
    std::fprintf(stdout, "removed %zu control groups of workers that are gone\n", groups);
  return kOk;
}

}  // namespace proctor
