#pragma once
// The kinds of events that a worker writes of a run, and what the payload of each holds (R052,
// R081, R088, R090-R092).  Those of models, the meter and single tools are written where these are.
//
//   note(events::kStage, "brief", "agent");                                a writer
//   if (const auto told = events::kMutation.read(event.payload)) ...       a reader
//
// Pure, but for last_in(); any thread.  Text that is not UTF-8 is made printable: the trace holds
// JSON.
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/base/json_fields.h"
#include "common/score/outcome.h"
#include "common/score/result_reader.h"
#include "common/trace/event.h"
#include "common/trace/evidence.h"
#include "common/trace/manifest.h"
#include "common/trace/run_report.h"

namespace proctor::events {
using Millis = std::chrono::milliseconds;

// One stream of a program: what was produced, what was kept, the digest of what was kept.
struct StreamKept {
  std::uint64_t bytes = 0, kept = 0;
  std::optional<Digest> digest{};
};
void fields(auto& v, Is<StreamKept> auto& s) {
  v("bytes", s.bytes);
  v("kept", s.kept);
  v("digest", s.digest);
}

struct ProgramUse {
  ExecEnd ended = ExecEnd::kExited;
  int exit_code = 0, signal = 0;
  std::chrono::milliseconds wall{0}, cpu{0};
  std::uint64_t memory_peak = 0;
  StreamKept out{}, err{};
};
void fields(auto& v, Is<ProgramUse> auto& u) {
  v("ended", u.ended);
  v("exit_code", u.exit_code);
  v("signal", u.signal);
  v("wall_ms", u.wall);
  v("cpu_ms", u.cpu);
  v("memory_peak", u.memory_peak);
  v("stdout", u.out);
  v("stderr", u.err);
}

struct CommandRan {
  std::string command;
  std::chrono::milliseconds ceiling{0};  // R092
  ProgramUse use{};
  std::string tool{};  // of the agent's
  // A step of a setup has them; a method's own has no room.
  std::string room{};
  std::optional<std::uint64_t> step{};
  Json network{};       // true, false, or the list of places
  std::string layer{};  // what was kept of an earlier run and used in its place
};
void fields(auto& v, Is<CommandRan> auto& c) {
  v("command", c.command);
  v("ceiling_ms", c.ceiling);
  fields(v, c.use);
  v("tool", c.tool, kOptional);
  v("room", c.room, kOptional);
  v("step", c.step, kOptional);
  v("network", c.network, kOptional);
  v("layer", c.layer, kOptional);
}

struct LeftOut {
  std::string path, why;
};
void fields(auto& v, Is<LeftOut> auto& l) {
  v("path", l.path);
  v("why", l.why);
}

// How many there are, and of these the first.
struct PathList {
  std::uint64_t count = 0;
  std::vector<std::string> listed{};
};
void fields(auto& v, Is<PathList> auto& p) {
  v("count", p.count);
  v("listed", p.listed);
}

// The tree that the agent left, as a patch.  Older workers said less of it.
struct Mutation {
  std::uint64_t files = 0, insertions = 0, deletions = 0, bytes = 0;
  Digest patch;
  PathList paths, refused, conflicts;
  PathList kept, left_out;  // of files that git ignores: the contract's word, and what it does not
  PathList of_setup{};      // those `paths` that lie as setup left them
  std::chrono::milliseconds wall{0}, cpu{0};
  std::optional<std::uint64_t> memory_peak{};
  std::string unreadable{};  // not empty: why it is not what the agent left
};
void fields(auto& v, Is<Mutation> auto& m) {
  v("files", m.files, kLater);
  v("insertions", m.insertions, kLater);
  v("deletions", m.deletions, kLater);
  v("bytes", m.bytes, kLater);
  v("patch", m.patch, kLaterAside);
  v("paths", m.paths, kLater);
  v("refused", m.refused, kLater);
  v("conflict_markers", m.conflicts, kLater);
  v.section("ignored", [&](auto& ignored) {
    ignored("kept", m.kept, kAside);
    ignored("left_out", m.left_out, kAside);
  });
  v("of_setup", m.of_setup, kLater);
  v("wall_ms", m.wall, kLaterAside);
  v("cpu_ms", m.cpu, kLaterAside);
  v("memory_peak", m.memory_peak, {.optional = true, .aside = true});
  v("unreadable", m.unreadable, kOptional);
}

struct PatchTried {
  std::string room;
  std::optional<std::string> rung;  // none: it fits by none, and `why`
  std::vector<std::string> tried{};
  std::string why;
};
void fields(auto& v, Is<PatchTried> auto& p) {
  v("room", p.room);
  v("rung", p.rung);
  v("tried", p.tried, kAside);
  v("why", p.why);
}

struct CheckTold {
  CheckReport check;
  std::int64_t started_ms = 0, finished_ms = 0;
};
void fields(auto& v, Is<CheckTold> auto& c) {
  fields(v, c.check);
  v("started_ms", c.started_ms, kAside);
  v("finished_ms", c.finished_ms, kAside);
}

// A service beside a check: why its sandbox failed, or how it ended.
struct ServiceEnded {
  std::string check, service;
  bool by_itself = false;
  std::optional<std::chrono::milliseconds> ready_after{};
  std::optional<std::string> error{};
  ProgramUse use{};
};
void fields(auto& v, Is<ServiceEnded> auto& s) {
  v("check", s.check);
  v("service", s.service);
  v("by_itself", s.by_itself);
  v("ready_after_ms", s.ready_after, kOptional);
  v.follows("ready", s.ready_after.has_value());
  v("error", s.error, kOptional);
  if (!s.error) fields(v, s.use);
}

// The image of a contract that says how to make it.
struct ImageHad {
  Digest inputs;
  std::string id;
  bool built = false;
  std::map<std::string, std::string> bases{};  // the ids of those it was built on, by their names
  bool network = false;
  std::chrono::milliseconds wall{0};
  std::string failure{};
  std::optional<Digest> log{};  // the words of its builder
};
void fields(auto& v, Is<ImageHad> auto& i) {
  v("inputs", i.inputs);
  v("id", i.id);
  v("built", i.built);
  v("bases", i.bases);
  v("network", i.network);
  v("wall_ms", i.wall);
  v("failure", i.failure, kOptional);
  v("log", i.log, kOptional);
}

struct NetworkRequest {
  std::string phase, method, host;
  std::uint64_t port = 0;
  std::string verdict, address;  // connected to
  std::uint64_t sent = 0, received = 0;
  std::chrono::milliseconds wall{0};
  std::string why{};
};
void fields(auto& v, Is<NetworkRequest> auto& r) {
  v("phase", r.phase);
  v("method", r.method);
  v("host", r.host);
  v("port", r.port);
  v("verdict", r.verdict);
  v("address", r.address);
  v("sent", r.sent);
  v("received", r.received);
  v("wall_ms", r.wall);
  v("why", r.why, kOptional);
}

struct Traffic {
  std::uint64_t requests = 0, sent = 0, received = 0;
};
void fields(auto& v, Is<Traffic> auto& t) {
  v("requests", t.requests);
  v("sent", t.sent);
  v("received", t.received);
}
// Requests beyond those that have events of their own.
struct UnlistedPlace {
  std::string place, verdict;
  Traffic sum;
};
void fields(auto& v, Is<UnlistedPlace> auto& p) {
  fields(v, p.sum);
  v("place", p.place);
  v("verdict", p.verdict);
}

// A kind of event whose payload is a structure.
template <Described T>
struct Kind {
  std::string_view type;
  Actor actor = Actor::kHarness;
  std::size_t text_bytes = SIZE_MAX;  // at most, of each text without a bound of its own

  Json json(const T& payload) const {
    JsonWriter v(JsonWriter::Texts::kClean, text_bytes);
    fields(v, payload);
    return v.take();
  }
  // None: of another shape.  Members that this version does not know are passed over.
  std::optional<T> read(const Json& payload, Versions versions = Versions::kAny) const {
    std::optional<T> out(std::in_place);
    if (!read_json(*out, payload, "", Errc::kCorrupt, versions).ok()) out.reset();
    return out;
  }
};

// One whose few members have their names here.  An empty std::optional is left out.
template <class... T>
struct Plain {
  template <class Member>
  using Name = const char*;
  explicit constexpr Plain(std::string_view event, Name<T>... members)
      : type(event), names{members...} {}

  std::string_view type;
  std::array<const char*, sizeof...(T)> names;
  static constexpr Actor actor = Actor::kHarness;

  Json json(const T&... values) const {
    JsonWriter v(JsonWriter::Texts::kClean);
    members(v, std::forward_as_tuple(values...), std::index_sequence_for<T...>());
    return v.take();
  }
  std::optional<std::tuple<T...>> read(const Json& payload) const {
    std::tuple<T...> out;
    std::string problem;
    JsonReader v(payload, "", problem, Versions::kAny);
    members(v, out, std::index_sequence_for<T...>());
    return v.ok() ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  template <std::size_t... I>
  void members(auto& v, auto&& values, std::index_sequence<I...>) const {
    (v(names[I], std::get<I>(values), Rule{.optional = json_detail::kIsOptional<T>}), ...);
  }
};

// The last one in a run directory; none, too, where it has another shape.  Errors: of each_event().
template <class K>
auto last_in(const fs::path& run_dir, const K& kind) -> Result<decltype(kind.read({}))> {
  PROCTOR_TRY(const Json payload, last_event(run_dir, kind.type));
  return kind.read(payload);
}

// The table of kinds.

using Text = std::string;
using Count = std::uint64_t;
using MaybeText = std::optional<std::string>;

inline constexpr Plain<Digest> kManifestWritten{"manifest.written", "digest"};
// Where it cannot be built the type ends in ".failed".
inline constexpr Kind<ImageHad> kSetupImage{"setup.image"};
inline constexpr Plain<Text, Text, Text> kSnapshotRefused{"snapshot.refused", "why", "commit",
                                                          "tree"};
// Its users are what it has; the manifest, which comes before it, says what was to be had.
inline constexpr Plain<Text, Text, Text, Text> kWorkspaceOpened{"workspace.opened", "room", "kind",
                                                                "users", "tree"};
inline constexpr Plain<Text, Text> kStage{"stage", "from", "to"};
inline constexpr Kind<CommandRan> kSetup{"setup"}, kMethodSetup{"setup.method"};
inline constexpr Plain<Digest, Digest, Count, Count> kSetupKept{"setup.kept", "key", "layer",
                                                                "bytes", "files"},
    kMethodSetupKept{"setup.method.kept", "key", "layer", "bytes", "files"};
inline constexpr Plain<Text> kBriefing{"briefing", "text"};  // verbatim (R068)
inline constexpr Plain<Text, Json, std::vector<Text>> kAgentStart{"agent.start", "method",
                                                                  "network", "privileges"};
inline constexpr Plain<Text> kToolsOpen{"tools.open", "mode"};
inline constexpr Plain<Count, Count, Text, bool> kToolsClosed{"tools.closed", "calls", "refused",
                                                              "stage", "submitted"};
inline constexpr Plain<Text, Text, Count, Count, Count, Count> kToolLoopClosed{
    "tool_loop.closed", "why", "prompt", "turns", "tool_calls", "refused", "left_out_bytes"};
inline constexpr Kind<CommandRan> kTool{"tool", Actor::kAgent};
inline constexpr Plain<Text> kAgentOrder{"agent.order", "reason"};
inline constexpr Plain<Millis, Text> kAgentStop{"agent.stop", "grace_ms", "reason"};
inline constexpr Plain<Text, Count, Count> kTraceFull{"trace.full", "why", "bytes", "events"};
// Files of the agent that its method keeps, and those that it would have kept.
inline constexpr Plain<std::vector<EvidenceFile>, std::vector<LeftOut>> kAgentKept{
    "agent.kept", "files", "left_out"};
inline constexpr Kind<NetworkRequest> kNetworkRequest{"network.request", Actor::kAgent};
inline constexpr Plain<Text, std::map<Text, Traffic>, std::vector<UnlistedPlace>, Count>
    kNetworkClosed{"network.closed", "phase", "sums", "not_listed", "beyond"};
// A monitor is a circuit breaker, a filtered network, or what looks at system calls and commands:
// what it saw, and what was done about it.
inline constexpr Plain<Text, Json, Text, MaybeText> kAlert{"monitor.alert", "code", "signals",
                                                           "stage", "why"};
inline constexpr Plain<Text, Count, MaybeText, MaybeText> kIntervention{
    "monitor.intervention", "action", "alert", "breaker", "stage"};
// Codes and signals of alerts that are no breaker's.
inline constexpr std::string_view kNetworkDenied = "network_denied", kEscape = "escape",
                                  kHostWrite = "host_write", kRefusedCall = "refused_call",
                                  kOsRisk = "os_risk";
struct CallSeen {  // the signals of all but kOsRisk and a proxy's refusals
  Text call;
  Text target;  // a path, or a host and port; empty: the call has none
};
void fields(auto& v, Is<CallSeen> auto& c) {
  v("call", c.call);
  v("target", c.target);
}
struct CommandSeen {  // kOsRisk
  Text pattern;
  Text form;     // executed, tool call, code, text: the last two are words alone (R099, R152)
  Text segment;  // the line that matches
  Text source;   // where it is: "model call 3, byte 120", "tool", "process"
};
void fields(auto& v, Is<CommandSeen> auto& c) {
  v("pattern", c.pattern);
  v("form", c.form);
  v("segment", c.segment);
  v("source", c.source);
}
inline constexpr Kind<Mutation> kMutation{"mutation"};
inline constexpr Kind<PatchTried> kPatchApply{"patch.apply"};
// Before the first check, and what came back before each of them.
inline constexpr Kind<PathList> kRestored{"mutation.restored"},
    kRestoredAgain{"mutation.restored_again"}, kHomeRestored{"home.restored"},
    kGitRestored{"git.restored"};
inline constexpr Plain<std::vector<FileDigest>> kPlaced{"mutation.placed", "files"};
inline constexpr Kind<ServiceEnded> kService{"service"};
inline constexpr Kind<CheckTold> kAcceptance{"acceptance", Actor::kHarness, kReportTextBytes};
// Acceptance of the same patch begins once more, as registered: its repetition of so many (R133).
inline constexpr Plain<Count, Count> kRepeated{"acceptance.repeated", "nth", "of"};
// A line of a build that failed (score/taxonomy.h); its stream is "stdout" or "stderr".
inline constexpr Plain<Text, Text, Text, Count, Text> kFragment{"fragment", "check", "extractor",
                                                                "stream",   "line",  "text"};
// The same patch is judged again, for the host failed.
inline constexpr Plain<Count, Text> kJudgedAgain{"acceptance.again", "nth", "why"};
inline constexpr Plain<Millis, Millis, std::optional<Count>> kRemoved{"removed", "wall_ms",
                                                                      "cpu_ms", "memory_peak"};
// Whether the agent's program went on, and the lives of the worker before this one.
inline constexpr Plain<bool, Count> kWorkerRestarted{"worker.restarted", "agent", "lives"};
inline constexpr Plain<Errc, Text> kStepFailed{"step.failed", "error", "why"};
inline constexpr Plain<Text, bool> kCancelAsked{"cancel.asked", "reason", "worker_leaves"};
inline constexpr Plain<Termination, Text, Count> kTermination{"termination",  // R081
                                                              "code", "rationale", "evidence"};
}  // namespace proctor::events
