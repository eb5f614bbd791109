#include "coordinator/cli/journal_around.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/base/parse.h"
#include "common/ledger/redis_ledger.h"
#include "coordinator/cli/redis_access.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/behind.h"

namespace proctor::cli {
namespace {

// The campaign's own Redis ended with its coordinator: only a configured one remembers.
Result<std::optional<LedgerHeld>> held_by_redis(const FrozenCampaign& frozen) {
  const bool none =
      frozen.campaign.ledger == Campaign::LedgerKind::kJournal || frozen.campaign.redis.empty();
  if (none) return std::optional<LedgerHeld>();
  PROCTOR_TRY(RedisEndpoint endpoint, redis_endpoint(frozen.campaign.redis));
  PROCTOR_TRY(RedisLedger ledger,
              RedisLedger::open({.endpoint = std::move(endpoint), .campaign = frozen.id}));
  return ledger.held();
}

// What the journal holds; nothing where there is none.
Result<RestoredState> known_to(const fs::path& journal, bool& blank) {
  Result<JournalReader> reader = JournalReader::open(journal);
  blank = !reader.ok() && reader.error().code == Errc::kNotFound;
  if (blank) return RestoredState();
  if (!reader.ok()) return std::move(reader).error();
  return reader->load();
}

// RUN.ATTEMPT, as the files of workers are named.
std::optional<AttemptId> attempt_named(std::string_view stem) {
  const auto run = whole_number<std::uint32_t>(take_until(stem, '.'));
  const auto no = whole_number<std::uint32_t>(stem);
  if (!run || !no || *no == 0 || kAttemptsMax < *no) return std::nullopt;
  return AttemptId{RunId(*run), AttemptNo(*no)};
}

// A book in which no page was written is of an attempt that never began
// (worker/shell/meter_book.h).
bool is_written(const fs::path& file) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const Result<std::string> bytes = read_file(file, kBytes);
  return !bytes.ok() || bytes->find_first_not_of('\0') != std::string::npos;
}

}  // namespace

std::map<AttemptId, WorkerId> held_by_workers(const FrozenCampaign& frozen) {
  std::map<AttemptId, WorkerId> out;
  std::error_code ec;
  for (const auto& [folder, ending] :
       {std::pair("meters", ".meter"), std::pair("spool", ".result")})
    for (fs::directory_iterator home(frozen.folder.worker_homes(), ec), end; !ec && home != end;
         home.increment(ec)) {
      std::error_code none;
      for (fs::directory_iterator file(home->path() / folder / frozen.id, none);
           !none && file != end; file.increment(none)) {
        const auto id = attempt_named(file->path().stem().string());
        if (id && file->path().extension() == ending && is_written(file->path()))
          out.emplace(*id, WorkerId(home->path().filename().string()));
      }
    }
  return out;
}

Result<StatusSnapshot> last_status(const StateFolder& folder) {
  constexpr std::size_t kStatusBytes = std::size_t{64} << 20;
  PROCTOR_TRY(const std::string bytes, read_file(folder.status(), kStatusBytes));
  return parse_status(bytes);
}

std::string begun_by_status(const StateFolder& folder) {
  const Result<StatusSnapshot> last = last_status(folder);
  if (!last.ok() || last->done() + last->active == 0) return {};
  return fmt::format("{} says that {} of {} runs had ended and {} were under way",
                     folder.status().string(), last->done(), last->planned, last->active);
}

Result<Around> look_around(const FrozenCampaign& frozen) {
  Around out;
  const Result<std::optional<LedgerHeld>> held = held_by_redis(frozen);
  if (!held.ok()) out.unasked = held.error().detail;
  std::vector<Evidence> evidence = evidence_of(frozen.folder, frozen.plan, 0);
  for (const auto& [id, worker] : held_by_workers(frozen))
    if (id.run.raw() < frozen.plan.size())
      evidence.push_back({id, frozen.folder.worker_homes() / worker.raw()});
  bool blank = false;
  PROCTOR_TRY(const RestoredState state, known_to(frozen.folder.journal(), blank));
  out.problems = unknown_evidence(evidence, state);
  if (const std::string begun = blank ? begun_by_status(frozen.folder) : std::string();
      !begun.empty())
    out.problems.push_back(begun);
  if (!held.ok() || !*held) return out;
  std::ranges::move(unknown_money(**held, state), std::back_inserter(out.problems));
  if (state.last_epoch.raw() < (*held)->epoch.raw() + kEpochsBeyond) out.asks = (*held)->asks;
  return out;
}

}  // namespace proctor::cli
