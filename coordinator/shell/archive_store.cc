#include "coordinator/shell/archive_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

#include "common/base/file_lock.h"
#include "common/base/owned.h"
#include "common/trace/archive.h"
#include "common/trace/run_report.h"

namespace proctor {
namespace {

constexpr std::string_view kPart = ".part";

Result<Digest> digest_of_file(const fs::path& path) {
  PROCTOR_TRY(const UniqueFd fd, open_own_file(path, O_RDONLY));
  Sha256 hash;
  std::string buffer(std::size_t{64} << 10, '\0');
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0) return errno_error(path.string(), errno);
    if (n == 0) return hash.finish();
    hash.update(std::string_view(buffer).substr(0, static_cast<std::size_t>(n)));
  }
}

// Why the run directory is not evidence of the result; empty: it is.  kUnavailable: this host could
// not read it, which says nothing of it.
Result<std::string> contradiction(const fs::path& dir, const wire::ResultMessage& result,
                                  const ArchiveStore::Identity& identity) {
  // What `proctor verify` would hold against it later is held against it now.
  const VerifyResult found = verify_run(dir, result.report, identity.price);
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
  if (report->outcome != result.outcome || report->termination != result.termination)
    return fmt::format("report.json says {}, {}; the result says {}, {}",
                       to_string(report->outcome), to_string(report->termination),
                       to_string(result.outcome), to_string(result.termination));
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

// Names of workers are ids (base/worker_name.h): safe in a path.
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
  std::error_code ec;
  for (fs::directory_iterator it(folder_.incoming(), ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
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
  std::error_code ec;
  if (!fs::exists(folder_.incoming(), ec)) {
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
    const Result<Digest> stored = digest_of_file(archive);
    if (!stored.ok()) return by_host(stored.error());
    if (*stored == result.archive) {  // sent again: it is here, if it says what the result says
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
  const Result<Digest> found = digest_of_file(path);
  if (!found.ok()) return by_host(found.error());
  if (size != result.archive_bytes || *found != result.archive) {
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
