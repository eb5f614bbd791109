#include "coordinator/shell/worker_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/file_lock.h"
#include "common/base/system_clock.h"
#include "common/trace/archive.h"
#include "common/trace/evidence.h"
#include "common/trace/run_report.h"

namespace proctor {
CampaignRules::CampaignRules(const Campaign& campaign) {
  const Settings settings = settings_of(campaign);
  for (const Contract& c : campaign.contracts)
    by_task_.emplace(std::pair(c.id, c.digest), judge_rules(c, settings));
}

const JudgeRules* CampaignRules::operator()(const RunReport& report) const {
  const auto it = by_task_.find(std::pair(report.task, report.contract));
  return it == by_task_.end() ? nullptr : &it->second;
}

Bundles::Bundles(const Campaign& campaign, const std::string& id) : rules_(campaign) {
  Settings settings = settings_of(campaign);
  settings.campaign = id;
  settings_ = digest_of(settings);
  bytes_.emplace(settings_, make_bundle(settings));
  for (const Contract& c : campaign.contracts)
    bytes_.emplace(c.digest, make_bundle(c, c.origin.folder.empty() ? campaign.folder / "contracts"
                                                                    : c.origin.folder));
  for (const Method& m : campaign.methods) bytes_.emplace(m.digest, make_bundle(m));
}

const std::string* Bundles::find(const Digest& digest) const {
  const auto it = bytes_.find(digest);
  return it == bytes_.end() ? nullptr : &it->second;
}

namespace {
constexpr std::size_t kAllowFilesMax = 20'000;  // of the folder: a file for each worker there is
// Two changes within the grain of a file system's clock leave the same times.
constexpr std::int64_t kGrainNs = 1'000'000'000;

std::int64_t ns_of(const timespec& t) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return static_cast<std::int64_t>(t.tv_sec) * kSecond + t.tv_nsec;
}

bool is_settled(std::int64_t changed_ns) {
  constexpr std::int64_t kMs = 1'000'000;
  return changed_ns + kGrainNs < wall_now().raw() * kMs;
}
}  // namespace

// The list itself comes first, whatever the others are called.
std::vector<fs::path> AllowFiles::paths() const {
  std::vector<fs::path> out;
  std::error_code ec;
  for (fs::directory_iterator it(folder_.allow_folder(), ec), end;
       !ec && it != end && out.size() < kAllowFilesMax; it.increment(ec))
    if (it->path().extension() == ".allow") out.push_back(it->path());
  std::ranges::sort(out);
  if (fs::exists(folder_.allow_list(), ec)) out.insert(out.begin(), folder_.allow_list());
  return out;
}

std::optional<AllowFiles::Seen> AllowFiles::stat_of(const fs::path& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return std::nullopt;
  return Seen{static_cast<std::uint64_t>(st.st_size), st.st_ino, ns_of(st.st_mtim),
              ns_of(st.st_ctim)};
}

Result<wire::AllowList> AllowFiles::read() {
  if (!is_there(folder_.allow_folder()) && !is_there(folder_.allow_list()))
    return Error{Errc::kNotFound, folder_.allow_list().string() + ": no such file"};
  Change first = look();
  if (!first.mistakes.empty()) return Error{Errc::kInvalid, first.mistakes.front()};
  return std::move(first.list).value_or(wire::AllowList());
}

AllowFiles::Change AllowFiles::look() {
  Change out;
  std::map<fs::path, File> now;
  std::map<fs::path, std::string> mistakes;
  bool changed = false;
  for (const fs::path& path : paths()) {
    const std::optional<Seen> seen = stat_of(path);
    if (!seen) continue;  // it went meanwhile
    const auto before = files_.find(path);
    if (before != files_.end() && before->second.seen == seen) {
      if (const auto told = told_.find(path); told != told_.end()) mistakes.insert(*told);
      now.insert(std::move(*before));
      continue;
    }
    File file;
    if (is_settled(std::max(seen->modified_ns, seen->changed_ns))) file.seen = seen;
    Result<wire::AllowList> list = wire::load_allow_list(path);
    if (list.ok()) {
      file.list = std::move(list).value();
    } else {
      mistakes.emplace(path, list.error().detail);
      if (before != files_.end()) file.list = before->second.list;
    }
    changed = changed || before == files_.end() || !(file.list == before->second.list);
    now.emplace(path, std::move(file));
  }
  changed = changed || now.size() != files_.size();
  files_ = std::move(now);
  for (const auto& [path, what] : mistakes) {
    const auto told = told_.find(path);
    if (told == told_.end() || told->second != what) out.mistakes.push_back(what);
  }
  told_ = std::move(mistakes);
  if (changed) out.list = merged(out.mistakes);
  return out;
}

wire::AllowList AllowFiles::merged(std::vector<std::string>& mistakes) const {
  wire::AllowList out;
  const auto take = [&](const fs::path& path, const wire::AllowList& list) {
    for (const auto& [key, name] : list.names()) {
      if (out.name_of(key) == name) continue;  // said twice
      if (const Status added = out.add(key, name); !added.ok())
        mistakes.push_back(path.string() + ": the line of " + name +
                           " does not count: " + added.error().detail);
    }
  };
  if (const auto it = files_.find(folder_.allow_list()); it != files_.end())
    take(it->first, it->second.list);
  for (const auto& [path, file] : files_)
    if (path != folder_.allow_list()) take(path, file.list);
  return out;
}

namespace {
constexpr std::string_view kPart = ".part";

// Why the run directory is not evidence of the result; empty: it is.  kUnavailable: this host could
// not read it, which says nothing of it.
Result<std::string> contradiction(const fs::path& dir, const wire::ResultMessage& result,
                                  const ArchiveStore::Identity& identity) {
  // What `proctor verify` would hold against it later is held against it now.
  const VerifyResult found = verify_run(dir, result.report, identity.price, identity.rules);
  if (found.unreadable) return Error{Errc::kUnavailable, to_string(found.problems.front())};
  if (!found.report) return to_string(found.problems.front());
  const RunReport* const report = &*found.report;
  if (report->campaign != identity.campaign)
    return std::string("report.json is of another campaign");
  const std::string named =
      fmt::format("{}/{}/r{}", report->task, report->method, report->replicate);
  if (report->run_name != identity.run_name || report->attempt != result.attempt ||
      named != identity.run_name)
    return "report.json is of " + report->run_name + " attempt " + to_string(report->attempt);
  const bool judged = identity.judged && report->manifest != Digest();
  if (judged && !found.judged)
    return std::string("manifest.json: rubric: missing, and the campaign is registered with it");
  if (report->outcome != result.outcome || report->termination != result.termination)
    return fmt::format("report.json says {}, {}; the result says {}, {}",
                       to_string(report->outcome), to_string(report->termination),
                       to_string(result.outcome), to_string(result.termination));
  if (judged && !(result.has_facts && report->facts))
    return std::string("facts: missing, and the campaign is registered with the rules of verdicts");
  if (AttemptFacts expected = result.facts; result.has_facts && report->facts) {
    expected.violated = report->facts->violated;  // each form cuts it in its own way
    AttemptFacts said = *report->facts;
    if (judged || !expected.gates.empty()) add_judged(said, *report);
    if (said != expected) return std::string("report.json says other facts than the result");
  }
  if (report->usage != result.usage)
    return std::string("report.json says another usage than the result");
  if (report->started_ms != result.started_ms || report->finished_ms != result.finished_ms)
    return std::string("report.json says other times than the result");
  if (std::string wrong =
          wrong_times(result.started_ms, result.finished_ms, identity.granted, identity.now);
      !wrong.empty())
    return wrong;
  return found.ok() ? std::string() : to_string(found.problems.front());
}

// On disk, whole, under its name: after a crash the next call finds all of it or begins again.
Status take_place(const fs::path& part, const fs::path& unpacked, const fs::path& target,
                  const fs::path& archive) {
  PROCTOR_CHECK_OK(make_private_dirs(target.parent_path()));
  PROCTOR_CHECK_OK(sync_path(part));
  std::error_code ec;
  const bool there = fs::exists(fs::symlink_status(target, ec));
  if (::renameat2(AT_FDCWD, unpacked.c_str(), AT_FDCWD, target.c_str(),
                  there ? RENAME_EXCHANGE : 0) != 0)
    return errno_error("rename to " + target.string(), errno);
  fs::rename(part, archive, ec);
  if (ec) return errno_error("rename to " + archive.string(), ec.value());
  PROCTOR_CHECK_OK(sync_path(target.parent_path()));
  return remove_tree(unpacked);  // what was exchanged; else nothing
}
}  // namespace

// Names of workers are ids (base/ids.h): safe in a path.
fs::path ArchiveStore::part(const WorkerId& worker, const AttemptId& attempt) const {
  return folder_.incoming() / (to_string(attempt) + "@" + worker.raw() + std::string(kPart));
}

std::uint64_t ArchiveStore::have(const WorkerId& worker, const AttemptId& attempt) const {
  std::error_code ec;
  const auto size = fs::file_size(part(worker, attempt), ec);
  return ec ? 0 : size;
}

std::vector<std::pair<WorkerId, AttemptId>> ArchiveStore::in_part() const {
  std::vector<std::pair<WorkerId, AttemptId>> out;
  for (const fs::path& entry : paths_in(folder_.incoming())) {
    const std::string name = entry.filename().string();
    std::uint32_t run = 0, no = 0;
    int read = 0;
    if (std::sscanf(name.c_str(), "%u.%u@%n", &run, &no, &read) != 2 || read == 0) continue;
    const std::size_t end_of_id = name.rfind(kPart);
    const auto from = static_cast<std::size_t>(read);
    if (end_of_id == std::string::npos || end_of_id <= from) continue;
    out.emplace_back(WorkerId(name.substr(from, end_of_id - from)),
                     AttemptId{RunId(run), AttemptNo(no)});
  }
  return out;
}

Result<UniqueFd> ArchiveStore::open_part(const fs::path& path) const {
  if (!is_there(folder_.incoming())) {
    PROCTOR_CHECK_OK(make_private_dirs(folder_.incoming()));
    spread_subfolders(folder_.incoming());
  }
  return open_own_file(path, O_WRONLY | O_CREAT);
}

Result<std::uint64_t> ArchiveStore::put(const WorkerId& worker, const wire::ArchiveChunk& chunk) {
  if (limits::kArchiveBytes < chunk.total || chunk.total < chunk.bytes.size())
    return Error{Errc::kInvalid, "an archive of " + std::to_string(chunk.total) + " bytes"};
  const fs::path path = part(worker, chunk.attempt);
  PROCTOR_TRY(const UniqueFd fd, open_part(path));
  const off_t end = ::lseek(fd.get(), 0, SEEK_END);
  if (end < 0) return errno_error(path.string(), errno);
  // A first piece begins again: an older, other archive of this attempt may lie there.
  if (chunk.offset == 0 && 0 < end && ::ftruncate(fd.get(), 0) != 0)
    return errno_error(path.string(), errno);
  const std::uint64_t have = chunk.offset == 0 ? 0 : static_cast<std::uint64_t>(end);
  if (chunk.offset != have) return have;
  std::string_view rest = chunk.bytes;
  std::uint64_t at = have;
  while (!rest.empty()) {
    const ssize_t n = ::pwrite(fd.get(), rest.data(), rest.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(path.string(), errno);
    rest.remove_prefix(static_cast<std::size_t>(n));
    at += static_cast<std::uint64_t>(n);
  }
  return at;
}

ArchiveStore::Kept ArchiveStore::finish(const WorkerId& worker, const wire::ResultMessage& result,
                                        const Identity& identity) {
  using State = Kept::State;
  const auto by_host = [](const Error& e) { return Kept{State::kHost, e.detail}; };
  const fs::path target = folder_.attempt(identity.run_name, result.attempt.no);
  const fs::path archive = target.string() + ".tar.zst";
  const fs::path path = part(worker, result.attempt);
  std::error_code ec;
  if (fs::exists(archive, ec) && fs::exists(target, ec)) {
    const Result<EvidenceFile> stored = hash_file({}, archive.string());
    if (!stored.ok()) return by_host(stored.error());
    if (stored->digest ==
        result.archive) {  // sent again: it is here, if it says what the result says
      const Result<std::string> wrong = contradiction(target, result, identity);
      if (!wrong.ok()) return by_host(wrong.error());
      if (!wrong->empty()) return {State::kRefused, *wrong};
      fs::remove(path, ec);
      return {State::kWhole, {}};
    }
  }
  const auto size = fs::file_size(path, ec);
  if (ec || size < result.archive_bytes) {
    // That its worker told a result is known to the next life too, before anybody answers it.
    if (const auto told = open_part(path); !told.ok()) return by_host(told.error());
    return {State::kMissing, "it is not here yet"};
  }
  const Result<EvidenceFile> found = hash_file({}, path.string());
  if (!found.ok()) return by_host(found.error());
  if (size != result.archive_bytes || found->digest != result.archive) {
    fs::resize_file(path, 0, ec);  // that pieces came is known to the next life too
    return {State::kDamaged, "it does not have the promised digest"};
  }
  const fs::path unpacked = path.string() + ".d";
  if (const Status s = remove_tree(unpacked); !s.ok()) return by_host(s.error());  // interrupted
  if (const Status s = unpack_archive(path, unpacked); !s.ok()) {
    const Errc code = s.error().code;
    if (code != Errc::kInvalid && code != Errc::kExhausted) return by_host(s.error());
    fs::resize_file(path, 0, ec);  // likewise, until the journal has its result
    return {State::kRefused, s.error().detail};
  }
  const Result<std::string> wrong = contradiction(unpacked, result, identity);
  if (!wrong.ok()) return by_host(wrong.error());
  if (!wrong->empty()) {
    fs::resize_file(path, 0, ec);
    if (const Status s = remove_tree(unpacked); !s.ok()) return by_host(s.error());
    return {State::kRefused, *wrong};
  }
  if (const Status s = take_place(path, unpacked, target, archive); !s.ok())
    return by_host(s.error());
  return {State::kWhole, {}};
}

Status ArchiveStore::clear() {
  return remove_tree(folder_.incoming());
}
}  // namespace proctor
