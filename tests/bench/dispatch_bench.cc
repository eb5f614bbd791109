// Zero-work runs per second through the whole coordinator: scheduler, ROUTER socket, Redis reserve
// and settle, journal with synchronous=FULL; four simulated workers in one other process.  Once
// over ipc, once with CURVE over TCP loopback.  `dispatch_bench [RUNS [SLOTS [ipc|curve [DIR]]]]`.
//
// The clock is the journal's: from the first durable intent to the last durable settlement, so what
// was not written does not count.  It fails unless every run has an outcome and is settled, Redis
// holds nothing reserved and the same sum as the journal, and commits were made.
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "common/base/log.h"
#include "common/ledger/private_redis.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/coordinator.h"
#include "tests/bench/dispatch_bench_campaign.h"
#include "tests/bench/dispatch_bench_workers.h"

using namespace proctor;

namespace {

constexpr std::uint32_t kTasks = 100;
constexpr std::uint32_t kWorkers = 4;

struct BenchSettings {
  std::uint32_t runs = 100'000;
  std::uint32_t slots = 256;
  std::string only;  // "ipc", "curve" or both
  fs::path dir;      // on a disk
};

template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "dispatch_bench: %s\n", result.error().detail.c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "dispatch_bench: %s\n", why);
  std::exit(1);
}

// A journal in memory would measure something else.
void refuse_memory(const fs::path& dir) {
  constexpr auto kTmpfs = 0x01021994;
  struct statfs fs_info {};
  if (::statfs(dir.c_str(), &fs_info) != 0 || fs_info.f_type == kTmpfs)
    give_up("the folder is not on a disk: name another as the fourth argument");
}

struct Durable {
  std::uint64_t ended = 0, settled = 0;
  std::int64_t begun_ms = INT64_MAX, over_ms = 0;
  MicroUsd charged;
};
Durable read_back(const fs::path& journal) {
  JournalReader reader = must(JournalReader::open(journal));
  Durable d;
  const Status read = reader.each_attempt([&](const AttemptRecord& a) {
    d.ended += a.core.sets_outcome ? 1 : 0;
    d.begun_ms = std::min(d.begun_ms, a.intent_at.raw());
    if (!a.core.settled) return;
    ++d.settled;
    d.over_ms = std::max(d.over_ms, a.settled_at.raw());
    d.charged = d.charged + a.core.charged;
  });
  if (!read.ok()) give_up(read.error().detail.c_str());
  return d;
}

// CPU of every thread of this process, in milliseconds: where the time goes.
void print_threads() {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/proc/self/task", ec)) {
    std::ifstream stat(entry.path() / "stat");
    std::string line;
    std::getline(stat, line);
    const std::size_t open = line.find('('), close = line.rfind(')');
    if (close == std::string::npos) continue;
    std::uint64_t user = 0, system = 0;
    std::sscanf(line.c_str() + close + 2,
                "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user, &system);
    std::printf("  thread %-16s user %5" PRIu64 " ms, system %5" PRIu64 " ms\n",
                line.substr(open + 1, close - open - 1).c_str(), user * 10, system * 10);
  }
}

struct Keys {
  std::optional<wire::KeyPair> coordinator;
  std::vector<wire::KeyPair> workers;
};
Keys make_keys() {
  Keys keys;
  keys.coordinator = must(wire::generate_key());
  for (std::uint32_t i = 0; i < kWorkers; ++i) keys.workers.push_back(must(wire::generate_key()));
  return keys;
}

void check_ledger(const CoordinatorOptions& options, const PrivateRedis& redis, MicroUsd charged) {
  RedisLedger ledger = must(RedisLedger::open(
      {.endpoint = must(parse_redis_endpoint(redis.address())), .campaign = options.campaign}));
  const std::vector<ScopeBalance> balances = must(ledger.snapshot());
  if (balances.empty() || balances[0].reserved != MicroUsd::zero() ||
      balances[0].spent != charged || charged == MicroUsd::zero())
    give_up("Redis and the journal do not agree");
}

void measure(const BenchSettings& settings, const char* figure, bool curve) {
  const TempDir dir = must(TempDir::create("dispatch-bench", settings.dir));
  refuse_memory(dir.path());
  const Keys keys = curve ? make_keys() : Keys{};
  bench::FleetOptions fleet_options{.workers = kWorkers,
                                    .slots = settings.slots,
                                    .keys = keys.workers,
                                    .server_public_z85 = curve ? keys.coordinator->public_z85 : ""};
  std::optional<bench::Fleet> fleet = bench::Fleet::start(fleet_options);
  if (!fleet) give_up("cannot fork");

  const Campaign campaign =
      bench::zero_work_campaign(dir.path(), kTasks, std::max(1U, settings.runs / kTasks));
  const Plan plan = must(draw_plan(shape_of(campaign)));
  const PrivateRedis redis = must(PrivateRedis::start(dir.path()));
  using Security = CoordinatorOptions::Listen::Security;
  CoordinatorOptions options;
  options.folder = StateFolder{dir.path()};
  options.campaign = "bench";
  options.definition = &campaign;
  options.plan = &plan;
  options.redis = must(parse_redis_endpoint(redis.address()));
  options.scheduler.cost_model = campaign.cost_model;
  options.keys = keys.coordinator;
  for (std::uint32_t i = 0; i < keys.workers.size(); ++i)
    if (!options.allow.add(keys.workers[i].public_z85, "worker-" + std::to_string(i)).ok())
      give_up("allow-list");
  if (curve)
    options.listen.push_back({"tcp://127.0.0.1:*", Security::kCurve});
  else
    options.listen.push_back(
        {"ipc://" + (dir.path() / "socket").string(), Security::kFilePermissions});
  auto coordinator = must(Coordinator::open(options));
  fleet->connect(coordinator->endpoints().at(0));
  const Coordinator::Outcome outcome = coordinator->run();
  const std::optional<bench::FleetReport> seen = fleet->wait();
  const JournalStats journal = coordinator->journal_stats();
  if (!settings.only.empty()) print_threads();
  coordinator.reset();
  if (outcome.end != Coordinator::End::kComplete) give_up("the campaign did not complete");
  if (!seen) give_up("the workers did not end well");

  const Durable durable = read_back(options.folder.journal());
  if (durable.ended != plan.size() || durable.settled != plan.size() ||
      seen->acked != plan.size() || journal.commits == 0)
    give_up("not every run is ended, settled and acknowledged");
  check_ledger(options, redis, durable.charged);
  const double seconds = static_cast<double>(durable.over_ms - durable.begun_ms) / 1000.0;
  std::printf("%s: %u runs, %u slots on each of %u workers; %.2f s; %" PRIu64 " commits of %" PRIu64
              " facts; %" PRIu64 " Assign frames; Redis agrees\n",
              curve ? "curve" : "ipc", plan.size(), settings.slots, kWorkers, seconds,
              journal.commits, journal.writes, seen->frames);
  std::printf("figure %s %.0f 1/s\n", figure, plan.size() / seconds);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  BenchSettings settings;
  const auto number = [&](int i, std::uint32_t otherwise) {
    return i < argc ? static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
  };
  settings.runs = number(1, settings.runs);
  settings.slots = number(2, settings.slots);
  if (3 < argc) settings.only = argv[3];
  if (4 < argc) settings.dir = argv[4];
  log::init("bench", log::Level::kError);
  if (settings.only != "curve") measure(settings, "dispatch.ipc_per_s", false);
  if (settings.only != "ipc") measure(settings, "dispatch.curve_per_s", true);
  return 0;
}
