#include "coordinator/cli/verify_evidence.h"

#include <fmt/format.h>

#include "common/base/text.h"
#include "common/trace/evidence.h"
#include "common/trace/run_report.h"

namespace proctor::cli {
namespace {

constexpr const char* kArchiveEnd = ".tar.zst";

bool may_have_evidence(const RestoredAttempt& a) {
  return a.has_result || a.state == AttemptState::kGranted || a.state == AttemptState::kLost ||
         a.state == AttemptState::kCancelled;
}

}  // namespace

EvidenceAudit::EvidenceAudit(const FrozenCampaign& frozen, PriceFunction price, Problem problem)
    : frozen_(frozen), price_(std::move(price)), problem_(std::move(problem)) {
  for (std::uint32_t r = 0; r < frozen.plan.size(); ++r) {
    const std::string name = frozen.plan.run_name(RunId(r));
    for (std::size_t i = name.find('/'); i != std::string::npos; i = name.find('/', i + 1))
      folders_.insert(name.substr(0, i));
    folders_.insert(name);
  }
}

void EvidenceAudit::know(const AttemptRecord& a) {
  if (frozen_.plan.size() <= a.core.attempt.run.raw() || !may_have_evidence(a.core)) return;
  const std::string at =
      frozen_.folder.attempt(frozen_.plan.run_name(a.core.attempt.run), a.core.attempt.no)
          .lexically_relative(frozen_.folder.runs())
          .generic_string();
  known_.insert(at);
  known_.insert(at + kArchiveEnd);
}

std::optional<VerifyResult> EvidenceAudit::add(const AttemptRecord& a) {
  know(a);
  const AttemptId id = a.core.attempt;
  if (!a.core.has_result || frozen_.plan.size() <= id.run.raw()) return std::nullopt;
  const std::string name = frozen_.folder.attempt(frozen_.plan.run_name(id.run), id.no).string();
  if (a.archive_bytes == 0 || a.report == Digest() || a.archive == Digest()) {
    // Whoever broke an attempt before there was evidence says invalid; anything else was judged.
    if (a.core.outcome != RunOutcome::kInvalid || a.archive_bytes != 0)
      problem_(name, fmt::format("the journal says {}, and names no evidence for it",
                                 to_string(a.core.outcome)));
    ++without_;
    return std::nullopt;
  }
  check_archive(a, name);
  if (!check_places(a, name)) return std::nullopt;
  VerifyResult result = verify_run(name, a.report, price_);
  if (result.report) check_identity(a, *result.report, name);
  return result;
}

// No part of the way below runs/ may lead elsewhere: what is read must be what is kept here.
bool EvidenceAudit::check_places(const AttemptRecord& a, const std::string& name) {
  fs::path at = frozen_.folder.runs();
  for (const fs::path& part : fs::path(name).lexically_relative(at)) {
    at /= part;
    std::error_code ec;
    const fs::file_type type = fs::symlink_status(at, ec).type();
    if (type == fs::file_type::directory) continue;
    const std::string what = fmt::format("the journal says {}", to_string(a.core.outcome));
    if (type == fs::file_type::not_found)
      problem_(name, "the run directory is missing; " + what);
    else if (type == fs::file_type::symlink)
      problem_(at.string(), "a link, where the run directory must be");
    else
      problem_(at.string(), "not a folder; " + what);
    return false;
  }
  return true;
}

void EvidenceAudit::check_archive(const AttemptRecord& a, const std::string& name) {
  const fs::path archive = name + kArchiveEnd;
  const Result<EvidenceFile> found = hash_file(archive.parent_path(), archive.filename().string());
  if (!found.ok()) {
    std::error_code ec;
    const fs::file_type type = fs::symlink_status(archive, ec).type();
    problem_(archive.string(), type == fs::file_type::not_found ? "the archive is missing"
                               : type == fs::file_type::symlink
                                   ? "a link, where the archive must be"
                                   : found.error().detail);
    return;
  }
  if (found->bytes != a.archive_bytes || found->digest != a.archive)
    problem_(archive.string(),
             fmt::format("{} bytes with digest {}, the journal says {} with {}", found->bytes,
                         found->digest.short_hex(), a.archive_bytes, a.archive.short_hex()));
}

void EvidenceAudit::check_identity(const AttemptRecord& a, const RunReport& r,
                                   const std::string& name) {
  const RunId run = a.core.attempt.run;
  if (r.campaign != frozen_.id) problem_(name, "its report is of another campaign");
  if (r.run_name != frozen_.plan.run_name(run) || r.task != frozen_.plan.task(run).id ||
      r.method != frozen_.plan.method(run))
    problem_(name, fmt::format("its report is of run {}", printable(r.run_name, 200)));
  if (r.started_ms != a.started_ms || r.finished_ms != a.finished_ms)
    problem_(name, "its report has other times than the journal");
  // Of one that was lost meanwhile the grant is not asked when its result comes.
  const WallTime granted = a.core.state == AttemptState::kLost ? WallTime(0) : a.granted_at;
  if (const std::string wrong = wrong_times(r.started_ms, r.finished_ms, granted, a.result_at);
      !wrong.empty())
    problem_(name, "its report: " + wrong);
}

std::set<std::string> EvidenceAudit::unknown() const {
  std::set<std::string> out;
  std::vector<std::string> open{""};
  while (!open.empty()) {
    const std::string folder = std::move(open.back());
    open.pop_back();
    std::error_code ec;
    for (fs::directory_iterator it(frozen_.folder.runs() / folder, ec), end; !ec && it != end;
         it.increment(ec)) {
      if (it->path() == frozen_.folder.incoming()) continue;
      const std::string file = it->path().filename().string();
      const std::string at = folder.empty() ? file : folder + "/" + file;
      if (known_.contains(at)) continue;
      const bool way =
          folders_.contains(at) && it->symlink_status(ec).type() == fs::file_type::directory;
      if (way)
        open.push_back(at);
      else
        out.insert(at);
      ec.clear();
    }
  }
  return out;
}

Status EvidenceAudit::finish(JournalReader& journal) {
  if (unknown().empty()) return ok_status();
  PROCTOR_CHECK_OK(journal.each_attempt([this](const AttemptRecord& a) { know(a); }));
  for (const std::string& at : unknown())
    problem_((frozen_.folder.runs() / printable(at, 400)).string(),
             "the journal knows nothing that could have left it");
  return ok_status();
}

}  // namespace proctor::cli
