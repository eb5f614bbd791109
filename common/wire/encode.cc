#include <msgpack.hpp>
#include <span>
#include <type_traits>

#include "common/base/result.h"
#include "common/base/text.h"
#include "common/wire/codec.h"

namespace proctor::wire {
namespace {
// msgpack's own sbuffer would have to be copied into the string that the socket takes over.
struct StringSink {
  std::string& out;
  void write(const char* data, std::size_t size) { out.append(data, size); }
};

class Writer {
 public:
  Writer(std::string& out, std::uint32_t version) : version_(version), sink_{out}, packer_(sink_) {}

  std::uint32_t version() const { return version_; }

  void array(std::size_t items) { packer_.pack_array(static_cast<std::uint32_t>(items)); }
  void u(std::uint64_t value, std::uint64_t most = UINT64_MAX) {
    PROCTOR_ASSERT(value <= most);
    packer_.pack_uint64(value);
  }
  void b(bool value) { value ? packer_.pack_true() : packer_.pack_false(); }
  template <class E>
  void e(E value) {
    u(static_cast<std::uint64_t>(value));
  }
  void wall_ms(std::int64_t value) {
    PROCTOR_ASSERT(0 <= value);
    u(static_cast<std::uint64_t>(value), std::uint64_t{kWallMsMax});
  }
  void money(MicroUsd value) {
    PROCTOR_ASSERT(MicroUsd::zero() <= value);
    PROCTOR_ASSERT(value <= kLedgerMax);
    u(static_cast<std::uint64_t>(value.micros()));
  }
  void str(std::string_view text, std::size_t bytes_max) {
    PROCTOR_ASSERT(text.size() <= bytes_max);
    packer_.pack_str(static_cast<std::uint32_t>(text.size()));
    packer_.pack_str_body(text.data(), static_cast<std::uint32_t>(text.size()));
  }
  void name(std::string_view text, std::size_t bytes_max) {
    PROCTOR_ASSERT(!text.empty());
    str(text, bytes_max);
  }
  // For people: what an agent or a library said may be anything and any length.
  void prose(std::string_view text) {
    constexpr std::size_t kEscapedMin = limits::kDetailBytes - 8;  // printable() may end in "..."
    if (text.size() <= limits::kDetailBytes && is_utf8(text))
      return str(text, limits::kDetailBytes);
    std::string safe = printable(text, kEscapedMin);
    if (limits::kDetailBytes < safe.size()) safe = printable(text, kEscapedMin / 4);
    str(safe, limits::kDetailBytes);
  }
  void bin(std::string_view bytes, std::size_t bytes_max) {
    PROCTOR_ASSERT(bytes.size() <= bytes_max);
    packer_.pack_bin(static_cast<std::uint32_t>(bytes.size()));
    packer_.pack_bin_body(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
  }
  void digest(const Digest& d) {
    bin({reinterpret_cast<const char*>(d.bytes().data()), Digest::kBytes}, Digest::kBytes);
  }
  void attempt(const AttemptId& id) {
    u(id.run.raw(), limits::kPlanRows - 1);
    PROCTOR_ASSERT(id.no.raw() != 0);
    u(id.no.raw());
  }
  void attempts(std::span<const AttemptId> ids) {
    PROCTOR_ASSERT(ids.size() <= limits::kBatchItems);
    array(2 * ids.size());
    for (const AttemptId& id : ids) attempt(id);
  }
  void counts(std::span<const std::uint64_t> list) {
    PROCTOR_ASSERT(list.size() <= kRateBucketsMax);
    array(list.size());
    for (const std::uint64_t n : list) u(n, kCallsPerMinuteMax);
  }
  void holds(std::span<const ProviderHold> list) {
    PROCTOR_ASSERT(list.size() <= kHoldsMax);
    array(list.size());
    for (const ProviderHold& h : list) {
      array(2);
      name(h.provider, limits::kNameBytes);
      u(h.ms, kHoldMsMax);
    }
  }
  void usage(const Usage& v) {
    const std::size_t metered = metered_in(version_);
    const std::initializer_list<std::uint64_t> before{
        v.setup_ms,     v.agent_ms,      v.acceptance_ms, v.cpu_ms,      v.tool_calls,
        v.input_tokens, v.output_tokens, v.model_calls,   v.stored_bytes};
    array(before.size() + metered);
    for (const std::uint64_t counter : before) u(counter, kUsageMax);
    for (std::size_t i = 0; i < metered; ++i) u(v.*kMeteredCounters[i].second, kUsageMax);
  }
  void running(std::span<const RunningAttempt> list) {
    PROCTOR_ASSERT(list.size() <= limits::kSlotsMax);
    array(list.size());
    for (const RunningAttempt& r : list) {
      array(6);
      attempt(r.attempt);
      e(r.stage);
      b(r.sandbox_started);
      usage(r.usage);
      u(r.milestones, kUsageMax);
    }
  }

 private:
  const std::uint32_t version_;
  StringSink sink_;
  msgpack::packer<StringSink> packer_;
};

void body(Writer& w, const Sync& m) {
  w.array(w.version() < 5 ? 11 : w.version() < 6 ? 12 : w.version() < 11 ? 13 : 14);
  w.name(m.worker.raw(), limits::kNameBytes);
  w.u(m.boot.raw());
  w.name(m.version, limits::kNameBytes);
  w.u(m.epoch_seen.raw());
  w.u(m.slots, limits::kSlotsMax);
  PROCTOR_ASSERT(m.features.size() <= (w.version() < 6 ? kFeaturesMaxUntil5 : kFeaturesMax));
  w.array(m.features.size());
  for (const std::string& f : m.features) w.name(f, limits::kNameBytes);
  w.running(m.running);
  w.attempts(m.unacked);
  w.u(m.ticket);
  w.u(m.obeyed);
  w.counts(m.calls);
  if (5 <= w.version()) w.str(m.campaign, limits::kNameBytes);
  if (6 <= w.version()) w.attempts(m.declined);
  if (11 <= w.version()) w.holds(m.holds);
}

void body(Writer& w, const Progress& m) {
  w.array(2);
  w.u(m.epoch.raw());
  w.running(m.running);
}

void body(Writer& w, const Want& m) {
  PROCTOR_ASSERT(m.digests.size() <= limits::kBatchItems);
  w.array(1);
  w.array(m.digests.size());
  for (const Digest& d : m.digests) w.digest(d);
}

void body(Writer& w, const ArchiveChunk& m) {
  PROCTOR_ASSERT(m.offset <= m.total);
  PROCTOR_ASSERT(m.bytes.size() <= m.total - m.offset);
  w.array(7);
  w.u(m.epoch.raw());
  w.attempt(m.attempt);
  w.digest(m.archive);
  w.u(m.offset);
  w.u(m.total, limits::kArchiveBytes);
  w.bin(m.bytes, limits::kChunkBytes);
}

// What a version has no word for is told as what comes nearest.
Termination termination_in(std::uint32_t version, Termination t) {
  if (version < 7 && t == Termination::kAgentUnavailable) return Termination::kInfrastructure;
  if (version < 11 && t == Termination::kModelOverloaded) return Termination::kInfrastructure;
  if (version < 10 && t == Termination::kBreaker) return Termination::kBudgetExceeded;
  return t;
}

void body(Writer& w, const ResultMessage& m) {
  PROCTOR_ASSERT((m.archive == Digest()) == (m.archive_bytes == 0));
  w.array(w.version() < 7 ? 14 : 16);
  w.u(m.epoch.raw());
  w.attempt(m.attempt);
  w.e(m.outcome);
  w.e(termination_in(w.version(), m.termination));
  w.prose(m.rationale);
  w.b(m.infrastructure);
  w.digest(m.report);
  w.digest(m.archive);
  w.u(m.archive_bytes, limits::kArchiveBytes);
  w.usage(m.usage);
  w.wall_ms(m.started_ms);
  w.wall_ms(m.finished_ms);
  w.b(m.overload);
  if (w.version() < 7) return;
  w.e(m.fault);
  w.prose(m.cause);
}

void body(Writer& w, const Leave& m) {
  w.array(w.version() < 6 ? 2 : 3);
  w.name(m.worker.raw(), limits::kNameBytes);
  w.u(m.boot.raw());
  if (6 <= w.version()) w.attempts(m.spooled);
}

void body(Writer& w, const SyncReply& m) {
  w.array(w.version() < 9 ? 11 : w.version() < 11 ? 12 : 13);
  w.u(m.epoch.raw());
  w.name(m.campaign, limits::kNameBytes);
  w.u(m.next_sync_ms, kNextSyncMsMax);
  w.attempts(m.cancel);
  w.attempts(m.acked);
  w.attempts(m.resend);
  w.b(m.drain);
  w.attempts(m.stop);
  w.u(m.ticket);
  w.counts(m.shares);
  w.b(m.suspended);
  if (9 <= w.version()) w.u(m.demand.value_or(0), kDemandMax);
  if (11 <= w.version()) w.holds(m.holds);
}

void body(Writer& w, const Assign& m) {
  PROCTOR_ASSERT(m.runs.size() <= limits::kBatchItems);
  w.array(3);
  w.u(m.epoch.raw());
  w.digest(m.settings);
  w.array(m.runs.size());
  for (const Assignment& r : m.runs) {
    w.array(9);
    w.attempt(r.attempt);
    w.name(r.run_name, kRunNameBytes);
    w.digest(r.contract);
    w.digest(r.method);
    w.u(r.replicate);
    w.u(r.seed);
    w.money(r.ask);
    w.u(r.stage);
  }
}

void body(Writer& w, const Bundle& m) {
  w.array(4);
  if (m.total == 0) {
    PROCTOR_ASSERT(m.offset == 0);
  } else {
    PROCTOR_ASSERT(m.offset <= m.total);
    PROCTOR_ASSERT(m.bytes.size() <= m.total - m.offset);
  }
  w.digest(m.digest);
  w.bin(m.bytes, kBundlePartBytes);
  w.u(m.offset);
  w.u(m.total, limits::kContractBundleBytes);
}

void body(Writer& w, const Ack& m) {
  w.array(1);
  w.attempts(m.results);
}

void body(Writer& w, const ChunkAck& m) {
  w.array(3);
  w.attempt(m.attempt);
  w.u(m.next_offset, limits::kArchiveBytes);
}

void body(Writer& w, const Cancel& m) {
  w.array(3);
  w.u(m.epoch.raw());
  w.attempts(m.attempts);
  w.prose(m.reason);
}

void body(Writer& w, const Refuse& m) {
  w.array(1);
  w.prose(m.reason);
}

// A little more than the usual size, so that a batch grows its string once.
std::size_t size_guess(const Message& message) {
  return 64 +
         std::visit(Overload{
                        [](const Assign& m) { return m.runs.size() * 144; },
                        [](const Ack& m) { return m.results.size() * 6; },
                        [](const Sync& m) { return m.running.size() * 64 + m.unacked.size() * 6; },
                        [](const Progress& m) { return m.running.size() * 64; },
                        [](const Want& m) { return m.digests.size() * 34; },
                        [](const ArchiveChunk& m) { return m.bytes.size() + 64; },
                        [](const Bundle& m) { return m.bytes.size() + 64; },
                        [](const auto&) { return std::size_t{192}; },
                    },
                    message);
}
}  // namespace

std::string encode(const Message& message, std::uint32_t version) {
  PROCTOR_ASSERT(is_served(version));
  std::string out;
  out.reserve(size_guess(message));
  Writer w(out, version);
  w.array(3);
  w.u(version);
  std::visit(
      [&](const auto& m) {
        w.e(kKindOf<std::decay_t<decltype(m)>>);
        body(w, m);
      },
      message);
  PROCTOR_ASSERT(out.size() <= limits::kFrameBytes);
  return out;
}
}  // namespace proctor::wire
