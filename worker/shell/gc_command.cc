#include "worker/shell/gc_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "common/contract/scalar.h"
#include "worker/sandbox/cgroup.h"
#include "worker/shell/default_root.h"
#include "worker/workspace/cache.h"

namespace proctor {
namespace {

constexpr int kOk = 0, kBadInput = 2, kInfrastructure = 4;
constexpr double kMiB = 1024.0 * 1024.0;

}  // namespace

int collect_garbage(int argc, char** argv) {
  CLI::App app;
  std::string max = "0";
  fs::path root = default_worker_root();
  app.name("proctor-worker gc");
  app.description(
      "Removes the mirrors, checked-out trees and kept setups that were used longest ago, until "
      "the\n"
      "rest takes at most --max. What a running worker uses stays; what is removed is made again\n"
      "when a run needs it. Control groups that killed workers left go too. May be run at any\n"
      "time, beside workers.\n\n"
      "Example: proctor-worker gc --max 20GiB");
  app.footer("Exit codes: 0 done, 2 bad use, 4 infrastructure.");
  app.add_option("--max", max, "what they may take: 500MiB, 20GiB; 0: nothing")
      ->capture_default_str();
  app.add_option("--root", root, "the workers' folder")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kOk : kBadInput;
  }
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
  if (const std::size_t groups = CgroupHost::detect("gc").sweep(); 0 < groups)
    std::fprintf(stdout, "removed %zu control groups of workers that are gone\n", groups);
  return kOk;
}

}  // namespace proctor
