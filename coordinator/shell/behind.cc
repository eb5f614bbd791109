#include "coordinator/shell/behind.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <algorithm>
#include <map>

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
std::optional<std::string> kept_digest(const std::vector<MetaSet>& said) {
  for (const MetaSet& m : said)
    if (m.key == kMetaKept) return m.value;
  return std::nullopt;
}

Result<std::optional<MetaSet>> kept_fact(const StateFolder& folder,
                                         const std::vector<MetaSet>& said) {
  if (kept_digest(said)) return std::optional<MetaSet>();
  const Result<std::string> list = read_file(kept_list(folder), limits::kPlanFileBytes);
  if (!list.ok() && list.error().code == Errc::kNotFound) return std::optional<MetaSet>();
  if (!list.ok()) return list.error();
  return std::optional(MetaSet{kMetaKept, sha256(*list).hex()});
}

namespace {
// The folders of runs of one task under one method: when each was touched, by replicate.
using Touched = std::map<std::uint32_t, std::int64_t>;
Touched touched_in(const fs::path& folder) {
  Touched out;
  for (const fs::path& entry : paths_in(folder)) {
    struct stat is {};
    const auto replicate = number_behind(entry.filename().native(), "r");
    if (replicate && ::lstat(entry.c_str(), &is) == 0 && S_ISDIR(is.st_mode))
      out.emplace(*replicate, std::int64_t{is.st_mtim.tv_sec} * 1000);
  }
  return out;
}

// The attempts of one run that left a directory or an archive, each once.
std::map<std::uint32_t, fs::path> attempts_in(const fs::path& folder) {
  constexpr std::string_view kArchive = ".tar.zst";
  std::map<std::uint32_t, fs::path> out;
  for (const fs::path& entry : paths_in(folder)) {
    const std::string whole = entry.filename().string();
    std::string_view name = whole;
    if (name.ends_with(kArchive)) name.remove_suffix(kArchive.size());
    if (const auto no = number_behind(name, "attempt-")) out.emplace(*no, entry);
  }
  return out;
}

// The attempt as the journal has it, if it has it.
const RestoredAttempt* find(const RestoredState& state, const AttemptId& id) {
  const auto it = std::ranges::lower_bound(state.attempts, id, {}, &RestoredAttempt::attempt);
  return it == state.attempts.end() || it->attempt != id ? nullptr : &*it;
}

MicroUsd spent_at_most(const RestoredState& state) {
  MicroUsd out;
  for (const RestoredAttempt& a : state.attempts) {
    if (a.settled)
      out = out + a.charged;
    else if (a.state != AttemptState::kDenied && a.state != AttemptState::kVoided)
      out = out + a.ask;
  }
  for (const RunReviewed& r : state.reviews) out = out + r.charged;
  return out;
}

std::string and_more(std::size_t n) {
  return n < 2 ? "" : fmt::format(" (and {} more)", n - 1);
}
}  // namespace

std::optional<std::uint32_t> number_behind(std::string_view text, std::string_view prefix) {
  if (!take_word(text, prefix)) return std::nullopt;
  const auto n = whole_number<std::uint32_t>(text);
  return n == 0U ? std::nullopt : n;
}

std::vector<Evidence> evidence_of(const StateFolder& folder, const Plan& plan, std::int64_t since) {
  std::vector<Evidence> out;
  std::map<std::pair<std::uint32_t, std::uint16_t>, Touched> folders;
  for (std::uint32_t i = 0; i < plan.size(); ++i) {
    const RunId run(i);
    const PlanRow& row = plan.row(run);
    auto at = folders.find({row.task, row.method});
    if (at == folders.end()) {
      const fs::path method = folder.runs() / plan.task(run).id / plan.method(run);
      at = folders.emplace(std::pair(row.task, row.method), touched_in(method)).first;
    }
    const auto touched = at->second.find(row.replicate);
    if (touched == at->second.end() || touched->second < since) continue;
    for (auto& [no, where] : attempts_in(folder.run(plan.run_name(run))))
      out.push_back({{run, AttemptNo(no)}, std::move(where)});
  }
  return out;
}

std::vector<std::string> unknown_evidence(const std::vector<Evidence>& evidence,
                                          const RestoredState& state) {
  std::size_t n = 0;
  std::string first;
  for (const Evidence& e : evidence) {
    const RestoredAttempt* a = find(state, e.attempt);
    // One that was voided had been granted: what its worker made of that is its worker's affair.
    if (a != nullptr && a->state != AttemptState::kReserving && a->state != AttemptState::kDenied)
      continue;
    if (n++ == 0) first = e.where.string();
  }
  if (n == 0) return {};
  return {fmt::format("{}{} is of an attempt that the journal never granted", first, and_more(n))};
}

std::vector<std::string> unknown_money(const LedgerHeld& held, const RestoredState& state) {
  if (held.epoch.raw() + kEpochsBeyond <= state.last_epoch.raw()) return {};  // recovered since
  std::vector<std::string> out;
  if (state.last_epoch < held.epoch)
    out.push_back(
        fmt::format("Redis was filled under epoch {} of this campaign, the journal ends "
                    "with epoch {}",
                    held.epoch.raw(), state.last_epoch.raw()));
  std::size_t n = 0;
  std::string first;
  for (const AskId& id : held.asks) {
    const RestoredAttempt* a = find(state, id.attempt);
    if (a != nullptr && id.seq <= a->seq) continue;
    if (n++ == 0) first = to_string(id);
  }
  if (0 < n)
    out.push_back(fmt::format("Redis answered ask {}{}, of which the journal does not know", first,
                              and_more(n)));
  if (const MicroUsd most = spent_at_most(state); most < held.spent)
    out.push_back(fmt::format("in Redis {} are spent, the journal knows of {} at most",
                              format_usd_exact(held.spent), format_usd_exact(most)));
  return out;
}

Error behind_error(const StateFolder& folder, const std::vector<std::string>& problems) {
  std::string all;
  for (const std::string& p : problems) all += "\n  " + p;
  return {Errc::kCorrupt,
          fmt::format("{} is whole and knows less than what is around it: it was put back to an "
                      "older state, or its end is missing. Nothing was begun.{}\n"
                      "  To put the whole one back: journal.sqlite with its -wal, of the same "
                      "moment\n  To go on without it:       proctor journal recover {}",
                      folder.journal().string(), all, folder.campaign.string())};
}
}  // namespace proctor
