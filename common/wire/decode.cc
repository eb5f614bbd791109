#include <algorithm>
#include <cstdint>
#include <msgpack.hpp>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/base/limits.h"
#include "common/base/money.h"
#include "common/base/result.h"
#include "common/base/text.h"
#include "common/wire/codec.h"

namespace proctor::wire {
// Reader: a strict cursor over one MessagePack array.  Fields are taken by name and in order; the
// first one that is missing, of another type, or out of range ends the reading: every later call
// returns an empty value, and the Failure says where.

// Shared by a Reader and those of the arrays inside it: the first complaint stays.
struct Failure {
  std::string detail;
  std::uint32_t version = 0;  // of the frame
  bool bad() const { return !detail.empty(); }
};

class Reader {
 public:
  Reader(const msgpack::object& array, const char* what, Failure& failure)
      : Reader(array, what, kNoIndex, nullptr, failure) {}

  std::uint64_t u64(const char* field, std::uint64_t most = UINT64_MAX);
  std::uint32_t u32(const char* field, std::uint32_t most = UINT32_MAX);
  std::int64_t wall_ms(const char* field);
  MicroUsd money(const char* field);
  bool boolean(const char* field);
  // Any UTF-8; nothing in it is trusted further.
  std::string text(const char* field, std::size_t bytes_max);
  // Not empty, no control bytes: may become a label or a file's name after the usual checks.
  std::string name(const char* field, std::size_t bytes_max);
  std::string binary(const char* field, std::size_t bytes_max);
  Digest digest(const char* field);
  AttemptId attempt();  // two fields: run, no
  // [run, no, run, no, ...]: flat, because acknowledgements come by the thousand.
  std::vector<AttemptId> attempts(const char* field, std::size_t items_max);
  // An enumeration with the values 0 .. last.
  template <class E>
  E enumerator(const char* field, E last) {
    return static_cast<E>(u64(field, static_cast<std::uint64_t>(last)));
  }
  // An array in which `read_one(Reader&)` reads each element, itself an array.
  template <class F>
  auto list(const char* field, std::size_t items_max, F read_one) {
    std::vector<decltype(read_one(*this))> out;
    const msgpack::object* array = counted_array(field, items_max);
    if (array == nullptr) return out;
    out.reserve(array->via.array.size);
    for (std::uint32_t i = 0; i < array->via.array.size && !failure_.bad(); ++i) {
      Reader item(array->via.array.ptr[i], field, i, this, failure_);
      out.push_back(read_one(item));
      item.finish();
    }
    return out;
  }
  template <class F>
  auto nested(const char* field, F read) {
    const msgpack::object* array = counted_array(field, SIZE_MAX);
    if (array == nullptr) return decltype(read(*this)){};
    Reader inside(*array, field, kNoIndex, this, failure_);
    auto out = read(inside);
    inside.finish();
    return out;
  }
  std::vector<std::string> names(const char* field, std::size_t items_max, std::size_t bytes_max);
  std::vector<Digest> digests(const char* field, std::size_t items_max);
  std::vector<std::uint64_t> counts(const char* field, std::size_t items_max, std::uint64_t most);
  const msgpack::object* any(const char* field) { return next(field); }
  // A rule between fields that the caller checked: `holds` is false, so `field` is refused.
  void require(bool holds, const char* field, std::string_view why);
  std::uint32_t version() const { return failure_.version; }
  bool more() const { return !failure_.bad() && at_ != end_; }
  // No field may be left over.
  void finish();

 private:
  // An array whose elements `read_one(Reader&)` reads one after the other, no arrays themselves.
  template <class F>
  auto items(const char* field, std::size_t items_max, F read_one) {
    std::vector<decltype(read_one(*this))> out;
    const msgpack::object* array = counted_array(field, items_max);
    if (array == nullptr) return out;
    Reader inside(*array, field, kNoIndex, this, failure_);
    out.reserve(array->via.array.size);
    while (!failure_.bad() && inside.at_ != inside.end_) out.push_back(read_one(inside));
    return out;
  }
  static constexpr std::uint32_t kNoIndex = UINT32_MAX;
  Reader(const msgpack::object& array, const char* what, std::uint32_t index, const Reader* parent,
         Failure& failure);
  const msgpack::object* next(const char* field);
  const msgpack::object* counted_array(const char* field, std::size_t items_max);
  std::string_view checked_text(const msgpack::object* o, const char* field, std::size_t bytes_max);
  Digest checked_digest(const msgpack::object* o, const char* field);
  void refuse(const char* field, std::string_view why);
  std::string path() const;

  const char* what_;
  std::uint32_t index_;
  const Reader* parent_;
  Failure& failure_;
  const msgpack::object* at_ = nullptr;
  const msgpack::object* end_ = nullptr;
};

Reader::Reader(const msgpack::object& array, const char* what, std::uint32_t index,
               const Reader* parent, Failure& failure)
    : what_(what), index_(index), parent_(parent), failure_(failure) {
  if (array.type != msgpack::type::ARRAY) {
    if (!failure_.bad()) failure_.detail = path() + ": not an array";
    return;
  }
  at_ = array.via.array.ptr;
  end_ = at_ + array.via.array.size;
}

std::string Reader::path() const {
  std::string out = parent_ == nullptr ? std::string() : parent_->path() + ".";
  out += what_;
  if (index_ != kNoIndex) out += "[" + std::to_string(index_) + "]";
  return out;
}

void Reader::refuse(const char* field, std::string_view why) {
  if (!failure_.bad()) failure_.detail = path() + "." + field + ": " + std::string(why);
}

const msgpack::object* Reader::next(const char* field) {
  if (failure_.bad()) return nullptr;
  if (at_ == end_) {
    refuse(field, "missing");
    return nullptr;
  }
  return at_++;
}

void Reader::require(bool holds, const char* field, std::string_view why) {
  if (!holds) refuse(field, why);
}

void Reader::finish() {
  if (!failure_.bad() && at_ != end_)
    failure_.detail = path() + ": " + std::to_string(end_ - at_) + " fields too many";
}

std::uint64_t Reader::u64(const char* field, std::uint64_t most) {
  const msgpack::object* o = next(field);
  if (o == nullptr) return 0;
  if (o->type == msgpack::type::NEGATIVE_INTEGER) return refuse(field, "negative"), 0;
  if (o->type != msgpack::type::POSITIVE_INTEGER) return refuse(field, "not an integer"), 0;
  if (most < o->via.u64) {
    refuse(field, std::to_string(o->via.u64) + " is more than " + std::to_string(most));
    return 0;
  }
  return o->via.u64;
}

std::uint32_t Reader::u32(const char* field, std::uint32_t most) {
  return static_cast<std::uint32_t>(u64(field, most));
}

std::int64_t Reader::wall_ms(const char* field) {
  return static_cast<std::int64_t>(u64(field, std::uint64_t{kWallMsMax}));
}

MicroUsd Reader::money(const char* field) {
  const std::uint64_t most = static_cast<std::uint64_t>(kLedgerMax.micros());
  return MicroUsd::from_micros(static_cast<std::int64_t>(u64(field, most)));
}

bool Reader::boolean(const char* field) {
  const msgpack::object* o = next(field);
  if (o == nullptr) return false;
  if (o->type != msgpack::type::BOOLEAN) return refuse(field, "not a boolean"), false;
  return o->via.boolean;
}

std::string_view Reader::checked_text(const msgpack::object* o, const char* field,
                                      std::size_t bytes_max) {
  if (o == nullptr) return {};
  if (o->type != msgpack::type::STR) return refuse(field, "not a string"), std::string_view();
  const std::string_view text(o->via.str.ptr, o->via.str.size);
  if (bytes_max < text.size()) {
    refuse(field, std::to_string(text.size()) + " bytes, at most " + std::to_string(bytes_max));
    return {};
  }
  if (!is_utf8(text)) return refuse(field, "not UTF-8"), std::string_view();
  return text;
}

std::string Reader::text(const char* field, std::size_t bytes_max) {
  return std::string(checked_text(next(field), field, bytes_max));
}

namespace {
bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}
}  // namespace

std::string Reader::name(const char* field, std::size_t bytes_max) {
  const std::string_view text = checked_text(next(field), field, bytes_max);
  require(!text.empty(), field, "empty");
  require(std::none_of(text.begin(), text.end(), is_control), field, "has a control byte");
  return std::string(text);
}

std::string Reader::binary(const char* field, std::size_t bytes_max) {
  const msgpack::object* o = next(field);
  if (o == nullptr) return {};
  if (o->type != msgpack::type::BIN) return refuse(field, "not binary"), std::string();
  if (bytes_max < o->via.bin.size) {
    refuse(field, std::to_string(o->via.bin.size) + " bytes, at most " + std::to_string(bytes_max));
    return {};
  }
  return {o->via.bin.ptr, o->via.bin.size};
}

Digest Reader::checked_digest(const msgpack::object* o, const char* field) {
  if (o == nullptr) return {};
  if (o->type != msgpack::type::BIN || o->via.bin.size != Digest::kBytes)
    return refuse(field, "not 32 bytes of digest"), Digest();
  Digest::Bytes bytes{};
  std::copy_n(o->via.bin.ptr, bytes.size(), reinterpret_cast<char*>(bytes.data()));
  return Digest(bytes);
}

Digest Reader::digest(const char* field) {
  return checked_digest(next(field), field);
}

AttemptId Reader::attempt() {
  const RunId run(u32("run", std::uint32_t{limits::kPlanRows - 1}));
  const AttemptNo no(u32("no"));
  require(no.raw() != 0, "no", "attempts count from 1");
  return {run, no};
}

const msgpack::object* Reader::counted_array(const char* field, std::size_t items_max) {
  const msgpack::object* o = next(field);
  if (o == nullptr) return nullptr;
  if (o->type != msgpack::type::ARRAY) return refuse(field, "not an array"), nullptr;
  if (items_max < o->via.array.size) {
    refuse(field,
           std::to_string(o->via.array.size) + " items, at most " + std::to_string(items_max));
    return nullptr;
  }
  return o;
}

std::vector<AttemptId> Reader::attempts(const char* field, std::size_t items_max) {
  std::vector<AttemptId> out;
  const msgpack::object* array = counted_array(field, 2 * items_max);
  if (array == nullptr) return out;
  if (array->via.array.size % 2 != 0) return refuse(field, "half an attempt at the end"), out;
  Reader pairs(*array, field, kNoIndex, this, failure_);
  out.reserve(array->via.array.size / 2);
  while (!failure_.bad() && pairs.at_ != pairs.end_) out.push_back(pairs.attempt());
  return out;
}

std::vector<std::string> Reader::names(const char* field, std::size_t items_max,
                                       std::size_t bytes_max) {
  return items(field, items_max, [&](Reader& r) { return r.name("item", bytes_max); });
}

std::vector<Digest> Reader::digests(const char* field, std::size_t items_max) {
  return items(field, items_max, [](Reader& r) { return r.digest("item"); });
}

std::vector<std::uint64_t> Reader::counts(const char* field, std::size_t items_max,
                                          std::uint64_t most) {
  return items(field, items_max, [&](Reader& r) { return r.u64("item", most); });
}

namespace {
constexpr std::uint64_t kLastKind = static_cast<std::uint64_t>(Kind::kRefuse);

// One unsigned integer at the front of `bytes`, in any width; false if there is none.
bool take_uint(std::string_view& bytes, std::uint64_t& value) {
  if (bytes.empty()) return false;
  const auto lead = static_cast<unsigned char>(bytes.front());
  std::size_t width = 0;
  if (lead < 0x80) {
    value = lead;
  } else if (0xcc <= lead && lead <= 0xcf) {
    width = std::size_t{1} << (lead - 0xcc);
    if (bytes.size() < 1 + width) return false;
    value = 0;
    for (std::size_t i = 1; i <= width; ++i)
      value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  } else {
    return false;
  }
  bytes.remove_prefix(1 + width);
  return true;
}

struct Envelope {
  std::uint64_t version = 0;
  std::uint64_t kind = 0;
};

// Read by hand before anything is unpacked: what may be unpacked depends on it.
bool peek(std::string_view bytes, Envelope& out) {
  if (bytes.empty() || bytes.front() != '\x93') return false;
  bytes.remove_prefix(1);
  return take_uint(bytes, out.version) && take_uint(bytes, out.kind);
}

// An unpacked object takes 24 bytes for as little as one on the wire.  Frames with a payload may be
// large but have few objects, all others are small: so a hostile frame costs at most 48 MiB.
struct Allowance {
  std::size_t frame_bytes;
  msgpack::unpack_limit limit;
};
Allowance allowance(std::uint64_t kind) {
  const bool chunk = kind == static_cast<std::uint64_t>(Kind::kArchiveChunk);
  const bool bundle = kind == static_cast<std::uint64_t>(Kind::kBundle);
  const std::size_t payload = chunk ? limits::kChunkBytes : kBundlePartBytes;
  if (chunk || bundle)
    return {payload + kPayloadOverhead, msgpack::unpack_limit(8, 0, 0, payload, 0, 2)};
  // Body, list, item, usage: four levels in the envelope.
  return {kPlainFrameBytes, msgpack::unpack_limit(2 * limits::kBatchItems, 0, limits::kDetailBytes,
                                                  Digest::kBytes, 0, 5)};
}

Usage read_usage(Reader& r) {
  Usage v;
  v.setup_ms = r.u64("setup_ms", kUsageMax);
  v.agent_ms = r.u64("agent_ms", kUsageMax);
  v.acceptance_ms = r.u64("acceptance_ms", kUsageMax);
  v.cpu_ms = r.u64("cpu_ms", kUsageMax);
  v.tool_calls = r.u64("tool_calls", kUsageMax);
  v.input_tokens = r.u64("input_tokens", kUsageMax);
  v.output_tokens = r.u64("output_tokens", kUsageMax);
  v.model_calls = r.u64("model_calls", kUsageMax);
  v.stored_bytes = r.u64("stored_bytes", kUsageMax);
  const std::size_t metered = metered_in(r.version());
  for (std::size_t i = 0; i < metered; ++i)
    v.*kMeteredCounters[i].second = r.u64(kMeteredCounters[i].first, kUsageMax);
  return v;
}

RunningAttempt read_running(Reader& r) {
  RunningAttempt v;
  v.attempt = r.attempt();
  v.stage = r.enumerator("stage", Stage::kUploading);
  v.sandbox_started = r.boolean("sandbox_started");
  v.usage = r.nested("usage", read_usage);
  if (3 <= r.version()) v.milestones = r.u64("milestones", kUsageMax);
  return v;
}

Assignment read_assignment(Reader& r) {
  Assignment v;
  v.attempt = r.attempt();
  v.run_name = r.name("run_name", kRunNameBytes);
  v.contract = r.digest("contract");
  v.method = r.digest("method");
  v.replicate = r.u32("replicate");
  v.seed = r.u32("seed");
  v.ask = r.money("ask");
  if (2 <= r.version()) v.stage = r.u32("stage");
  return v;
}

ProviderHold read_hold(Reader& r) {
  ProviderHold h;
  h.provider = r.name("provider", limits::kNameBytes);
  h.ms = r.u32("ms", kHoldMsMax);
  return h;
}

Sync read_sync(Reader& r) {
  Sync m;
  m.worker = WorkerId(r.name("worker", limits::kNameBytes));
  m.boot = BootId(r.u64("boot"));
  m.version = r.name("version", limits::kNameBytes);
  m.epoch_seen = Epoch(r.u64("epoch_seen"));
  m.slots = r.u32("slots", std::uint32_t{limits::kSlotsMax});
  m.features =
      r.names("features", r.version() < 6 ? kFeaturesMaxUntil5 : kFeaturesMax, limits::kNameBytes);
  m.running = r.list("running", limits::kSlotsMax, read_running);
  m.unacked = r.attempts("unacked", limits::kBatchItems);
  if (r.version() < 4) return m;
  m.ticket = r.u64("ticket");
  m.obeyed = r.u64("obeyed");
  m.calls = r.counts("calls", kRateBucketsMax, kCallsPerMinuteMax);
  if (5 <= r.version()) m.campaign = r.text("campaign", limits::kNameBytes);
  if (6 <= r.version()) m.declined = r.attempts("declined", limits::kBatchItems);
  if (11 <= r.version()) m.holds = r.list("holds", kHoldsMax, read_hold);
  return m;
}

Progress read_progress(Reader& r) {
  Progress m;
  m.epoch = Epoch(r.u64("epoch"));
  m.running = r.list("running", limits::kSlotsMax, read_running);
  return m;
}

Want read_want(Reader& r) {
  return {r.digests("digests", limits::kBatchItems)};
}

// Is [offset, offset + size) inside [0, total)?
bool fits(std::uint64_t offset, std::size_t size, std::uint64_t total) {
  return offset <= total && size <= total - offset;
}

ArchiveChunk read_archive_chunk(Reader& r) {
  ArchiveChunk m;
  m.epoch = Epoch(r.u64("epoch"));
  m.attempt = r.attempt();
  m.archive = r.digest("archive");
  m.offset = r.u64("offset", limits::kArchiveBytes);
  m.total = r.u64("total", limits::kArchiveBytes);
  m.bytes = r.binary("bytes", limits::kChunkBytes);
  r.require(fits(m.offset, m.bytes.size(), m.total), "bytes", "end behind `total`");
  return m;
}

ResultMessage read_result(Reader& r) {
  ResultMessage m;
  m.epoch = Epoch(r.u64("epoch"));
  m.attempt = r.attempt();
  m.outcome = r.enumerator("outcome", RunOutcome::kInvalid);
  m.termination = r.enumerator("termination", r.version() < 7    ? Termination::kInfrastructure
                                              : r.version() < 10 ? Termination::kAgentUnavailable
                                              : r.version() < 11 ? Termination::kBreaker
                                                                 : Termination::kModelOverloaded);
  m.rationale = r.text("rationale", limits::kDetailBytes);
  m.infrastructure = r.boolean("infrastructure");
  m.report = r.digest("report");
  m.archive = r.digest("archive");
  m.archive_bytes = r.u64("archive_bytes", limits::kArchiveBytes);
  r.require((m.archive == Digest()) == (m.archive_bytes == 0), "archive_bytes",
            "size and digest disagree on whether there is an archive");
  m.usage = r.nested("usage", read_usage);
  m.started_ms = r.wall_ms("started_ms");
  m.finished_ms = r.wall_ms("finished_ms");
  if (4 <= r.version()) m.overload = r.boolean("overload");
  r.require(m.infrastructure || !m.overload, "overload", "is a kind of `infrastructure`");
  if (r.version() < 7) return m;
  m.fault = r.enumerator("fault", Fault::kAgent);
  m.cause = r.text("cause", limits::kDetailBytes);
  const bool of_somebody = m.fault != Fault::kHost;
  r.require(!of_somebody || (m.infrastructure && !m.overload), "fault",
            "is a kind of `infrastructure`");
  r.require(of_somebody != m.cause.empty(), "cause", "is said of a task or an agent");
  return m;
}

Leave read_leave(Reader& r) {
  Leave m;
  m.worker = WorkerId(r.name("worker", limits::kNameBytes));
  m.boot = BootId(r.u64("boot"));
  if (6 <= r.version()) m.spooled = r.attempts("spooled", limits::kBatchItems);
  return m;
}

SyncReply read_sync_reply(Reader& r) {
  SyncReply m;
  m.epoch = Epoch(r.u64("epoch"));
  m.campaign = r.name("campaign", limits::kNameBytes);
  m.next_sync_ms = r.u32("next_sync_ms", kNextSyncMsMax);
  m.cancel = r.attempts("cancel", limits::kBatchItems);
  m.acked = r.attempts("acked", limits::kBatchItems);
  m.resend = r.attempts("resend", limits::kBatchItems);
  m.drain = r.boolean("drain");
  if (3 <= r.version()) m.stop = r.attempts("stop", limits::kBatchItems);
  if (r.version() < 4) return m;
  m.ticket = r.u64("ticket");
  m.shares = r.counts("shares", kRateBucketsMax, kCallsPerMinuteMax);
  m.suspended = r.boolean("suspended");
  if (9 <= r.version()) m.demand = r.u32("demand", kDemandMax);
  if (11 <= r.version()) m.holds = r.list("holds", kHoldsMax, read_hold);
  return m;
}

Assign read_assign(Reader& r) {
  Assign m;
  m.epoch = Epoch(r.u64("epoch"));
  m.settings = r.digest("settings");
  m.runs = r.list("runs", limits::kBatchItems, read_assignment);
  return m;
}

Bundle read_bundle(Reader& r) {
  Bundle m;
  m.digest = r.digest("digest");
  m.bytes = r.binary("bytes", kBundlePartBytes);
  m.offset = r.u64("offset", limits::kContractBundleBytes);
  m.total = r.u64("total", limits::kContractBundleBytes);
  const bool whole = m.total == 0 && m.offset == 0;
  r.require(whole || (m.total != 0 && fits(m.offset, m.bytes.size(), m.total)), "bytes",
            "end behind `total`");
  return m;
}

Ack read_ack(Reader& r) {
  return {r.attempts("results", limits::kBatchItems)};
}

ChunkAck read_chunk_ack(Reader& r) {
  ChunkAck m;
  m.attempt = r.attempt();
  m.next_offset = r.u64("next_offset", limits::kArchiveBytes);
  return m;
}

Cancel read_cancel(Reader& r) {
  Cancel m;
  m.epoch = Epoch(r.u64("epoch"));
  m.attempts = r.attempts("attempts", limits::kBatchItems);
  m.reason = r.text("reason", limits::kDetailBytes);
  return m;
}

Refuse read_refuse(Reader& r, bool of_our_version) {
  Refuse m{r.text("reason", limits::kDetailBytes)};
  while (!of_our_version && r.more()) static_cast<void>(r.any("later field"));
  return m;
}

struct Body {
  const msgpack::object& object;
  std::uint32_t version;
};

template <class Read>
Result<Message> read_body(const Body& body, const char* what, Read read) {
  Failure failure;
  failure.version = body.version;
  Reader r(body.object, what, failure);
  auto m = read(r);
  r.finish();
  if (failure.bad()) return Error{Errc::kInvalid, std::move(failure.detail)};
  return Message(std::move(m));
}

Result<Message> read_kind(Kind kind, bool of_our_version, const Body& body) {
  switch (kind) {
    case Kind::kSync:
      return read_body(body, "Sync", read_sync);
    case Kind::kProgress:
      return read_body(body, "Progress", read_progress);
    case Kind::kWant:
      return read_body(body, "Want", read_want);
    case Kind::kArchiveChunk:
      return read_body(body, "ArchiveChunk", read_archive_chunk);
    case Kind::kResult:
      return read_body(body, "Result", read_result);
    case Kind::kLeave:
      return read_body(body, "Leave", read_leave);
    case Kind::kSyncReply:
      return read_body(body, "SyncReply", read_sync_reply);
    case Kind::kAssign:
      return read_body(body, "Assign", read_assign);
    case Kind::kBundle:
      return read_body(body, "Bundle", read_bundle);
    case Kind::kAck:
      return read_body(body, "Ack", read_ack);
    case Kind::kChunkAck:
      return read_body(body, "ChunkAck", read_chunk_ack);
    case Kind::kCancel:
      return read_body(body, "Cancel", read_cancel);
    case Kind::kRefuse:
      return read_body(body, "Refuse", [&](Reader& r) { return read_refuse(r, of_our_version); });
  }
  return Error{Errc::kInvalid, "unknown kind"};
}

Error invalid(std::string detail) {
  return Error{Errc::kInvalid, std::move(detail)};
}
}  // namespace

std::uint32_t peek_version(std::string_view bytes) {
  Envelope e;
  if (!peek(bytes, e) || UINT32_MAX < e.version) return 0;
  return static_cast<std::uint32_t>(e.version);
}

std::uint64_t peek_kind(std::string_view bytes) {
  Envelope e;
  return peek(bytes, e) ? e.kind : 0;
}

Refuse wrong_version(std::uint32_t version) {
  return {"protocol version " + std::to_string(version) + " is not spoken here (" +
          std::to_string(kOldestServed) + " to " + std::to_string(kVersion) +
          "): update proctor-worker or proctor"};
}

std::string_view kind_name(const Message& message) {
  return std::visit(Overload{
                        [](const Sync&) { return "Sync"; },
                        [](const Progress&) { return "Progress"; },
                        [](const Want&) { return "Want"; },
                        [](const ArchiveChunk&) { return "ArchiveChunk"; },
                        [](const ResultMessage&) { return "Result"; },
                        [](const Leave&) { return "Leave"; },
                        [](const SyncReply&) { return "SyncReply"; },
                        [](const Assign&) { return "Assign"; },
                        [](const Bundle&) { return "Bundle"; },
                        [](const Ack&) { return "Ack"; },
                        [](const ChunkAck&) { return "ChunkAck"; },
                        [](const Cancel&) { return "Cancel"; },
                        [](const Refuse&) { return "Refuse"; },
                    },
                    message);
}

Result<Message> decode(std::string_view bytes) try {
  Envelope e;
  if (!peek(bytes, e)) return invalid("not a message: no [version, kind, body] in front");
  const bool of_our_version =
      e.version <= UINT32_MAX && is_spoken(static_cast<std::uint32_t>(e.version));
  const bool refusal = e.kind == static_cast<std::uint64_t>(Kind::kRefuse);
  if (!of_our_version && (!refusal || e.version == 0))
    return invalid("protocol version " + std::to_string(e.version) + " is not spoken here");
  if (e.kind == 0 || kLastKind < e.kind) return invalid("unknown kind " + std::to_string(e.kind));
  const Allowance most = allowance(e.kind);
  if (most.frame_bytes < bytes.size()) {
    return invalid("a message of kind " + std::to_string(e.kind) + " has " +
                   std::to_string(bytes.size()) + " bytes, at most " +
                   std::to_string(most.frame_bytes));
  }
  // Strings stay in `bytes` instead of being copied twice.
  const auto by_reference = [](msgpack::type::object_type, std::size_t, void*) { return true; };
  std::size_t used = 0;
  const msgpack::object_handle frame =
      msgpack::unpack(bytes.data(), bytes.size(), used, by_reference, nullptr, most.limit);
  if (used != bytes.size())
    return invalid(std::to_string(bytes.size() - used) + " bytes behind the end of the message");
  // peek() saw the array of three.
  const Body body{frame->via.array.ptr[2], static_cast<std::uint32_t>(e.version)};
  return read_kind(static_cast<Kind>(e.kind), of_our_version, body);
} catch (const msgpack::unpack_error& e) {
  return Error{Errc::kInvalid, std::string("not MessagePack within the limits: ") + e.what()};
} catch (const std::bad_alloc&) {
  return Error{Errc::kExhausted, "no memory to unpack a message"};
}
}  // namespace proctor::wire
