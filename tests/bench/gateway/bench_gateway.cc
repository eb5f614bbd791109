#include "tests/bench/gateway/bench_gateway.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <deque>
#include <mutex>

#include "common/base/system_clock.h"
#include "common/contract/cost_model_parser.h"
#include "common/trace/event.h"
#include "common/trace/model_calls.h"
#include "tests/bench/bench_support.h"
#include "worker/gateway/gateway_session.h"
#include "worker/shell/attempt_meter.h"

namespace proctor::bench {
namespace {

// 1 micro-dollar for a token of input, 10 for one of output: what goes wrong shows in the sum.
constexpr const char* kPrices =
    "action_type,unit,unit_price,provider,model\n"
    "llm_request,input_token,0.000001,acme,m\nllm_request,output_token,0.00001,acme,m\n";

MeterPlan plan() {
  constexpr std::int64_t kPlenty = 1'000'000'000'000;
  Diagnostics out;
  MeterPlan p;
  p.prices = parse_cost_model(kPrices, "prices.csv", out);
  if (!out.text().empty()) give_up(out.text());
  p.ask = MicroUsd::from_micros(kPlenty);
  return p;
}

wire::ResultMessage first_attempt() {
  wire::ResultMessage out;
  out.epoch = Epoch(1);
  out.attempt = {RunId(1), AttemptNo(1)};
  return out;
}

// What an attempt has around its gateway.
class Attempt {
 public:
  Attempt(const fs::path& dir, const fs::path& key, std::uint16_t port, ProviderPool& pool)
      : book_(must(MeterBook::create(dir / "book", "bench", first_attempt()))),
        meter_(plan(), "task/method/r1", hooks_of_meter(), book_.get()),
        recorder_(must(RunRecorder::create(dir / "run"))) {
    must(recorder_.write_manifest({{"bench", "gateway"}}));
    must(make_dirs(dir / "gw"));
    GatewayOptions options;
    options.method.models = {{"m", "acme", {}, {}}};
    options.models["m"].url = fmt::format("http://127.0.0.1:{}/v1", port);
    options.models["m"].key_file = key;
    options.token = Secret(kBenchToken);
    options.ids = "gw-1-";
    session_ = must(GatewaySession::open(dir / "gw", std::move(options), hooks(), pool));
  }

  std::pair<std::uint64_t, std::int64_t> end() {
    session_->close();
    const std::lock_guard lock(mutex_);
    must(recorder_.flush());
    return {settled_, charged_};
  }

 private:
  static AttemptMeter::Hooks hooks_of_meter() {
    AttemptMeter::Hooks hooks;
    hooks.totals = [](const Usage&, std::uint64_t) {};
    hooks.record = [](const Json&) { return std::uint64_t{0}; };
    hooks.reached = [](const MeterStop& stop, std::uint64_t) { give_up(stop.reason); };
    hooks.kill = [] {};
    hooks.ordered = [] { return std::pair<std::string, std::uint64_t>(); };
    hooks.now = [] { return mono_now(); };
    return hooks;
  }
  GatewayHooks hooks() {
    GatewayHooks hooks;
    hooks.meter = [this](const GatewayOperation& o) { return meter_.act_for_agent(o); };
    hooks.cover = [this] { meter_.cover(); };
    hooks.status = [this] { return meter_.status_line(); };
    hooks.count = [this](const CallCounts& seen) { meter_.count_calls(seen); };
    hooks.note = [this](std::string_view type, GatewayHooks::By by, const Json& payload) {
      const std::lock_guard lock(mutex_);
      if (type == "gateway.closed") {
        settled_ = payload.at("by_usage").get<std::uint64_t>();
        charged_ = payload.at("charged_micros").get<std::int64_t>();
      }
      return must(recorder_.event(
          type, by == GatewayHooks::By::kAgent ? Actor::kAgent : Actor::kHarness, payload));
    };
    hooks.cap_reached = [](std::uint64_t) {};
    hooks.keep = [this](const std::string& digest, std::string_view bytes) {
      constexpr std::uint64_t kMost = std::uint64_t{32} << 20;
      const std::lock_guard lock(said_mutex_);
      if (!said_) said_ = must(SegmentWriter::open(recorder_.dir(), kMost));
      return said_->put(digest, bytes);
    };
    return hooks;
  }

  std::unique_ptr<MeterBook> book_;
  AttemptMeter meter_;
  std::mutex mutex_, said_mutex_;
  RunRecorder recorder_;
  std::optional<SegmentWriter> said_;
  std::uint64_t settled_ = 0;
  std::int64_t charged_ = 0;
  std::unique_ptr<GatewaySession> session_;
};

fs::path write_key(const fs::path& dir) {
  constexpr fs::perms kOwn = fs::perms::owner_read | fs::perms::owner_write;
  const fs::path key = dir / "key";
  must(write_file(key, "sk-bench\n"));
  fs::permissions(key, kOwn);
  return key;
}

std::int64_t cpu_us() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  constexpr std::int64_t kSecond = 1'000'000;
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * kSecond + used.ru_utime.tv_usec +
         used.ru_stime.tv_usec;
}

}  // namespace

void be_gateway(const Line& line, std::uint16_t provider_port) {
  const TempDir dir = must(TempDir::create("gateway-bench"));
  ProviderPool pool;
  Attempt attempt(dir.path(), write_key(dir.path()), provider_port, pool);
  line.say((dir.path() / "gw/socket").string());
  for (std::string asked; !(asked = line.hear()).empty();) {
    if (asked == "used") {
      line.say(fmt::format("{} {:.0f}", cpu_us(), resident_bytes()));
      continue;
    }
    const auto [settled, charged] = attempt.end();
    line.say(fmt::format("{} {}", settled, charged));
    return;
  }
}

void be_idle(const Line& line, std::size_t sessions) {
  constexpr std::uint16_t kNobody = 9;  // no call is made
  const TempDir dir = must(TempDir::create("gateway-bench"));
  const fs::path key = write_key(dir.path());
  ProviderPool pool;
  std::deque<Attempt> attempts;
  attempts.emplace_back(dir.path() / "first", key, kNobody, pool);  // what is there once
  const double before = resident_bytes();
  for (std::size_t i = 0; i < sessions; ++i)
    attempts.emplace_back(dir.path() / std::to_string(i), key, kNobody, pool);
  line.say(fmt::format("{:.0f}", (resident_bytes() - before) / static_cast<double>(sessions)));
}

}  // namespace proctor::bench
