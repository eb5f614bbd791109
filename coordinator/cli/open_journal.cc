#include "coordinator/cli/open_journal.h"

#include <fmt/format.h>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/ledger/private_redis.h"
#include "common/ledger/redis_ledger.h"
#include "common/score/taxonomy.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/sqlite.h"
#include "coordinator/shell/behind.h"

namespace proctor::cli {
Result<RedisEndpoint> redis_endpoint(const std::string& configured) {
  PROCTOR_TRY(RedisEndpoint endpoint, parse_redis_endpoint(configured));
  if (const char* user = std::getenv("PROCTOR_REDIS_USER")) endpoint.user = user;
  if (const char* password = std::getenv("PROCTOR_REDIS_PASSWORD"))
    endpoint.password = Secret(password);
  const auto file = [](const char* variable) -> std::string {
    const char* path = std::getenv(variable);
    return path == nullptr ? "" : path;
  };
  endpoint.tls_files = {file("PROCTOR_REDIS_CA"), file("PROCTOR_REDIS_CERT"),
                        file("PROCTOR_REDIS_KEY")};
  return endpoint;
}

std::optional<std::string> redis_address(const FrozenCampaign& frozen) {
  if (frozen.campaign.ledger == Campaign::LedgerKind::kJournal) return std::nullopt;
  if (!frozen.campaign.redis.empty()) return frozen.campaign.redis;
  constexpr std::size_t kAddressBytes = 200;
  Result<std::string> text =
      read_file(PrivateRedis::address_file(frozen.folder.state()), kAddressBytes);
  if (!text.ok()) return std::nullopt;
  std::string address = std::move(text).value();
  while (address.ends_with('\n')) address.pop_back();
  return address;
}

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
  for (const auto& [folder, ending] :
       {std::pair("meters", ".meter"), std::pair("spool", ".result")})
    for (const fs::path& home : paths_in(frozen.folder.worker_homes())) {
      for (const fs::path& file : paths_in(home / folder / frozen.id)) {
        const auto id = attempt_named(file.stem().string());
        if (id && file.extension() == ending && is_written(file))
          out.emplace(*id, WorkerId(home.filename().string()));
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

namespace {
// Attempts have delivered: a journal that knows of none is not that of a new campaign.
bool has_evidence(const StateFolder& folder) {
  for (const fs::path& entry : paths_in(folder.runs()))
    if (entry != folder.incoming()) return true;
  return false;
}
}  // namespace

Error not_begun(const fs::path& campaign) {
  return Error{Errc::kNotFound,
               fmt::format("nothing of this campaign has run yet: proctor run {} begins",
                           campaign.string())};
}

Result<std::optional<JournalReader>> begun_journal(const StateFolder& folder) {
  PROCTOR_CHECK_OK(check_journal_kinds(folder.journal()));
  const bool has_file = is_there(folder.journal());
  Result<JournalReader> reader = Error{Errc::kNotFound, "no journal"};
  if (has_file) reader = JournalReader::open(folder.journal());
  if (reader.ok()) return std::optional<JournalReader>(std::move(reader).value());
  if (reader.error().code != Errc::kNotFound) return std::move(reader).error();
  // Whoever made the file ended before anything was in it: a full disk, a kill.  Not after a result
  // came.
  const std::string begun =
      has_evidence(folder) ? folder.runs().string() + " has results" : begun_by_status(folder);
  if (begun.empty()) return std::optional<JournalReader>();
  return Error{Errc::kCorrupt,
               fmt::format("{} {}, but {}.\nTo put it back: journal.sqlite with its -wal, of the "
                           "same moment\nTo go on without it: proctor journal recover {}",
                           folder.journal().string(), has_file ? "is empty" : "is missing", begun,
                           folder.campaign.string())};
}

Result<JournalReader> open_journal(const StateFolder& folder) {
  PROCTOR_TRY(std::optional<JournalReader> journal, begun_journal(folder));
  if (!journal) return not_begun(folder.campaign);
  return *std::move(journal);
}

SchedulerSettings scheduler_settings(const FrozenCampaign& frozen) {
  SchedulerSettings out;
  out.campaign = frozen.id;
  out.infrastructure_retries = frozen.campaign.infrastructure_retries;
  out.retries = frozen.campaign.retries;
  out.cost_model = frozen.campaign.cost_model;
  out.watch = frozen.campaign.watch;
  out.rates = frozen.campaign.rates;
  out.stop_after = frozen.campaign.safety.stop_after;
  for (const FailureMode& mode : failure_modes())
    // How a run ended is no violation.
    if (mode.severity == Severity::kCritical && !mode.gates.empty()) out.critical.emplace(mode.id);
  if (const auto own = parse_tag_rules(frozen.campaign.failure_modes); own.ok())
    for (const TagRule& mode : *own)
      if (mode.severity == Severity::kCritical) out.critical.insert(mode.id);
  return out;
}

Result<RestoredState> load_whole(const FrozenCampaign& frozen, JournalReader& journal) {
  constexpr std::int64_t kSlackMs = 3'600'000;  // a clock that was set back an hour hides nothing
  // Who writes it now has looked, and knows more than when this reader began.
  if (journal_owner(frozen.folder.journal())) return journal.load();
  PROCTOR_TRY(const std::optional<WallTime> last, journal.last_fact());
  const std::vector<Evidence> around =
      evidence_of(frozen.folder, frozen.plan, last ? last->raw() - kSlackMs : 0);
  PROCTOR_TRY(RestoredState state, journal.load());
  if (state.last_epoch == Epoch(0)) {  // a Redis and the last coordinator's word may know of lives
    PROCTOR_TRY(const Around all, look_around(frozen));
    if (!all.problems.empty()) return behind_error(frozen.folder, all.problems);
  }
  if (unknown_evidence(around, state).empty()) return state;
  // This reader may hold what was before a coordinator's last words.
  PROCTOR_TRY(JournalReader now, JournalReader::open(frozen.folder.journal()));
  PROCTOR_TRY(const RestoredState newest, now.load());
  const std::vector<std::string> behind = unknown_evidence(around, newest);
  if (!behind.empty()) return behind_error(frozen.folder, behind);
  return state;
}

Result<CampaignView> view_of(const FrozenCampaign& frozen, RestoredState state) {
  return view_campaign(frozen.campaign, frozen.plan, frozen.removed, scheduler_settings(frozen),
                       std::move(state));
}

Result<CampaignView> view_of(const FrozenCampaign& frozen, JournalReader& journal) {
  PROCTOR_TRY(RestoredState state, load_whole(frozen, journal));
  return view_of(frozen, std::move(state));
}
}  // namespace proctor::cli
