#include "samples.h"

#include <algorithm>
#include <concepts>
#include <string_view>

#include "common/wire/codec.h"

namespace proctor::wire::samples {
namespace {

AttemptId id(std::uint32_t run, std::uint32_t no) {
  return {RunId(run), AttemptNo(no)};
}

Usage small_usage() {
  Usage u;
  u.setup_ms = 1200;
  u.agent_ms = 64'000;
  u.cpu_ms = 300;
  u.tool_calls = 7;
  u.input_tokens = 100'000;
  u.output_tokens = 2'500;
  u.model_calls = 3;
  u.priced_micros = 12'345;
  u.memory_peak = std::uint64_t{1} << 30;
  u.overruns = 1;
  u.cached_input = 70'000;
  u.ceiling_calls = 1;
  return u;
}

// Gives each member a content, for a kind that has no example of its own below.
struct Filled {
  template <class T>
  void operator()(const char* name, T& value, const Rule& = {}) {
    if constexpr (Described<T>)
      fields(*this, value);
    else if constexpr (std::integral<T>)
      value = static_cast<T>(1);
    else if constexpr (std::same_as<T, std::string>)
      value = name;
    else if constexpr (std::same_as<T, Digest>)
      value = digest_of(name);
    else if constexpr (std::same_as<T, MicroUsd>)
      value = MicroUsd::from_micros(1);
    else if constexpr (requires { value.emplace_back(); })
      (*this)(name, value.emplace_back());
    else if constexpr (requires { value.emplace(); })
      (*this)(name, value.emplace());
    else if constexpr (requires { typename T::rep; }) {
      typename T::rep raw{};
      (*this)(name, raw);
      value = T(std::move(raw));
    }
  }
  static void require(bool, const char*, std::string_view) {}
  static std::uint32_t version() { return kVersion; }
};

template <class M>
void add_if_missing(std::vector<Message>& out, const KindOf<M>&) {
  if (std::ranges::any_of(out, [](const Message& m) { return std::holds_alternative<M>(m); }))
    return;
  Filled filled;
  fields(filled, std::get<M>(out.emplace_back(M{})));
}

}  // namespace

// Not sha256: a reader of the golden files sees at once which field is which.
Digest digest_of(std::string_view text) {
  Digest::Bytes bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(text.empty() ? 0 : text[i % text.size()]);
  return Digest(bytes);
}

std::vector<Message> one_of_each() {
  Sync sync{WorkerId("w1"),
            BootId(0xfeedULL << 40),
            "0.1.0",
            Epoch(3),
            8,
            {"sandbox:bubblewrap"},
            {},
            {}};
  sync.running.push_back({id(17, 2), Stage::kAgent, true, small_usage()});
  sync.unacked = {id(5, 1), id(300, 1)};
  sync.ticket = 41;
  sync.obeyed = 40;
  sync.calls = {7, 0};
  sync.declined = {id(18, 1)};
  sync.holds = {{"5f2c0a9be1d3477a", 2'000}};
  ResultMessage result;
  result.epoch = Epoch(3);
  result.attempt = id(17, 2);
  result.outcome = RunOutcome::kFailure;
  result.termination = Termination::kAgentTimeout;
  result.rationale = "check unit_tests: exit 1";
  result.report = digest_of("report");
  result.archive = digest_of("archive");
  result.archive_bytes = 70'000;
  result.usage = small_usage();
  result.started_ms = 1'760'000'000'000;
  result.finished_ms = 1'760'000'064'000;
  result.infrastructure = true;
  result.fault = Fault::kTask;
  result.cause = "setup step 1 (pip install .): exit 1";
  result.facts.agent_exit = 3;
  result.facts.patch = "three_way, conflict_markers";
  result.facts.violations = 2;
  result.facts.violated = "protected: tests/a.py";
  result.facts.cap = "usd";
  const Assignment run{id(17, 2),
                       "sum/noop/r1",
                       digest_of("contract"),
                       digest_of("method"),
                       1,
                       4'000'000'000,
                       MicroUsd::from_micros(2'500'000),
                       1};
  std::vector<Message> out{
      sync,
      Progress{Epoch(3), sync.running},
      Want{{digest_of("contract"), digest_of("method")}},
      ArchiveChunk{Epoch(3), id(17, 2), digest_of("archive"), 65'536, 65'541, "tail!"},
      result,
      Leave{WorkerId("w1"), BootId(0xfeedULL << 40), {id(300, 1)}},
      SyncReply{Epoch(3),
                "pilot",
                2000,
                {id(9, 1)},
                {id(5, 1)},
                {id(300, 1)},
                false,
                {id(7, 1)},
                41,
                {150, 20},
                true,
                12,
                {{"5f2c0a9be1d3477a", 1'500}}},
      Assign{Epoch(3), digest_of("settings"), {run}},
      Bundle{digest_of("contract"), "bundle bytes"},
      Ack{{id(5, 1), id(17, 2)}},
      ChunkAck{id(17, 2), 65'541},
      Cancel{Epoch(3), {id(17, 2)}, "operator: stop"},
      Refuse{"key is not in the allow-list"},
  };
  std::apply([&](const auto&... kind) { (add_if_missing(out, kind), ...); }, kKinds);
  return out;
}

std::uint64_t below(std::mt19937_64& rng, std::uint64_t n) {
  return rng() % n;
}

namespace {

// Small, boundary and large values alike, so that every width of integer is written.
std::uint64_t number(std::mt19937_64& rng, std::uint64_t most) {
  const std::uint64_t wide = rng() >> below(rng, 64);
  if (below(rng, 16) == 0) return most;
  return wide <= most ? wide : (most == UINT64_MAX ? wide : wide % (most + 1));
}

std::string letters(std::mt19937_64& rng, std::size_t least, std::size_t most) {
  std::string out(least + below(rng, most - least + 1), 'a');
  for (char& c : out) c = static_cast<char>('a' + below(rng, 26));
  return out;
}

AttemptId attempt(std::mt19937_64& rng) {
  return id(static_cast<std::uint32_t>(number(rng, limits::kPlanRows - 1)),
            static_cast<std::uint32_t>(1 + number(rng, UINT32_MAX - 1)));
}

std::vector<AttemptId> attempts(std::mt19937_64& rng) {
  std::vector<AttemptId> out(below(rng, 40));
  for (AttemptId& a : out) a = attempt(rng);
  return out;
}

Digest digest(std::mt19937_64& rng) {
  return digest_of(letters(rng, 1, 32));
}

Usage usage(std::mt19937_64& rng) {
  Usage u;
  for (const UsageCounter& c : kUsageCounters) u.*c.member = number(rng, kUsageCountMax);
  return u;
}

std::vector<RunningAttempt> running(std::mt19937_64& rng) {
  std::vector<RunningAttempt> out(below(rng, 20));
  for (RunningAttempt& r : out)
    r = {attempt(rng), static_cast<Stage>(below(rng, 7)), below(rng, 2) == 0, usage(rng),
         number(rng, kUsageCountMax)};
  return out;
}

ResultMessage result(std::mt19937_64& rng) {
  ResultMessage m;
  m.epoch = Epoch(rng());
  m.attempt = attempt(rng);
  m.outcome = static_cast<RunOutcome>(below(rng, 4));
  m.termination = static_cast<Termination>(below(rng, 8));
  m.rationale = letters(rng, 0, limits::kDetailBytes);
  m.infrastructure = below(rng, 2) == 0;
  m.report = digest(rng);
  if (below(rng, 2) == 0) {
    m.archive = digest(rng);
    m.archive_bytes = 1 + number(rng, limits::kArchiveBytes - 1);
  }
  m.usage = usage(rng);
  m.started_ms = static_cast<std::int64_t>(number(rng, kWallMsMax));
  m.finished_ms = static_cast<std::int64_t>(number(rng, kWallMsMax));
  m.overload = m.infrastructure && below(rng, 2) == 0;
  if (m.infrastructure && !m.overload) m.fault = static_cast<Fault>(below(rng, 3));
  if (m.fault != Fault::kHost) m.cause = letters(rng, 1, limits::kDetailBytes);
  m.has_facts = below(rng, 2) == 0;
  if (below(rng, 2) == 0) m.facts.agent_exit = static_cast<int>(below(rng, 256));
  m.facts.patch = letters(rng, 0, limits::kNameBytes);
  m.facts.violations = number(rng, kUsageCountMax);
  m.facts.violated = letters(rng, 0, limits::kDetailBytes);
  m.facts.cap = letters(rng, 0, limits::kNameBytes);
  m.facts.no_model = m.fault == Fault::kAgent && below(rng, 2) == 0;
  m.facts.not_judged = m.outcome == RunOutcome::kInvalid && below(rng, 2) == 0;
  return m;
}

std::vector<std::uint64_t> counts(std::mt19937_64& rng) {
  std::vector<std::uint64_t> out(below(rng, kRateBucketsMax + 1));
  for (std::uint64_t& n : out) n = number(rng, kCallsPerMinuteMax);
  return out;
}

std::vector<ProviderHold> holds(std::mt19937_64& rng) {
  std::vector<ProviderHold> out(below(rng, kHoldsMax + 1));
  for (ProviderHold& h : out)
    h = {letters(rng, 1, 16), static_cast<std::uint32_t>(number(rng, kHoldMsMax))};
  return out;
}

Sync sync(std::mt19937_64& rng) {
  Sync m;
  m.worker = WorkerId(letters(rng, 1, limits::kNameBytes));
  m.boot = BootId(rng());
  m.version = letters(rng, 1, 20);
  m.epoch_seen = Epoch(number(rng, UINT64_MAX));
  m.slots = static_cast<std::uint32_t>(number(rng, limits::kSlotsMax));
  for (std::uint64_t n = below(rng, kFeaturesMax + 1); 0 < n; --n)
    m.features.push_back(letters(rng, 1, 30));
  m.running = running(rng);
  m.unacked = attempts(rng);
  m.ticket = rng();
  m.obeyed = rng();
  m.calls = counts(rng);
  m.campaign = letters(rng, 0, limits::kNameBytes);
  m.declined = attempts(rng);
  m.holds = holds(rng);
  return m;
}

SyncReply sync_reply(std::mt19937_64& rng) {
  SyncReply m;
  m.epoch = Epoch(rng());
  m.campaign = letters(rng, 1, 64);
  m.next_sync_ms = static_cast<std::uint32_t>(number(rng, kNextSyncMsMax));
  m.cancel = attempts(rng);
  m.acked = attempts(rng);
  m.resend = attempts(rng);
  m.drain = below(rng, 2) == 0;
  m.stop = attempts(rng);
  m.ticket = rng();
  m.shares = counts(rng);
  m.suspended = below(rng, 2) == 0;
  m.demand = static_cast<std::uint32_t>(number(rng, kDemandMax));
  m.holds = holds(rng);
  return m;
}

Assign assign(std::mt19937_64& rng) {
  Assign m{Epoch(rng()), digest(rng), {}};
  for (std::uint64_t n = below(rng, 30); 0 < n; --n)
    m.runs.push_back({attempt(rng), letters(rng, 1, kRunNameBytes), digest(rng), digest(rng),
                      static_cast<std::uint32_t>(rng()), static_cast<std::uint32_t>(rng()),
                      MicroUsd::from_micros(static_cast<std::int64_t>(
                          number(rng, static_cast<std::uint64_t>(kLedgerMax.micros()))))});
  return m;
}

Bundle bundle(std::mt19937_64& rng) {
  Bundle m{digest(rng), letters(rng, 0, 5000)};
  if (below(rng, 2) == 0) {
    m.offset = number(rng, limits::kContractBundleBytes - 5000);
    m.total = m.offset + m.bytes.size() + 1;
  }
  return m;
}

ArchiveChunk chunk(std::mt19937_64& rng) {
  ArchiveChunk m{Epoch(rng()), attempt(rng), digest(rng), 0, 0, letters(rng, 0, 5000)};
  m.offset = number(rng, limits::kArchiveBytes - 5000);
  m.total = m.offset + m.bytes.size();
  return m;
}

}  // namespace

Message random_message(std::mt19937_64& rng) {
  switch (below(rng, std::variant_size_v<Message>)) {
    case 0:
      return sync(rng);
    case 1:
      return Progress{Epoch(rng()), running(rng)};
    case 2:
      return Want{{digest(rng), digest(rng)}};
    case 3:
      return chunk(rng);
    case 4:
      return result(rng);
    case 5:
      return Leave{WorkerId(letters(rng, 1, limits::kNameBytes)), BootId(rng()), attempts(rng)};
    case 6:
      return sync_reply(rng);
    case 7:
      return assign(rng);
    case 8:
      return bundle(rng);
    case 9:
      return Ack{attempts(rng)};
    case 10:
      return ChunkAck{attempt(rng), number(rng, limits::kArchiveBytes)};
    case 11:
      return Cancel{Epoch(rng()), attempts(rng), letters(rng, 0, 100)};
    default:
      return Refuse{letters(rng, 0, 100)};
  }
}

}  // namespace proctor::wire::samples
