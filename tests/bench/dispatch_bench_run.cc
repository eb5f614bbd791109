#include "tests/bench/dispatch_bench_run.h"

#include <hiredis/hiredis.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/ledger/private_redis.h"
#include "common/ledger/redis_ledger.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/coordinator.h"
#include "tests/bench/bench_support.h"
#include "tests/bench/dispatch_bench_campaign.h"
#include "tests/bench/dispatch_bench_workers.h"

namespace proctor::bench {
namespace {

constexpr std::uint32_t kTasks = 100;
constexpr std::uint32_t kWorkers = 4;

// A journal in memory would measure something else.
void refuse_memory(const fs::path& dir) {
  constexpr auto kTmpfs = 0x01021994;
  struct statfs fs_info {};
  if (::statfs(dir.c_str(), &fs_info) != 0 || fs_info.f_type == kTmpfs)
    give_up("the folder is not on a disk: name another (an argument, or TMPDIR)");
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
  must(read);
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

double cpu_of_us() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}
double cpu_of_redis(const PrivateRedis& redis) {
  RedisConnection c = must(
      RedisConnection::open(must(parse_redis_endpoint(redis.address())), std::chrono::seconds(5)));
  const RedisReply reply = must(c.call(std::array<std::string_view, 2>{"INFO", "cpu"}));
  const std::string info(reply->str, reply->len);
  double sum = 0;
  for (const std::string name : {"\nused_cpu_sys:", "\nused_cpu_user:"}) {
    const std::size_t at = info.find(name);
    if (at == info.npos) give_up("INFO cpu says nothing");
    sum += std::strtod(info.c_str() + at + name.size(), nullptr);
  }
  return sum;
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

// Grants everything, asks nobody and keeps nothing: what a run costs when money is free.
class FreeMoney final : public LedgerStore {
 public:
  Status connect() override { return ok_status(); }
  std::string describe() const override { return "money is free"; }
  Result<std::vector<std::string>> begin_epoch(Epoch, const std::vector<ScopeSpec>&,
                                               const std::vector<ReserveOp>&,
                                               const std::vector<MicroUsd>&) override {
    return std::vector<std::string>{};
  }
  Result<std::vector<LedgerAnswer>> apply(Epoch, const std::vector<LedgerOp>& batch) override {
    std::vector<LedgerAnswer> answers;
    answers.reserve(batch.size());
    for (const LedgerOp& op : batch) {
      if (std::holds_alternative<ReserveOp>(op))
        answers.emplace_back(ReserveAnswer{ReserveAnswer::Kind::kGranted, {}, {}, false});
      else if (const auto* s = std::get_if<SettleOp>(&op))
        answers.emplace_back(SettleAnswer{s->actual, MicroUsd::zero(), false});
      else
        answers.emplace_back(Unit{});
    }
    return answers;
  }
  Result<std::vector<ScopeBalance>> snapshot() override { return std::vector<ScopeBalance>{}; }
};

void check_ledger(RedisLedger& ledger, MicroUsd charged) {
  const std::vector<ScopeBalance> balances = must(ledger.snapshot());
  if (balances.empty() || balances[0].reserved != MicroUsd::zero() ||
      balances[0].spent != charged || charged == MicroUsd::zero())
    give_up("Redis and the journal do not agree");
}

RedisLedger ledger_at(const PrivateRedis& redis) {
  return must(RedisLedger::open(
      {.endpoint = must(parse_redis_endpoint(redis.address())), .campaign = "bench"}));
}

void listen(CoordinatorOptions& options, const Keys& keys, const fs::path& dir) {
  using Security = CoordinatorOptions::Listen::Security;
  options.keys = keys.coordinator;
  std::string allow;
  for (std::uint32_t i = 0; i < keys.workers.size(); ++i)
    (allow += keys.workers[i].public_z85 + " worker-" + std::to_string(i)).push_back('\n');
  if (keys.coordinator) {
    const fs::path list = options.folder.allow_list();
    must(make_dirs(list.parent_path()));
    must(write_file(list, allow, Durability::kLazy));
  }
  if (keys.coordinator)
    options.listen.push_back({"tcp://127.0.0.1:*", Security::kCurve});
  else
    options.listen.push_back({"ipc://" + (dir / "socket").string(), Security::kFilePermissions});
}

}  // namespace

DispatchOutcome dispatch(const DispatchSettings& settings) {
  const TempDir dir = must(TempDir::create("dispatch-bench", settings.dir));
  refuse_memory(dir.path());
  const Keys keys = settings.curve ? make_keys() : Keys{};
  FleetOptions fleet_options{
      .workers = kWorkers,
      .slots = settings.slots,
      .keys = keys.workers,
      .server_public_z85 = settings.curve ? keys.coordinator->public_z85 : ""};
  std::optional<Fleet> fleet = Fleet::start(fleet_options);
  if (!fleet) give_up("cannot fork");

  const Campaign campaign =
      zero_work_campaign(dir.path(), kTasks, std::max(1U, settings.runs / kTasks));
  const Plan plan = must(draw_plan(shape_of(campaign)));
  std::optional<PrivateRedis> redis;
  if (!settings.free_money) redis.emplace(must(PrivateRedis::start(dir.path())));
  CoordinatorOptions options;
  options.folder = StateFolder{dir.path()};
  options.campaign = "bench";
  options.definition = &campaign;
  options.plan = &plan;
  if (redis)
    options.ledger = std::make_shared<RedisLedger>(ledger_at(*redis));
  else
    options.ledger = std::make_shared<FreeMoney>();
  options.scheduler.cost_model = campaign.cost_model;
  listen(options, keys, dir.path());
  // Without workers the coordinator would wait for others for ever.
  options.on_status = [&](const StatusSnapshot&) {
    if (const std::optional<std::string> how = fleet->died()) give_up(*how);
  };
  auto coordinator = must(Coordinator::open(options));
  fleet->connect(coordinator->endpoints().at(0));
  const double cpu_before = cpu_of_us();
  const Coordinator::Outcome outcome = coordinator->run();
  const double cpu_s = cpu_of_us() - cpu_before + (redis ? cpu_of_redis(*redis) : 0);
  const std::optional<FleetReport> seen = fleet->wait();
  const JournalStats journal = coordinator->journal_stats();
  if (settings.threads) print_threads();
  coordinator.reset();
  if (outcome.end != Coordinator::End::kComplete) give_up("the campaign did not complete");
  if (!seen) give_up("the workers did not end well");

  const Durable durable = read_back(options.folder.journal());
  if (durable.ended != plan.size() || durable.settled != plan.size() ||
      seen->acked != plan.size() || journal.commits == 0)
    give_up("not every run is ended, settled and acknowledged");
  if (redis) {
    RedisLedger ledger = ledger_at(*redis);
    check_ledger(ledger, durable.charged);
  }
  const double seconds = static_cast<double>(durable.over_ms - durable.begun_ms) / 1000.0;
  std::printf("%s: %u runs, %u slots on each of %u workers; %.2f s; %" PRIu64 " commits of %" PRIu64
              " facts; %" PRIu64 " Assign frames; %s\n",
              settings.curve ? "curve" : "ipc", plan.size(), settings.slots, kWorkers, seconds,
              journal.commits, journal.writes, seen->frames,
              redis ? "Redis agrees" : "money is free");
  return {.seconds = seconds, .cpu_s = cpu_s, .runs = plan.size()};
}

}  // namespace proctor::bench
