#include "common/trace/event.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>
#include <vector>

#include "common/base/json_fields.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/trace/payloads.h"

namespace proctor {
namespace {
Error invalid(std::string detail) {
  return Error{Errc::kInvalid, std::move(detail)};
}

// The type goes into the line unescaped, so its alphabet is closed.
bool is_event_type(std::string_view type) {
  if (type.empty() || kEventTypeBytes < type.size()) return false;
  if (type.front() == '.' || type.back() == '.' || type.find("..") != std::string_view::npos)
    return false;
  return std::ranges::all_of(type, [](char c) {
    return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '_' || c == '.';
  });
}

// A payload that a reader would refuse as too deep must not be written.
bool fits_depth(const Json& value, std::size_t left) {
  if (!value.is_structured()) return true;
  if (left == 0) return false;
  return std::ranges::all_of(value, [left](const Json& v) { return fits_depth(v, left - 1); });
}

// Takes the payload, of which nothing is left then.
Result<EventLine> read_event(Json& json) {
  Json payload;
  if (const auto found = json.find("payload"); found != json.end()) payload = std::move(*found);
  PROCTOR_TRY(EventLine event, from_json<EventLine>(json));
  event.payload = std::move(payload);
  return event;
}
}  // namespace

Result<SealedEvent> seal_event(const TraceEvent& event) {
  if (!is_event_type(event.type))
    return invalid("event type \"" + printable(event.type, 80) +
                   "\": expected words like agent.start");
  if (!event.payload.is_object()) return invalid(event.type + ": the payload is not an object");
  if (!fits_depth(event.payload, limits::kConfigDepth - 1))
    return invalid(event.type + ": the payload is nested too deeply");
  PROCTOR_TRY(const std::string payload, canonical_json(event.payload));
  // Written by hand because the payload is then serialised once; the keys are in canonical order
  // and everything but the payload is plain ASCII.
  const std::string actor = "{\"actor\":\"" + std::string(to_string(event.actor)) + "\",";
  const std::string rest = "\"payload\":" + payload + ",\"prev\":\"" + event.prev.hex() +
                           "\",\"seq\":" + std::to_string(event.seq) +
                           ",\"t\":" + std::to_string(event.t) + ",\"type\":\"" + event.type +
                           "\"}";
  const Digest hash = sha256(actor + rest);
  SealedEvent sealed{actor + "\"hash\":\"" + hash.hex() + "\"," + rest + "\n", hash};
  if (limits::kEventBytes < sealed.line.size())
    return Error{Errc::kExhausted, event.type + ": an event of " +
                                       std::to_string(sealed.line.size()) + " bytes; at most " +
                                       std::to_string(limits::kEventBytes) + " are kept"};
  return sealed;
}

Result<TraceEvent> EventChain::accept(std::string_view line) {
  PROCTOR_TRY(Json json, parse_json(line, {.bytes_max = limits::kEventBytes,
                                           .depth_max = limits::kConfigDepth}));
  PROCTOR_TRY(EventLine event, read_event(json));
  if (event.seq != length_)
    return invalid("seq " + std::to_string(event.seq) + " where " + std::to_string(length_) +
                   " follows");
  if (event.prev != head_) return invalid("prev is not the hash of the event before");
  if (0 < length_ && event.t <= last_t_) return invalid("t does not grow");
  PROCTOR_TRY(const SealedEvent sealed, seal_event(event));
  if (event.hash != sealed.hash) return invalid("hash is not that of the event");
  if (std::string_view(sealed.line).substr(0, sealed.line.size() - 1) != line)
    return invalid("not written as canonical JSON");
  ++length_;
  last_t_ = event.t;
  head_ = sealed.hash;
  return TraceEvent(std::move(event));
}

// RunRecorder: a run directory as it is written.

namespace {
constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

std::uint64_t machine_micros() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(mono_now().time_since_epoch()).count());
}

// What a killed process was writing (write_file's own names), and a report of what goes on.
Status remove_unfinished(const fs::path& dir) {
  std::vector<fs::path> gone = {dir / kReportFile};
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(dir, ec)) {
    if (is_temporary_name(entry.path().filename().string())) gone.push_back(entry.path());
  }
  for (const fs::path& path : gone)
    if (!ec) fs::remove(path, ec);
  if (ec) return errno_error("clear " + dir.string(), ec.value());
  return ok_status();
}
}  // namespace

Status RunRecorder::flush() {
  while (!buffer_.empty()) {
    const ssize_t n = ::write(log_.get(), buffer_.data(), buffer_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("write " + (dir_ / kEventsFile).string(), errno);
    buffer_.erase(0, static_cast<std::size_t>(n));
  }
  return ok_status();
}

Result<std::uint64_t> RunRecorder::append(std::string_view type, Actor actor, const Json& payload) {
  const std::uint64_t now = clock_();
  const std::uint64_t start = origin_.value_or(now);
  std::uint64_t t = start < now ? now - start : 0;
  if (0 < seq_ && t <= last_t_) t = last_t_ + 1;
  PROCTOR_TRY(const SealedEvent sealed, seal_event({.seq = seq_,
                                                    .t = t,
                                                    .actor = actor,
                                                    .type = std::string(type),
                                                    .payload = payload,
                                                    .prev = head_}));
  if (kEventsMax <= seq_ || kEventLogBytes - logged_ < sealed.line.size())
    return Error{Errc::kExhausted, "the event log is full at " + std::to_string(seq_) + " events"};
  buffer_ += sealed.line;
  logged_ += sealed.line.size();
  origin_ = start;
  last_t_ = t;
  head_ = sealed.hash;
  return seq_++;
}

// The machine-readable payload of each check (R050), and the digests of what it left behind.
Status RunRecorder::complete_checks(RunReport& report) const {
  for (CheckReport& check : report.checks) {
    const std::string name = check_dir_name(check.id);
    const fs::path folder = dir_ / kAcceptanceDir / name;
    std::error_code ec;
    if (!fs::is_directory(folder, ec)) continue;  // it never ran: nothing to bind
    const auto fill = [&](std::optional<Digest>& digest, std::string_view file) -> Status {
      if (digest) return ok_status();
      const Result<EvidenceFile> found = hash_file(folder, std::string(file));
      if (found.ok()) digest = found->digest;
      if (!found.ok() && found.error().code != Errc::kNotFound) return found.error();
      return ok_status();
    };
    PROCTOR_CHECK_OK(fill(check.stdout_digest, kStdoutFile));
    PROCTOR_CHECK_OK(fill(check.stderr_digest, kStderrFile));
    PROCTOR_CHECK_OK(fill(check.result_digest, kResultsFile));
    if (fs::exists(folder / kCheckFile, ec)) continue;
    // As report.json will have this check, cut and made UTF-8.
    PROCTOR_TRY(const std::string bytes, canonical_json(to_json(check)));
    PROCTOR_CHECK_OK(write_file(folder / kCheckFile, bytes + "\n", Durability::kLazy));
  }
  return ok_status();
}

// A phase that ended before it wrote anything leaves its folder: no evidence of anything.
Status RunRecorder::remove_empty_folders() const {
  PROCTOR_TRY(const std::vector<TreeEntry> entries, list_tree(dir_));
  std::set<std::string, std::less<>> needed;
  for (const TreeEntry& entry : entries) {
    if (entry.folder) continue;
    for (std::size_t i = entry.path.find('/'); i != std::string::npos;
         i = entry.path.find('/', i + 1))
      needed.insert(entry.path.substr(0, i));
  }
  std::vector<std::string> empty;
  for (const TreeEntry& entry : entries)
    if (entry.folder && !needed.contains(entry.path)) empty.push_back(entry.path);
  std::ranges::sort(empty, std::greater<>());  // what is inside goes first
  std::error_code ec;
  for (const std::string& path : empty) {
    fs::remove(dir_ / path, ec);
    if (ec) return errno_error("remove " + (dir_ / path).string(), ec.value());
  }
  return ok_status();
}

Status RunRecorder::collect_files(RunReport& report) const {
  PROCTOR_TRY(const std::vector<TreeEntry> entries, list_tree(dir_));
  report.files.clear();
  for (const TreeEntry& entry : entries) {
    if (entry.folder || entry.path == kReportFile) continue;
    PROCTOR_TRY(EvidenceFile file, hash_file(dir_, entry.path));
    report.files.push_back(std::move(file));
  }
  return ok_status();
}

RunRecorder::RunRecorder(const fs::path& dir, MicrosClock clock)
    : dir_(dir), clock_(clock ? std::move(clock) : MicrosClock(machine_micros)) {}

RunRecorder::~RunRecorder() {
  // An attempt that died half-way keeps what it knew; there is nobody left to tell of a failure.
  if (log_.valid() && !finished_) static_cast<void>(flush().ok());
}

Result<RunRecorder> RunRecorder::create(const fs::path& dir, MicrosClock clock) {
  PROCTOR_CHECK_OK(make_private_dirs(dir));
  std::error_code ec;
  const bool empty = fs::is_empty(dir, ec);
  if (ec) return errno_error("list " + dir.string(), ec.value());
  if (!empty) return Error{Errc::kConflict, dir.string() + ": not empty; a run directory is new"};
  RunRecorder out(dir, std::move(clock));
  const fs::path log = dir / kEventsFile;
  out.log_ = UniqueFd(::open(
      log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (!out.log_.valid()) return errno_error("create " + log.string(), errno);
  return out;
}

RunRecorder::Mark RunRecorder::mark() const {
  return {seq_, origin_.value_or(0), patch_, manifest_.value_or(Digest())};
}

Result<RunRecorder> RunRecorder::reopen(const fs::path& dir, const Mark& mark, Keep keep,
                                        MicrosClock clock) {
  const fs::path log = dir / kEventsFile;
  PROCTOR_TRY(const std::string bytes, read_file(log, kEventLogBytes));
  RunRecorder out(dir, std::move(clock));
  out.origin_ = mark.origin;
  out.manifest_ = mark.manifest;
  out.patch_ = mark.patch;
  EventChain chain;
  for (std::size_t end = 0; (end = bytes.find('\n', out.logged_)) != std::string::npos;) {
    if (keep == Keep::kMarked && chain.length() == mark.events) break;
    const Result<TraceEvent> event =
        chain.accept(std::string_view(bytes).substr(out.logged_, end - out.logged_));
    if (!event.ok()) break;
    out.last_t_ = event->t;
    out.logged_ = end + 1;
  }
  if (chain.length() < mark.events)
    return Error{Errc::kCorrupt, log.string() + ": " + std::to_string(chain.length()) +
                                     " events, expected " + std::to_string(mark.events)};
  PROCTOR_CHECK_OK(remove_unfinished(dir));
  out.seq_ = chain.length();
  out.head_ = chain.head();
  out.log_ = UniqueFd(::open(log.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!out.log_.valid() || ::ftruncate(out.log_.get(), static_cast<off_t>(out.logged_)) != 0)
    return errno_error("go on with " + log.string(), errno);
  return out;
}

Status RunRecorder::write_manifest(const Json& manifest) {
  if (finished_) return invalid("the run directory is finished");
  if (manifest_) return invalid("the manifest is written once");
  PROCTOR_TRY(std::string bytes, canonical_json(manifest));
  bytes += '\n';
  PROCTOR_CHECK_OK(write_file(dir_ / kManifestFile, bytes, Durability::kLazy));
  manifest_ = sha256(bytes);
  PROCTOR_TRY([[maybe_unused]] const std::uint64_t seq,
              append(events::kManifestWritten.type, events::kManifestWritten.actor,
                     events::kManifestWritten.json(*manifest_)));
  return flush();
}

Result<std::uint64_t> RunRecorder::event(std::string_view type, Actor actor, const Json& payload) {
  if (finished_) return invalid("the run directory is finished");
  if (actor == Actor::kAgent && !manifest_)
    return invalid("the agent acts before the manifest is written");
  PROCTOR_TRY(const std::uint64_t seq, append(type, actor, payload));
  if (kBufferBytes <= buffer_.size()) PROCTOR_CHECK_OK(flush());
  return seq;
}

Status RunRecorder::write_patch(std::string_view diff) {
  if (finished_) return invalid("the run directory is finished");
  if (patch_) return invalid("the patch is written once");
  if (limits::kPatchBytes < diff.size())
    return Error{Errc::kExhausted, "a patch of " + std::to_string(diff.size()) + " bytes"};
  PROCTOR_CHECK_OK(write_file(dir_ / kPatchFile, diff, Durability::kLazy));
  patch_ = sha256(diff);
  return ok_status();
}

Result<fs::path> RunRecorder::check_dir(std::string_view check_id) {
  if (finished_) return invalid("the run directory is finished");
  fs::path folder = dir_ / kAcceptanceDir / check_dir_name(check_id);
  PROCTOR_CHECK_OK(make_private_dirs(folder));
  return folder;
}

Result<Digest> RunRecorder::finish(RunReport report) {
  if (finished_) return invalid("the run directory is finished");
  PROCTOR_CHECK_OK(flush());
  report.manifest = manifest_.value_or(Digest());
  report.patch = patch_.value_or(Digest());
  report.events = seq_;
  report.head = head_;
  PROCTOR_CHECK_OK(complete_checks(report));
  PROCTOR_CHECK_OK(remove_empty_folders());
  PROCTOR_CHECK_OK(collect_files(report));
  const std::string bytes = report_bytes(report);
  if (kReportBytes < bytes.size())
    return Error{Errc::kInvalid, "a report of " + std::to_string(bytes.size()) + " bytes"};
  PROCTOR_CHECK_OK(write_file(dir_ / kReportFile, bytes, Durability::kLazy));
  finished_ = true;
  return sha256(bytes);
}
}  // namespace proctor
