#include "coordinator/cli/explain_calls.h"

#include <fmt/format.h>

#include "common/base/text.h"
#include "coordinator/cli/calls_text.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/output_file.h"
#include "coordinator/journal/journal_reader.h"

namespace proctor::cli {
namespace {

struct Evidence {
  AttemptNo attempt;
  fs::path dir;
};

Result<std::vector<Evidence>> evidence_of(const FrozenCampaign& frozen, RunId run) {
  std::vector<Evidence> out;
  std::error_code ec;
  if (!fs::exists(frozen.folder.journal(), ec)) return out;
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  PROCTOR_TRY(const std::vector<AttemptRecord> attempts, journal.attempts_of(run));
  for (const AttemptRecord& a : attempts) {
    const AttemptNo no = a.core.attempt.no;
    fs::path dir = frozen.folder.attempt(frozen.plan.run_name(run), no);
    if (fs::is_directory(dir, ec)) out.push_back({no, std::move(dir)});
  }
  return out;
}

// Lines of a text that may be an agent's or a provider's.
std::string shown(const Result<std::string>& text) {
  if (!text.ok()) return "  (" + text.error().detail + ")\n";
  return printable_lines(*text) + (text->ends_with('\n') || text->empty() ? "" : "\n");
}

}  // namespace

Result<std::string> explain_calls(const FrozenCampaign& frozen, RunId run) {
  PROCTOR_TRY(const std::vector<Evidence> evidence, evidence_of(frozen, run));
  std::string out;
  for (const Evidence& e : evidence) {
    out += "\nAttempt " + std::to_string(e.attempt.raw()) + ": calls of models\n\n";
    const Result<TracedModels> told = read_models(e.dir);
    out += told.ok() ? calls_text(*told) : "  " + told.error().detail + "\n";
    if (!told.ok() || told->trips.empty()) continue;
    out += "\n  Circuit breakers\n";
    for (const TracedTrip& trip : told->trips)
      out += fmt::format("    event {}: {}: {}: {}\n", trip.seq, printable(trip.code, 60),
                         printable(trip.action, 60), printable(trip.why, 500));
  }
  return out.empty() ? "\nNo attempt has left evidence here yet.\n" : out;
}

Result<ExplainedCalls> explain_calls_json(const FrozenCampaign& frozen, RunId run) {
  PROCTOR_TRY(const std::vector<Evidence> evidence, evidence_of(frozen, run));
  ExplainedCalls out;
  for (const Evidence& e : evidence) {
    PROCTOR_TRY(const TracedModels told, read_models(e.dir));
    const std::string attempt = std::to_string(e.attempt.raw());
    out.calls[attempt] = calls_json(told.calls);
    out.breakers[attempt] = trips_json(told.trips);
    out.unlisted[attempt] = unlisted_json(told.unlisted);
  }
  return out;
}

Result<std::string> explain_call(const FrozenCampaign& frozen, RunId run, std::uint64_t number) {
  PROCTOR_TRY(const std::vector<Evidence> evidence, evidence_of(frozen, run));
  for (auto e = evidence.rbegin(); e != evidence.rend(); ++e) {
    PROCTOR_TRY(const std::vector<TracedCall> calls, read_model_calls(e->dir));
    PROCTOR_TRY(const SegmentReader reader, SegmentReader::open(e->dir));
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      if (call->number != number) continue;
      std::string out = "attempt " + std::to_string(e->attempt.raw()) + ", call " +
                        std::to_string(number) + "\n==> asked <==\n";
      out += shown(request_body(*call, reader));
      out += "==> answered <==\n";
      return out + shown(answer_body(*call, reader));
    }
  }
  return Error{Errc::kNotFound, frozen.plan.run_name(run) + " has no call " +
                                    std::to_string(number) + ": --calls lists them"};
}

}  // namespace proctor::cli
