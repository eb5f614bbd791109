#include "coordinator/cli/report_digests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string_view>

#include "common/base/file_lock.h"
#include "common/base/json.h"
#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "common/trace/evidence.h"
#include "coordinator/cli/foreign_forms.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/journal_reader.h"

namespace proctor::cli {
namespace {

constexpr const char* kDigestsFormat = "proctor-reports-1";
using ReportProblem = std::function<void(const std::string& where, const std::string& what)>;

Result<HostKey> key_for_reports(const std::string& named) {
  if (!named.empty()) return HostKey::read(named);
  PROCTOR_TRY(const fs::path own, host_key_file());
  return HostKey::read(own);
}

// What the MAC is over: the canonical document without its own two fields.
Result<std::string> body_of(Json json) {
  json.erase("key");
  json.erase("mac");
  return canonical_json(json);
}

enum class Vouched { kByKey, kByNobody, kForged };

using FileDigests = std::map<std::string, Digest>;

struct Digests {
  std::string campaign;  // by its id
  FileDigests files;
  // Of a writer that has not finished: what was there before it.
  std::optional<FileDigests> before;
  std::string head;
  std::int64_t written_ms = 0;
  Vouched vouched = Vouched::kByNobody;
};

const Error kNotDigests{Errc::kInvalid, "not what is written there"};

Result<FileDigests> parse_files(const Json& json) {
  if (!json.is_object()) return kNotDigests;
  FileDigests out;
  for (const auto& [name, digest] : json.items()) {
    if (!digest.is_string() || !is_safe_relative(name) || name.find('/') != std::string::npos)
      return kNotDigests;
    PROCTOR_TRY(out[name], Digest::from_hex(digest.get<std::string>()));
  }
  return out;
}

Result<Digests> parse_digests(const std::string& bytes, const Result<HostKey>& key) {
  PROCTOR_TRY(const Json json, parse_json(bytes));
  if (!json.is_object() || json.value("format", "") != kDigestsFormat || !json.contains("files") ||
      !json.contains("campaign") || !json["campaign"].is_string() ||
      !json.contains("journal_head") || !json["journal_head"].is_string() ||
      !json.contains("written_ms") || !json["written_ms"].is_number_integer() ||
      !json.contains("key") || !json["key"].is_string() || !json.contains("mac") ||
      !json["mac"].is_string())
    return kNotDigests;
  Digests out;
  out.campaign = json["campaign"].get<std::string>();
  out.head = json["journal_head"].get<std::string>();
  out.written_ms = json["written_ms"].get<std::int64_t>();
  PROCTOR_TRY(out.files, parse_files(json["files"]));
  if (json.contains("before")) {
    PROCTOR_TRY(out.before, parse_files(json["before"]));
  }
  if (!key.ok() || json["key"].get<std::string>() != key->key().id()) return out;
  PROCTOR_TRY(const std::string body, body_of(json));
  const bool fits = key->key().mac(body).hex() == json["mac"].get<std::string>();
  out.vouched = fits ? Vouched::kByKey : Vouched::kForged;
  return out;
}

// `before`: what may lie there instead, because a writer was stopped between the two.
void compare_files(const fs::path& dir, const FileDigests& files, const FileDigests* before,
                   const std::string& what, const ReportProblem& problem) {
  for (const auto& [name, digest] : files) {
    const Result<EvidenceFile> found = hash_file(dir, name);
    const std::string where = "reports/" + printable(name, 100);
    const bool had = before != nullptr && before->contains(name);
    if (!found.ok() && found.error().code == Errc::kNotFound) {
      if (before == nullptr || had) problem(where, "it was written, and is missing");
    } else if (!found.ok()) {
      problem(where, found.error().detail);
    } else if (found->digest != digest && !(had && found->digest == before->at(name))) {
      problem(where, what);
    }
  }
}

// Of commands that look at a campaign's tasks (selfcheck.h, screen.h): they say what they know
// again whenever they are asked.
constexpr std::array<std::string_view, 3> kOfPilots{"selfcheck.json", "flakiness.json",
                                                    "quarantine.txt"};

// What lies there beside what was written: folders are those of other forms (foreign_forms.h), and
// a temporary file is of a writer that was killed.
void compare_names(const fs::path& dir, const FileDigests& files, const FileDigests* before,
                   const ReportProblem& problem) {
  std::error_code ec;
  std::set<std::string> foreign;
  for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
    std::error_code gone;
    const auto type = it->symlink_status(gone).type();
    const bool known = type == fs::file_type::directory
                           ? name == kInspectFolder || name == kEveryEvalFolder
                           : name == kReportDigests || is_temporary_name(name) ||
                                 files.contains(name) ||
                                 std::ranges::find(kOfPilots, name) != kOfPilots.end() ||
                                 (before != nullptr && before->contains(name));
    if (!known && type != fs::file_type::not_found) foreign.insert(name);
  }
  for (const std::string& name : foreign)
    problem("reports/" + printable(name, 100),
            "no report of this campaign has such a file: somebody else put it there");
}

// The journal is the record: what it gives now must be what lies there.
Status make_again(const FrozenCampaign& frozen, const FileDigests* listed,
                  const ReportProblem& problem) {
  PROCTOR_TRY(const RenderedReport made, render_report_files(frozen));
  FileDigests files;
  for (const auto& [name, bytes] : made.files)
    if (name != "burndown.svg" && (listed == nullptr || listed->contains(name)))
      files[name] = sha256(bytes);
  compare_files(frozen.folder.reports(), files, nullptr,
                "not what the journal gives: edited after it was "
                "written",
                problem);
  if (listed != nullptr) return ok_status();
  files.emplace("burndown.svg", Digest());
  compare_names(frozen.folder.reports(), files, nullptr, problem);
  return ok_status();
}

Result<std::string> head_now(const FrozenCampaign& frozen) {
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  PROCTOR_TRY(const std::optional<Digest> head, journal.head());
  return head ? head->hex() : std::string();
}

// Then no report of it was ever written without its digests.
Result<bool> sealed_from_birth(const FrozenCampaign& frozen) {
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  PROCTOR_TRY(const auto seal, journal.keyed_seal());
  PROCTOR_TRY(const auto epochs, journal.epochs());
  return seal && !epochs.empty() && seal->since <= epochs.front().at;
}

void say_of_reports(const std::string& line) {
  std::printf("reports: %s\n", line.c_str());
}

// Of a proctor that wrote no digests, or of somebody who took them away.
Status verify_without(const FrozenCampaign& frozen, const ReportProblem& problem) {
  constexpr std::size_t kReportJsonBytes = std::size_t{1} << 30;
  const fs::path file = frozen.folder.reports() / "report.json";
  std::error_code ec;
  if (!fs::exists(file, ec)) {
    say_of_reports("none were written");
    compare_names(frozen.folder.reports(), {}, nullptr, problem);
    return ok_status();
  }
  PROCTOR_TRY(const bool must, sealed_from_birth(frozen));
  std::error_code there;
  if (must && !fs::exists(frozen.folder.reports() / kReportDigests, there))
    problem(std::string("reports/") + kReportDigests, "it was written, and is missing");
  const Result<std::string> bytes = read_file(file, kReportJsonBytes);
  PROCTOR_TRY(const std::string now, head_now(frozen));
  if (bytes.ok() && !now.empty() && bytes->find(now) != std::string::npos) {
    say_of_reports("made again from the journal and compared");
    return make_again(frozen, nullptr, problem);
  }
  say_of_reports(
      "nothing says what was written, and the journal went on since: proctor report "
      "makes them anew");
  return ok_status();
}

Json hex_of(const FileDigests& files) {
  Json out = Json::object();
  for (const auto& [name, digest] : files) out[name] = digest.hex();
  return out;
}

Status write_digests(const fs::path& dir, const RenderedReport& made, const FileDigests& files,
                     const FileDigests* before) {
  Json json = {{"campaign", made.report.campaign},
               {"files", hex_of(files)},
               {"format", kDigestsFormat},
               {"journal_head", made.report.journal_head},
               {"tool", kVersion},
               {"written_ms", wall_now().raw()}};
  if (before != nullptr) json["before"] = hex_of(*before);
  PROCTOR_TRY(const std::string body, body_of(json));
  const Result<HostKey> key = key_for_reports("");
  json["key"] = key.ok() ? key->key().id() : "";
  json["mac"] = key.ok() ? key->key().mac(body).hex() : "";
  PROCTOR_TRY(const std::string text, canonical_json(json));
  return write_file(dir / kReportDigests, text + "\n");
}

std::optional<Digests> last_written(const fs::path& dir) {
  const Result<std::string> bytes = read_file(dir / kReportDigests, limits::kConfigFileBytes);
  if (!bytes.ok()) return std::nullopt;
  Result<Digests> last = parse_digests(*bytes, key_for_reports(""));
  if (!last.ok() || last->vouched == Vouched::kForged) return std::nullopt;
  return std::move(last).value();
}

// What a reader may still find if the writer is stopped: what the last one left, vouched for.
FileDigests lies_there(const fs::path& dir, const std::optional<Digests>& last,
                       const FileDigests& coming) {
  FileDigests out;
  if (!last) return out;
  for (const auto& [name, digest] : coming) {
    if (last->files.contains(name)) out[name] = last->files.at(name);
    if (!last->before || !last->before->contains(name)) continue;
    const Result<EvidenceFile> found = hash_file(dir, name);  // that writer came no further
    if (found.ok() && found->digest == last->before->at(name)) out[name] = found->digest;
  }
  return out;
}

}  // namespace

Status write_with_digests(const FrozenCampaign& frozen, const RenderedReport& made) {
  const fs::path dir = frozen.folder.reports();
  PROCTOR_CHECK_OK(make_private_dirs(dir));
  FileDigests files;
  for (const auto& [name, bytes] : made.files) files[name] = sha256(bytes);
  const std::optional<Digests> last = last_written(dir);
  const FileDigests before = lies_there(dir, last, files);
  PROCTOR_CHECK_OK(write_digests(dir, made, files, &before));
  for (const auto& [name, bytes] : made.files) PROCTOR_CHECK_OK(write_file(dir / name, bytes));
  PROCTOR_CHECK_OK(write_digests(dir, made, files, nullptr));
  // What an older version wrote and this one does not would be nobody's from now on.
  std::error_code ec;
  if (last)
    for (const auto& [name, digest] : last->files)
      if (!files.contains(name)) fs::remove(dir / name, ec);
  return ok_status();
}

Status verify_reports(const FrozenCampaign& frozen, const std::string& key_file,
                      const ReportProblem& problem) {
  const fs::path dir = frozen.folder.reports();
  // Who may only read the folder verifies it without the lock.
  const Result<FileLock> lock = FileLock::share(frozen.folder.reports_lock());
  const Result<std::string> bytes = read_file(dir / kReportDigests, limits::kConfigFileBytes);
  if (!bytes.ok() && bytes.error().code == Errc::kNotFound) return verify_without(frozen, problem);
  const std::string where = std::string("reports/") + kReportDigests;
  const Result<HostKey> key = key_for_reports(key_file);
  const Result<Digests> digests =
      bytes.ok() ? parse_digests(*bytes, key) : Result<Digests>(bytes.error());
  if (!digests.ok()) {
    problem(where, digests.error().detail);
    return verify_without(frozen, problem);
  }
  if (digests->campaign != frozen.id)
    problem(where, "it is of the campaign " + printable(digests->campaign, 100) + ", not of this");
  compare_files(dir, digests->files, digests->before ? &*digests->before : nullptr,
                "edited after it was written", problem);
  compare_names(dir, digests->files, digests->before ? &*digests->before : nullptr, problem);
  if (digests->vouched == Vouched::kForged)
    problem(where, "it is not as this host signed it: edited after it was written");
  PROCTOR_TRY(const std::string now, head_now(frozen));
  const bool same = digests->head == now;
  const std::string then = to_rfc3339(WallTime(digests->written_ms));
  if (digests->vouched == Vouched::kByKey) {
    if (digests->before)
      say_of_reports("their writer was stopped at " + then + ": proctor report makes them anew");
    else
      say_of_reports(fmt::format("{} files as they were written at {}{}", digests->files.size(),
                                 then, same ? "" : ", before the journal went on"));
    return ok_status();
  }
  say_of_reports(fmt::format(
      "{} files of {}, not verified against the host's seal key{}", digests->files.size(), then,
      same ? ": made again from the journal and compared" : "; the journal went on since"));
  return same ? make_again(frozen, &digests->files, problem) : ok_status();
}

}  // namespace proctor::cli
