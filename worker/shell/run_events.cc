#include "worker/shell/run_events.h"

#include <algorithm>
#include <fstream>

#include "common/base/digest.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/base/result.h"
#include "common/base/text.h"
#include "common/trace/evidence.h"

namespace proctor {
ProgramEnd end_of(const ExecOutcome& outcome) {
  using End = ExecOutcome::End;
  constexpr auto same = [](End a, ExecEnd b) { return static_cast<int>(a) == static_cast<int>(b); };
  static_assert(same(End::kExited, ExecEnd::kExited) &&
                same(End::kSignalled, ExecEnd::kSignalled) &&
                same(End::kTimedOut, ExecEnd::kTimedOut) && same(End::kMemory, ExecEnd::kMemory) &&
                same(End::kDisk, ExecEnd::kDisk) && same(End::kCpu, ExecEnd::kCpu) &&
                same(End::kCancelled, ExecEnd::kCancelled));
  return {static_cast<ExecEnd>(outcome.end), outcome.exit_code, outcome.signal, outcome.wall};
}

void mark_cut(const fs::path& file, std::uint64_t produced) {
  std::error_code ec;
  if (const std::uintmax_t there = fs::file_size(file, ec); ec || produced <= there) return;
  Result<std::string> kept = read_file(file, 2 * limits::kCheckOutputBytes);
  if (!kept.ok() || produced <= kept->size() || kept->size() < 2 * kCutLineBytes) return;
  const std::size_t size = kept->size();
  if (cut_line_of(std::string_view(*kept).substr(size - kCutLineBytes))) return;
  // Its own last bytes give it the room: what is kept of a stream has a bound.
  std::string line;
  for (int look = 0; look < 2; ++look) line = cut_line(produced - size + line.size(), produced);
  kept->replace(size - line.size(), line.size(), line);
  if (const Status written = write_file(file, *kept, Durability::kLazy); !written.ok())
    log::warn(file.string() + " does not say that it is cut: " + written.error().detail);
}

events::ProgramUse program_use(const ExecOutcome& outcome, const fs::path& out,
                               const fs::path& err) {
  const auto stream = [](const fs::path& file, std::uint64_t produced) -> events::StreamKept {
    mark_cut(file, produced);
    const Result<std::string> kept = read_file(file, 2 * limits::kCheckOutputBytes);
    if (!kept.ok()) return {produced};
    return {produced, kept->size(), sha256(*kept)};
  };
  const ProgramEnd end = end_of(outcome);
  return {end.end,
          end.exit_code,
          end.signal,
          outcome.wall,
          outcome.cpu,
          outcome.memory_peak,
          stream(out, outcome.stdout_bytes),
          stream(err, outcome.stderr_bytes)};
}

events::CommandRan command_ran(const std::string& command, const ExecOutcome& outcome,
                               std::chrono::milliseconds ceiling, const fs::path& out,
                               const fs::path& err, const std::string& tool) {
  return {command, ceiling, program_use(outcome, out, err), tool};
}

events::PathList path_list(const std::vector<std::string>& paths, std::size_t most_bytes) {
  events::PathList out{paths.size()};
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < std::min(paths.size(), kListedPaths); ++i) {
    std::string path = is_utf8(paths[i]) ? paths[i] : printable(paths[i], 4 * paths[i].size());
    bytes += Json(path).dump().size();  // as it is written: a byte may need six
    if (most_bytes < bytes) break;
    out.listed.push_back(std::move(path));
  }
  return out;
}

events::Mutation mutation_of(const Patch& patch, const std::vector<std::string>& kept) {
  events::Mutation out{patch.files,
                       patch.insertions,
                       patch.deletions,
                       patch.diff.size(),
                       sha256(patch.diff),
                       path_list(patch.paths),
                       path_list(patch.refused),
                       path_list(patch.conflicts),
                       path_list(kept),
                       path_list(patch.left_out),
                       {}};
  out.left_out.count = patch.left_out_count;
  return out;
}

std::vector<Json> fragments_of(FragmentFinder& finder, const std::string& check,
                               const ExecSpec& ran) {
  std::vector<Json> out;
  for (const auto& [stream, file] :
       {std::pair("stdout", ran.stdout_file), std::pair("stderr", ran.stderr_file)})
    if (const auto kept = read_file(file, 2 * limits::kCheckOutputBytes); kept.ok())
      for (const Fragment& f : finder.find(*kept))
        out.push_back(events::kFragment.json(check, f.extractor, stream, f.line, f.text));
  return out;
}

Result<Patch> as_extracted(const events::Mutation& m, std::string diff) {
  if (!m.unreadable.empty()) return Error{Errc::kInvalid, m.unreadable};
  return Patch{std::move(diff),    m.files,
               m.insertions,       m.deletions,
               m.paths.listed,     m.refused.listed,
               m.conflicts.listed, m.left_out.listed,
               m.left_out.count,   {}};
}

events::PatchTried patch_tried(Room room, const std::optional<AppliedPatch>& applied,
                               const std::string& why) {
  events::PatchTried out{std::string(to_string(room)), std::nullopt, {}, why};
  if (!applied) return out;
  out.rung = to_string(applied->rung);
  for (const std::string& words : applied->tried)
    out.tried.push_back(printable(words, limits::kDetailBytes));
  return out;
}

Json network_payload(const NetworkAccess& access) {
  if (access.filtered()) return access.allow;
  return access.open;
}

Result<AgentLog::Noted> AgentLog::note(RunRecorder& log, std::string_view type, Actor actor,
                                       const Json& payload) {
  const RunRecorder::Length before = log.length();
  if (full_ != 0 && (bounds_.bytes_most <= before.bytes || bounds_.events_most <= before.events))
    return Noted{full_};
  Noted noted{full_};
  if (Result<std::uint64_t> seq = log.event(type, actor, payload); seq.ok())
    noted.seq = *seq;
  else if (seq.error().code != Errc::kExhausted)
    return std::move(seq).error();
  else
    return fill(log, "its event " + std::string(type) + " is too long", noted);
  const RunRecorder::Length length = log.length();
  if (length.bytes < bounds_.bytes && length.events < bounds_.events) return noted;
  return fill(
      log, std::to_string(length.events) + " events of " + std::to_string(length.bytes) + " bytes",
      noted);
}

Result<AgentLog::Noted> AgentLog::fill(RunRecorder& log, std::string why, Noted noted) {
  if (full_ != 0) return noted;
  why = "the agent was stopped at the limit of what is recorded of its calls: " + why;
  PROCTOR_TRY(full_,
              log.event(events::kTraceFull.type, Actor::kHarness,
                        events::kTraceFull.json(why, log.length().bytes, log.length().events)));
  if (noted.seq == 0) noted.seq = full_;
  noted.full = std::move(why);
  noted.evidence = full_;
  return noted;
}

namespace {
constexpr std::size_t kLines = 3, kLineBytes = 300, kRefusedListed = 5;
constexpr std::streamoff kTailBytes = 4'096;

std::string tail_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const auto size = static_cast<std::streamoff>(in.tellg());
  in.seekg(std::max<std::streamoff>(0, size - kTailBytes));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
}  // namespace

std::string last_lines(std::string_view text) {
  std::string out;
  for (std::size_t found = 0; found < kLines && !text.empty();) {
    const std::size_t cut = text.find_last_of('\n');
    const std::size_t begin = cut == std::string_view::npos ? 0 : cut + 1;
    const std::string_view line = trimmed(text.substr(begin), " \t\r");
    text = text.substr(0, cut == std::string_view::npos ? 0 : cut);
    if (line.empty()) continue;
    out = printable(line, kLineBytes) + (found == 0 ? "" : " | ") + out;
    ++found;
  }
  return out;
}

std::string failure_words(const fs::path& stderr_file, const std::vector<std::string>& refused) {
  std::string out;
  if (const std::string said = last_lines(tail_of(stderr_file)); !said.empty())
    out = "stderr ends: " + said;
  for (std::size_t i = 0; i < std::min(refused.size(), kRefusedListed); ++i)
    out += (i != 0        ? ", "
            : out.empty() ? "refused by its network: "
                          : "; refused by its network: ") +
           printable(refused[i], kLineBytes);
  if (kRefusedListed < refused.size())
    out += " and " + std::to_string(refused.size() - kRefusedListed) + " more";
  return out;
}
}  // namespace proctor
