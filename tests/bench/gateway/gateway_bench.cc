// What a gateway adds to the calls of an agent, beside no proxy and beside a relay that reads
// nothing, in one run and with one provider.  `gateway_bench [SECONDS]`.  `gateway_bench SECONDS
// PROGRAM`: beside LiteLLM's proxy instead, which is PROGRAM (litellm_beside).
//
// Processes: the provider and the clients (this one) on one processor, the gateway or the relay on
// the other.  The gateway is a worker's: price table, meter, its book on a disk, the trace with
// every call, what was said in pieces.  The way through a sandbox is left out.  Rounds alternate
// direct, relay, gateway; what is added is the difference to direct of the same round, and the
// figure is the median of the rounds.
//
// gateway.load_per_s: 1,000 calls a second, or less: 60 % of what is carried with nothing between.
// gateway.added_p50_ms, added_p99_ms: to calls of 1 KiB at that load, from the time at which each
// should have begun.  gateway.relay_added_p50_ms, relay_added_p99_ms: by the relay.
// gateway.added_agent_p50_ms: to calls of 90 KiB at 100 a second.
// gateway.calls_per_s, relay_calls_per_s: 16 clients as fast as they are answered.
// gateway.cpu_us_per_call: the gateway's processor time then; gateway.calls_per_core: 1 s over it.
// gateway.stream_event_us: to an event of 16 streams of 50 a second, p50; gateway.first_token_ms:
// to the first of them, in a session that has had a call; first_token_fresh_ms: in one that has
// not. gateway.litellm_...: the same of LiteLLM's proxy; gateway.beside_litellm_...: of the gateway
// in that run, at a load of 60 % of what the proxy carries.  gateway.rss_kib_per_session: resident
// memory of an idle session with its meter and trace. Every round is audited: what the provider
// answered is what was settled and charged, to the micro-dollar, or the bench fails.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/base/files.h"
#include "tests/bench/bench_support.h"
#include "tests/bench/gateway/bench_gateway.h"
#include "tests/bench/gateway/bench_load.h"
#include "tests/bench/gateway/bench_peers.h"

using namespace proctor;
using namespace proctor::bench;

namespace {

constexpr int kNear = 1, kFar = 0;  // processors: clients and provider; what is measured
constexpr double kAtOnce = 1'000, kAgentRate = 100;
constexpr double kCarried = 0.6;  // of what clients get that ask as fast as they are answered

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return quantile(values, 0.5);
}

struct Figure {
  const char* name;
  const char* unit;
  std::vector<double> rounds{};
  void print() const { std::printf("figure %s %.4f %s\n", name, median(rounds), unit); }
};

struct Peers {
  Child provider;
  std::uint16_t port;
  std::uint64_t answered() const { return std::stoull(provider.ask("count")); }
};

// A gateway for `work`, audited against the provider's own count.
template <class Work>
void with_gateway(const Peers& peers, Work work) {
  const std::uint64_t before = peers.answered();
  const Child gateway = Child::start(kFar, [&](const Line& line) { be_gateway(line, peers.port); });
  const Target target{gateway.line().hear(), 0, kBenchToken};
  if (target.path.empty()) give_up("there is no gateway");
  work(target, gateway);
  const std::string sums = gateway.ask("end");
  const std::uint64_t answered = peers.answered() - before;
  const std::uint64_t bill = answered * (kBilledInput + 10 * kBilledOutput);
  const std::string due = std::to_string(answered) + " " + std::to_string(bill);
  if (sums != due) give_up("settled \"" + sums + "\", the provider's own log says \"" + due + "\"");
}

struct Quantiles {
  double p50 = 0, p99 = 0;
};
Quantiles at_rate(const Target& target, std::size_t bytes, double per_s, double seconds) {
  constexpr double kWarm = 0.3, kHigh = 0.99;
  calls_at_rate(target, bytes, per_s, kWarm);
  const std::vector<double> ms = calls_at_rate(target, bytes, per_s, seconds);
  return {quantile(ms, 0.5), quantile(ms, kHigh)};
}

constexpr int kRounds = 3;

Peers start_provider() {
  Child provider = Child::start(kNear, be_provider);
  const auto port = static_cast<std::uint16_t>(std::stoul(provider.line().hear()));
  return {std::move(provider), port};
}

double first_ms(const Target& target) {
  return quantile(streams(target).first_ms, 0.5);
}

void measure_litellm(double seconds, const std::string& program) {
  const Peers peers = start_provider();
  const Child litellm =
      Child::start(kFar, [&](const Line& line) { be_litellm(line, program, peers.port); });
  const std::string port = litellm.line().hear();
  if (port.empty()) {
    std::puts("not measured: LiteLLM's proxy ended before it answered");
    return;
  }
  run_on(kNear);
  const Target direct{"", peers.port};
  const Target proxy{"", static_cast<std::uint16_t>(std::stoul(port)), kProxyToken};
  calls_at_will(proxy, kSmall, 1);  // it loads the rest of itself
  const double used = litellm.cpu_us();
  const double per_s = calls_at_will(proxy, kSmall, seconds);
  const double cpu = (litellm.cpu_us() - used) / (per_s * seconds), load = kCarried * per_s;
  Figure p50{"gateway.litellm_added_p50_ms", "ms"}, p99{"gateway.litellm_added_p99_ms", "ms"};
  Figure ours_p50{"gateway.beside_litellm_added_p50_ms", "ms"};
  Figure ours_p99{"gateway.beside_litellm_added_p99_ms", "ms"};
  Figure first{"gateway.litellm_first_token_ms", "ms"};
  for (int round = 0; round < kRounds; ++round) {
    const Quantiles bare = at_rate(direct, kSmall, load, seconds);
    const Quantiles theirs = at_rate(proxy, kSmall, load, seconds);
    p50.rounds.push_back(theirs.p50 - bare.p50);
    p99.rounds.push_back(theirs.p99 - bare.p99);
    with_gateway(peers, [&](const Target& target, const Child&) {
      const Quantiles ours = at_rate(target, kSmall, load, seconds);
      ours_p50.rounds.push_back(ours.p50 - bare.p50);
      ours_p99.rounds.push_back(ours.p99 - bare.p99);
    });
    const double direct_first = first_ms(direct);
    first.rounds.push_back(first_ms(proxy) - direct_first);
  }
  std::printf("figure gateway.litellm_load_per_s %.0f calls/s\n", load);
  std::printf("figure gateway.litellm_calls_per_s %.0f calls/s\n", per_s);
  std::printf("figure gateway.litellm_cpu_us_per_call %.0f us\n", cpu);
  for (const Figure* figure : {&p50, &p99, &ours_p50, &ours_p99, &first}) figure->print();
}

void measure(double seconds) {
  constexpr std::size_t kIdle = 200;
  const TempDir dir = must(TempDir::create("gateway-bench"));
  const std::string relay_at = (dir.path() / "relay").string();
  const Peers peers = start_provider();
  const Child relay =
      Child::start(kFar, [&](const Line& line) { be_relay(line, relay_at, peers.port); });
  if (relay.line().hear().empty()) give_up("there is no relay");
  const Child idle = Child::start(kFar, [](const Line& line) { be_idle(line, kIdle); });
  const std::string idle_bytes = idle.line().hear();
  if (idle_bytes.empty()) give_up("no session could be opened");
  run_on(kNear);
  const Target direct{"", peers.port}, through_relay{relay_at};
  const double load = std::min(kAtOnce, kCarried * calls_at_will(direct, kSmall, 1));

  Figure p50{"gateway.added_p50_ms", "ms"}, p99{"gateway.added_p99_ms", "ms"};
  Figure relay_p50{"gateway.relay_added_p50_ms", "ms"};
  Figure relay_p99{"gateway.relay_added_p99_ms", "ms"};
  Figure agent{"gateway.added_agent_p50_ms", "ms"};
  Figure per_s{"gateway.calls_per_s", "calls/s"};
  Figure relay_per_s{"gateway.relay_calls_per_s", "calls/s"};
  Figure cpu{"gateway.cpu_us_per_call", "us"}, per_core{"gateway.calls_per_core", "calls/s"};
  Figure event{"gateway.stream_event_us", "us"}, first{"gateway.first_token_ms", "ms"};
  Figure fresh{"gateway.first_token_fresh_ms", "ms"};
  for (int round = 0; round < kRounds; ++round) {
    const Quantiles bare = at_rate(direct, kSmall, load, seconds);
    const Quantiles relayed = at_rate(through_relay, kSmall, load, seconds);
    with_gateway(peers, [&](const Target& target, const Child&) {
      const Quantiles ours = at_rate(target, kSmall, load, seconds);
      p50.rounds.push_back(ours.p50 - bare.p50);
      p99.rounds.push_back(ours.p99 - bare.p99);
    });
    relay_p50.rounds.push_back(relayed.p50 - bare.p50);
    relay_p99.rounds.push_back(relayed.p99 - bare.p99);

    const Quantiles bare_agent = at_rate(direct, kAgent, kAgentRate, seconds);
    with_gateway(peers, [&](const Target& target, const Child&) {
      agent.rounds.push_back(at_rate(target, kAgent, kAgentRate, seconds).p50 - bare_agent.p50);
    });

    relay_per_s.rounds.push_back(calls_at_will(through_relay, kSmall, seconds));
    with_gateway(peers, [&](const Target& target, const Child& gateway) {
      const double used = std::stod(gateway.ask("used"));
      const std::uint64_t before = peers.answered();
      per_s.rounds.push_back(calls_at_will(target, kSmall, seconds));
      const double more = std::stod(gateway.ask("used")) - used;
      const double each = more / static_cast<double>(peers.answered() - before);
      cpu.rounds.push_back(each);
      per_core.rounds.push_back(1e6 / each);
    });

    const Streamed bare_stream = streams(direct);
    with_gateway(peers, [&](const Target& target, const Child&) {
      fresh.rounds.push_back(first_ms(target) - quantile(bare_stream.first_ms, 0.5));
      const Streamed ours = streams(target);
      event.rounds.push_back(quantile(ours.event_us, 0.5) - quantile(bare_stream.event_us, 0.5));
      first.rounds.push_back(quantile(ours.first_ms, 0.5) - quantile(bare_stream.first_ms, 0.5));
    });
  }
  for (const Figure* figure : {&p50, &p99, &relay_p50, &relay_p99, &agent, &per_s, &relay_per_s,
                               &cpu, &per_core, &event, &first, &fresh})
    figure->print();
  std::printf("figure gateway.load_per_s %.0f calls/s\n", load);
  constexpr double kKib = 1'024;
  std::printf("figure gateway.rss_kib_per_session %.1f KiB\n", std::stod(idle_bytes) / kKib);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kProgram = 2;
  const double seconds = number_of(argc, argv, 1, 3);
  if (kProgram < argc)
    measure_litellm(seconds, argv[kProgram]);
  else
    measure(seconds);
  return 0;
}
