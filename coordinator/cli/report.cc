#include "coordinator/cli/report.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string_view>

#include "common/base/file_lock.h"
#include "common/base/json_fields.h"
#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "common/trace/evidence.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/forms/eval_logs.h"
#include "coordinator/forms/forms.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/control_protocol.h"

namespace proctor::cli {
// Exports of a campaign's runs into the forms of other projects: Inspect logs, Every Eval Ever.

// Where they go by themselves, below reports/.
inline constexpr const char *kInspectFolder = "inspect", *kEveryEvalFolder = "every-eval";

struct WrittenForms {
  std::string said;             // what to tell: each file, and each method without one
  std::vector<fs::path> files;  // below `into`
};

namespace {
// A larger patch is told to be one, not copied.
constexpr std::size_t kPatchInExport = std::size_t{4} << 20;

ExportFacts::OfMethod of_method(const Method& m) {
  ExportFacts::OfMethod out{m.name, std::string(m.container ? "container" : word_of(m.kind)), "",
                            ""};
  if (const std::vector<GatewayModel> models = m.models(); !models.empty()) {
    out.model = models.front().name;
    out.developer = models.front().provider;
  }
  return out;
}

// Of the attempt that counts, which is the last one of an ended run.
std::string patch_of(const StateFolder& folder, const RunRecord& run) {
  if (run.attempts == 0) return "";
  const fs::path file = folder.attempt(run.name, AttemptNo(run.attempts)) / "patch.diff";
  Result<std::string> bytes = read_file(file, kPatchInExport);
  if (bytes.ok()) return std::move(bytes).value();
  return bytes.error().code == Errc::kNotFound
             ? ""
             : "(proctor could not read the patch: " + printable(bytes.error().detail) + ")";
}

ExportFacts facts_of(const FrozenCampaign& frozen) {
  ExportFacts out;
  const Registration& r = frozen.registration;
  out.name = r.campaign;
  out.registration = frozen_digest(r).hex();
  out.plan = r.plan.hex();
  out.tool_version = r.tool_version;
  out.registered_ms = r.at.raw();
  out.replicates = 0;
  for (const PlanStage& stage : frozen.plan.shape().stages) out.replicates += stage.replicates;
  for (const Method& m : frozen.campaign.methods) out.methods.push_back(of_method(m));
  for (const Contract& c : frozen.campaign.contracts) out.briefings[c.id] = c.briefing;
  out.caps = r.caps;
  out.patch = [folder = frozen.folder](const RunRecord& run) { return patch_of(folder, run); };
  return out;
}
}  // namespace

// Writes below `into`, which is made where it is not there.
Result<WrittenForms> write_inspect_logs(const FrozenCampaign& frozen, const CampaignReport& report,
                                        const fs::path& into) {
  const ExportFacts facts = facts_of(frozen);
  PROCTOR_CHECK_OK(make_private_dirs(into));
  WrittenForms out;
  for (const ExportFacts::OfMethod& method : facts.methods) {
    const ExportedMethod runs = exported(facts, report, method);
    if (runs.runs.empty()) {
      out.said += printable(method.name) + ": no log, for none of its runs has ended\n";
      continue;
    }
    const std::string name = inspect_log_name(runs);
    PROCTOR_CHECK_OK(write_inspect_log(runs, into / name));
    out.files.emplace_back(name);
    out.said += (into / name).string() + "\n";
  }
  out.said += "Read them: inspect view --log-dir " + into.string() + "\n";
  return out;
}

Result<WrittenForms> write_every_eval(const FrozenCampaign& frozen, const CampaignReport& report,
                                      const fs::path& into) {
  const ExportFacts facts = facts_of(frozen);
  WrittenForms out;
  for (const ExportFacts::OfMethod& method : facts.methods) {
    const std::optional<EveryEvalFiles> files = every_eval(exported(facts, report, method));
    if (!files) {
      out.said += printable(method.name) + ": no record, for it has no rate yet\n";
      continue;
    }
    PROCTOR_CHECK_OK(make_private_dirs((into / files->record_path).parent_path()));
    PROCTOR_CHECK_OK(write_file(into / files->samples_path, files->samples));
    PROCTOR_CHECK_OK(write_file(into / files->record_path, files->record));
    out.files.emplace_back(files->samples_path);
    out.files.emplace_back(files->record_path);
    out.said += (into / files->record_path).string() + "\n";
  }
  out.said += "Fill in who made them (source_metadata) before they are published.\n";
  return out;
}

namespace {
constexpr const char* kDigestsFormat = "proctor-reports-1";

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
  // What lies there beside the report: by path.  None: of a proctor that did not list it.
  std::optional<FileDigests> exports;
  std::vector<std::string> exporting;  // parts whose writer has not finished
  std::string head;
  std::int64_t written_ms = 0;
  std::string tool{kVersion};
  std::string key, mac;
  Vouched vouched = Vouched::kByNobody;
};
void fields(auto& v, Is<Digests> auto& d) {
  v.follows("format", std::string(kDigestsFormat));
  v("campaign", d.campaign);
  v("journal_head", d.head);
  v("written_ms", d.written_ms);
  v("files", d.files);
  v("before", d.before, kOptional);
  v("exports", d.exports, kLater);
  v("exporting", d.exporting, kOptional);
  v("tool", d.tool, kLater);
  v("key", d.key);
  v("mac", d.mac);
}

const Error kNotDigests{Errc::kInvalid, "not what is written there"};

bool has_names(const FileDigests& files) {
  return std::ranges::all_of(files, [](const auto& file) { return is_safe_relative(file.first); });
}

bool has_plain_names(const FileDigests& files) {
  return has_names(files) && std::ranges::none_of(files, [](const auto& file) {
           return file.first.find('/') != std::string::npos;
         });
}

Result<Digests> parse_digests(const std::string& bytes, const Result<HostKey>& key) {
  PROCTOR_TRY(const Json json, parse_json(bytes));
  Result<Digests> read = from_json<Digests>(json, "", Errc::kInvalid, Versions::kAny);
  if (!read.ok()) return kNotDigests;
  Digests out = std::move(read).value();
  if (!has_plain_names(out.files) || !has_plain_names(out.before.value_or(FileDigests{})) ||
      !has_names(out.exports.value_or(FileDigests{})))
    return kNotDigests;
  if (!key.ok() || out.key != key->key().id()) return out;
  PROCTOR_TRY(const std::string body, body_of(json));
  out.vouched = key->key().mac(body).hex() == out.mac ? Vouched::kByKey : Vouched::kForged;
  return out;
}

// `before`: what may lie there instead, because a writer was stopped between the two.
void compare_files(const fs::path& dir, const FileDigests& files, const FileDigests* before,
                   const std::string& what, const ProblemHandler& problem) {
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

// Commands that look at a campaign's tasks (selfcheck.h, screen.h), at its scores (rubric.cc) or at
// its verdicts beside earlier ones (replay.cc) write these, and again whenever they are asked.
constexpr std::array<std::string_view, 6> kOfPilots{"selfcheck.json", "flakiness.json",
                                                    "quarantine.txt", "rubric_sensitivity.csv",
                                                    "replay.jsonl",   "regrade.jsonl"};

bool is_of(const std::string& path, const std::vector<std::string>& parts) {
  return std::ranges::any_of(
      parts, [&](const std::string& part) { return path == part || path.starts_with(part + "/"); });
}

// What lies in the folders of other forms and is no export that was written.
void compare_folder(const fs::path& dir, const std::string& folder, const FileDigests& exports,
                    const std::vector<std::string>& exporting, const ProblemHandler& problem) {
  std::error_code ec;
  std::set<std::string> foreign;
  for (fs::recursive_directory_iterator it(dir / folder, ec), end; !ec && it != end;
       it.increment(ec)) {
    std::error_code gone;
    const auto type = it->symlink_status(gone).type();
    const std::string path = it->path().lexically_relative(dir).string();
    if (type != fs::file_type::directory && type != fs::file_type::not_found &&
        !is_temporary_name(it->path().filename().string()) && !exports.contains(path) &&
        !is_of(path, exporting))
      foreign.insert(path);
  }
  if (ec && ec != std::errc::no_such_file_or_directory) problem("reports/" + folder, ec.message());
  for (const std::string& path : foreign)
    problem(
        "reports/" + printable(path, 200),
        "nothing says that proctor wrote it: the command that makes it lists it in digests.json");
}

// Exports, and what the commands found that look at tasks alone.
void compare_exports(const fs::path& dir, const FileDigests& exports,
                     const std::vector<std::string>& exporting, const ProblemHandler& problem) {
  FileDigests whole;
  for (const auto& [path, digest] : exports)
    if (!is_of(path, exporting)) whole.emplace(path, digest);
  compare_files(dir, whole, nullptr, "edited after it was written", problem);
  for (const std::string_view name : kOfPilots) {
    const std::string file(name);
    std::error_code ec;
    if (!exports.contains(file) && !is_of(file, exporting) &&
        fs::symlink_status(dir / file, ec).type() != fs::file_type::not_found)
      problem("reports/" + file,
              "nothing says that proctor wrote it: the command that makes it lists it in "
              "digests.json");
  }
  for (const char* folder : {kInspectFolder, kEveryEvalFolder})
    compare_folder(dir, folder, exports, exporting, problem);
}

// What lies there beside what was written: folders are those of other forms (kInspectFolder,
// kEveryEvalFolder), and a temporary file is of a writer that was killed.
void compare_names(const fs::path& dir, const FileDigests& files, const FileDigests* before,
                   const ProblemHandler& problem) {
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

// The journal is the record: what it gives now must be what lies there.  A file that is as it was
// written differs too without all evidence, and where another version wrote it.
Status make_again(const FrozenCampaign& frozen, const FileDigests* listed, bool evidence_whole,
                  const ProblemHandler& problem) {
  PROCTOR_TRY(const RenderedReport made, render_report_files(frozen));
  FileDigests files;
  for (const auto& [name, bytes] : made.files)
    if (name != "burndown.svg" && (listed == nullptr || listed->contains(name)))
      files[name] = sha256(bytes);
  compare_files(frozen.folder.reports(), files, nullptr,
                evidence_whole
                    ? "not what journal and evidence give: edited, or another version wrote it"
                    : "not what journal and evidence give now: evidence is not as it was",
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

// Says that something was written, where the folder itself was taken away.
fs::path written_mark(const StateFolder& folder) {
  return folder.state() / "reports.written";
}

void say_of_reports(const std::string& line) {
  std::printf("reports: %s\n", line.c_str());
}

// Of a proctor that wrote no digests, or of somebody who took them away.
Status verify_without(const FrozenCampaign& frozen, bool evidence_whole,
                      const ProblemHandler& problem) {
  constexpr std::size_t kReportJsonBytes = std::size_t{1} << 30;
  const fs::path file = frozen.folder.reports() / "report.json";
  const std::string where = std::string("reports/") + kReportDigests;
  const bool is_listed = is_there(frozen.folder.reports() / kReportDigests);
  const bool is_lost = is_there(written_mark(frozen.folder)) && !is_listed;
  if (is_lost) problem(where, "it was written, and is missing: proctor report makes it anew");
  compare_exports(frozen.folder.reports(), {}, {}, problem);
  if (!is_there(file)) {
    say_of_reports("none are there");
    compare_names(frozen.folder.reports(), {}, nullptr, problem);
    return ok_status();
  }
  PROCTOR_TRY(const bool must, sealed_from_birth(frozen));
  if (must && !is_lost && !is_listed) problem(where, "it was written, and is missing");
  const Result<std::string> bytes = read_file(file, kReportJsonBytes);
  PROCTOR_TRY(const std::string now, head_now(frozen));
  if (bytes.ok() && !now.empty() && bytes->find(now) != std::string::npos) {
    say_of_reports("made again from the journal and compared");
    return make_again(frozen, nullptr, evidence_whole, problem);
  }
  say_of_reports(
      "nothing says what was written, and the journal went on since: proctor report "
      "makes them anew");
  return ok_status();
}

enum class Sign { kYes, kNo };
Status write_digests(const StateFolder& folder, Digests said, Sign sign = Sign::kYes) {
  said.tool = kVersion;
  if (!said.exports) said.exports.emplace();
  Json json = to_json(said);
  PROCTOR_TRY(const std::string body, body_of(json));
  const Result<HostKey> key = sign == Sign::kYes ? host_key_of("") : Result<HostKey>(kNotDigests);
  json["key"] = key.ok() ? key->key().id() : "";
  json["mac"] = key.ok() ? key->key().mac(body).hex() : "";
  PROCTOR_TRY(const std::string text, canonical_json(json));
  if (!is_there(written_mark(folder))) PROCTOR_CHECK_OK(write_file(written_mark(folder), ""));
  return write_file(folder.reports() / kReportDigests, text + "\n");
}

std::optional<Digests> last_written(const fs::path& dir) {
  const Result<std::string> bytes = read_file(dir / kReportDigests, limits::kConfigFileBytes);
  if (!bytes.ok()) return std::nullopt;
  Result<Digests> last = parse_digests(*bytes, host_key_of(""));
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

// What this host vouches for of what lies beside the report; all of it, where it has no key.
void take_over(const std::optional<Digests>& last, Digests& to) {
  to.exports.emplace();
  const bool own = last && (last->vouched == Vouched::kByKey || !host_key_of("").ok());
  if (!own || (!last->campaign.empty() && last->campaign != to.campaign)) return;
  to.exports = last->exports.value_or(FileDigests{});
  to.exporting = last->exporting;
}
}  // namespace

Status write_listed(const StateFolder& folder, const std::vector<std::string>& parts,
                    const WriteParts& write) {
  const fs::path dir = folder.reports();
  PROCTOR_CHECK_OK(make_private_dirs(folder.state()));
  PROCTOR_CHECK_OK(make_private_dirs(dir));
  PROCTOR_TRY(const FileLock lock, FileLock::acquire(folder.reports_lock()));
  const std::optional<Digests> last = last_written(dir);
  // Nobody has written a report yet, or somebody whom this host cannot vouch for.
  Digests now = last.value_or(Digests{});
  const Sign sign = !last || last->vouched == Vouched::kByKey ? Sign::kYes : Sign::kNo;
  if (!last) now.written_ms = wall_now().raw();
  if (!now.exports) now.exports.emplace();
  for (const std::string& part : parts)
    if (!is_of(part, now.exporting)) now.exporting.push_back(part);
  PROCTOR_CHECK_OK(write_digests(folder, now, sign));
  PROCTOR_TRY(const std::vector<std::string> written, write());
  for (const std::string& part : parts) now.exports->erase(part);
  for (const std::string& path : written) {
    PROCTOR_TRY(const EvidenceFile file, hash_file(dir, path));
    (*now.exports)[path] = file.digest;
  }
  std::erase_if(now.exporting, [&](const std::string& part) { return is_of(part, parts); });
  return write_digests(folder, now, sign);
}

Status write_listed(const StateFolder& folder, const std::string& name, std::string_view bytes) {
  return write_listed(folder, {name}, [&]() -> Result<std::vector<std::string>> {
    PROCTOR_CHECK_OK(write_file(folder.reports() / name, bytes));
    return std::vector{name};
  });
}

Status as_listed(const StateFolder& folder, const std::string& name) {
  const Result<std::string> bytes =
      read_file(folder.reports() / kReportDigests, limits::kConfigFileBytes);
  if (!bytes.ok()) return ok_status();  // of a proctor that listed nothing
  PROCTOR_TRY(const Digests digests, parse_digests(*bytes, host_key_of("")));
  if (!digests.exports || is_of(name, digests.exporting)) return ok_status();
  const Result<EvidenceFile> found = hash_file(folder.reports(), name);
  if (found.ok() && digests.vouched != Vouched::kForged && digests.exports->contains(name) &&
      digests.exports->at(name) == found->digest)
    return ok_status();
  return Error{Errc::kCorrupt, "not as proctor wrote it, by digests.json beside it"};
}

Status write_with_digests(const FrozenCampaign& frozen, const RenderedReport& made) {
  const fs::path dir = frozen.folder.reports();
  PROCTOR_CHECK_OK(make_private_dirs(dir));
  FileDigests files;
  for (const auto& [name, bytes] : made.files) files[name] = sha256(bytes);
  const std::optional<Digests> last = last_written(dir);
  Digests said;
  said.campaign = made.report.campaign;
  said.files = files;
  said.before = lies_there(dir, last, files);
  said.head = made.report.journal_head;
  said.written_ms = wall_now().raw();
  take_over(last, said);
  PROCTOR_CHECK_OK(write_digests(frozen.folder, said));
  for (const auto& [name, bytes] : made.files) PROCTOR_CHECK_OK(write_file(dir / name, bytes));
  said.before.reset();
  PROCTOR_CHECK_OK(write_digests(frozen.folder, said));
  // What an older version wrote and this one does not would be nobody's from now on.
  std::error_code ec;
  if (last)
    for (const auto& [name, digest] : last->files)
      if (!files.contains(name)) fs::remove(dir / name, ec);
  return ok_status();
}

Status verify_reports(const FrozenCampaign& frozen, const std::string& key_file,
                      bool evidence_whole, const ProblemHandler& problem) {
  const fs::path dir = frozen.folder.reports();
  // Who may only read the folder verifies it without the lock.
  const Result<FileLock> lock = FileLock::share(frozen.folder.reports_lock());
  const Result<std::string> bytes = read_file(dir / kReportDigests, limits::kConfigFileBytes);
  if (!bytes.ok() && bytes.error().code == Errc::kNotFound)
    return verify_without(frozen, evidence_whole, problem);
  const std::string where = std::string("reports/") + kReportDigests;
  const Result<HostKey> key = host_key_of(key_file);
  const Result<Digests> digests =
      bytes.ok() ? parse_digests(*bytes, key) : Result<Digests>(bytes.error());
  if (!digests.ok()) {
    problem(where, digests.error().detail);
    return verify_without(frozen, evidence_whole, problem);
  }
  // Of commands that look at tasks before there is a campaign.
  const bool bare = digests->campaign.empty() && digests->files.empty();
  if (digests->campaign != frozen.id && !bare)
    problem(where, "it is of the campaign " + printable(digests->campaign, 100) + ", not of this");
  compare_files(dir, digests->files, digests->before ? &*digests->before : nullptr,
                "edited after it was written", problem);
  compare_names(dir, digests->files, digests->before ? &*digests->before : nullptr, problem);
  if (digests->exports)
    compare_exports(dir, *digests->exports, digests->exporting, problem);
  else
    say_of_reports("exports and what tasks were found to be are not listed: older than the lists");
  if (digests->vouched == Vouched::kForged)
    problem(where, "it is not as this host signed it: edited after it was written");
  PROCTOR_TRY(const std::string now, head_now(frozen));
  const bool same = digests->head == now;
  const std::string then = to_rfc3339(WallTime(digests->written_ms));
  if (digests->vouched == Vouched::kByKey) {
    if (!digests->exporting.empty())
      say_of_reports("the writer of " + printable(digests->exporting.front(), 100) +
                     " was stopped: the same command writes it anew");
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
  return same ? make_again(frozen, &digests->files, evidence_whole, problem) : ok_status();
}

// proctor report CAMPAIGN [--json|--csv|--form FORM]

namespace {
struct ReportArgs {
  std::string folder, form, method, stage, out;
  bool json = false, csv = false, words = false;
  unsigned schema = 2;  // of json
};

// One of `names`, or what was wrong and which was probably meant.
Status known_word(const std::string& what, const std::string& typed,
                  const std::vector<std::string_view>& names) {
  if (std::ranges::find(names, typed) != names.end()) return ok_status();
  std::string said = "there is no " + what + " " + printable(typed);
  if (const std::string near = did_you_mean(typed, names); !near.empty())
    return Error{Errc::kInvalid, said + near};
  said += "; there are";
  for (const std::string_view name : names) said += " " + printable(name);
  return Error{Errc::kInvalid, said};
}

constexpr std::string_view kForms[] = {"badge", "csv",         "every-eval", "inspect", "json",
                                       "junit", "junit-tasks", "markdown",   "text"};

Result<std::string> badge(const CampaignReport& report, const std::string& method) {
  if (method.empty()) return render_badge(report, badge_method(report));
  std::vector<std::string_view> names;
  for (const MethodRate& r : report.analysis->rates)
    if (!is_control(report, r.method)) names.push_back(r.method);
  PROCTOR_CHECK_OK(known_word("agent", method, names));
  return render_badge(report, method);
}

// Schema 1 repeats the runs of every row.
Result<std::string> json_in_schema(const CampaignReport& report, unsigned schema) {
  if (schema == 2) return render_json(report);
  if (report.runs.size() <= kJsonRuns) return render_json(report, JsonForm::kFirst);
  return Error{Errc::kInvalid,
               fmt::format("schema 1 lists the runs of every row, and this campaign has {}, more "
                           "than {}; leave --schema out, and take its runs from runs.csv",
                           report.runs.size(), kJsonRuns)};
}

Result<std::string> in_form(const std::string& form, const ReportArgs& args,
                            WrittenReport written) {
  const CampaignReport& report = written.report;
  if (form == "json") return json_in_schema(report, args.schema);
  if (form == "csv") return render_csv(report);
  if (form == "junit") return render_junit(report);
  if (form == "junit-tasks") return render_junit(report, JunitCases::kTasks);
  if (form == "markdown") return render_markdown(report);
  if (form == "badge") return badge(report, args.method);
  return std::move(written.shown);
}

// In a folder of its own, which digests.json lists where it is that of reports/.
Result<std::string> in_folder(const ReportArgs& args, const FrozenCampaign& frozen,
                              const CampaignReport& report, const std::string& name) {
  const auto write = name == kInspectFolder ? write_inspect_logs : write_every_eval;
  if (!args.out.empty()) {
    PROCTOR_TRY(WrittenForms written, write(frozen, report, args.out));
    return std::move(written.said);
  }
  std::string said;
  PROCTOR_CHECK_OK(write_listed(frozen.folder, {name}, [&]() -> Result<std::vector<std::string>> {
    PROCTOR_TRY(WrittenForms written, write(frozen, report, frozen.folder.reports() / name));
    said = std::move(written.said);
    std::vector<std::string> paths;
    for (const fs::path& file : written.files) paths.push_back((fs::path(name) / file).string());
    return paths;
  }));
  return said;
}

Result<std::string> printed(const ReportArgs& args, std::string text) {
  if (args.out.empty()) return text;
  PROCTOR_CHECK_OK(write_output(args.out, text));
  return std::string();
}

// What lies under reports/ is of the whole campaign and stays so.
Result<std::string> of_stage(const std::string& form, const ReportArgs& args,
                             const FrozenCampaign& frozen) {
  PROCTOR_TRY(CampaignReport report, read_stage_report(frozen, args.stage));
  std::string text = render_text(report, args.words ? Words::kShown : Words::kLeftOut);
  PROCTOR_TRY(std::string out, in_form(form, args, {std::move(report), std::move(text)}));
  return printed(args, std::move(out));
}

Result<std::string> report(const ReportArgs& args) {
  const std::string form = args.json ? "json" : args.csv ? "csv" : args.form;
  PROCTOR_CHECK_OK(known_word("form", form, {std::begin(kForms), std::end(kForms)}));
  if (!args.method.empty() && form != "badge")
    return Error{Errc::kInvalid, "--method says whose badge it is: proctor report " + args.folder +
                                     " --form badge --method " + args.method +
                                     "; the runs of one method are proctor list " + args.folder +
                                     " --where method=" + args.method};
  if (args.schema != 2 && form != "json")
    return Error{Errc::kInvalid, "--schema is of the form json: say --json as well"};
  const bool is_folder = form == kInspectFolder || form == kEveryEvalFolder;
  if (!args.stage.empty() && is_folder)
    return Error{Errc::kInvalid,
                 "--stage is of the forms that are printed; " + form + " is of the whole campaign"};
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
  if (!args.stage.empty()) return of_stage(form, args, frozen);
  PROCTOR_TRY(WrittenReport written,
              write_report_files(frozen, args.words ? Words::kShown : Words::kLeftOut));
  if (is_folder) return in_folder(args, frozen, written.report, form);
  PROCTOR_TRY(std::string text, in_form(form, args, std::move(written)));
  return printed(args, std::move(text));
}
}  // namespace

void add_report(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "report", "tables by method and stratum; also files and forms that other programs read",
      "Forms: text, json, csv; junit (a case per run) and junit-tasks for what gates changes;\n"
      "markdown for the page of a change; badge (an SVG, of one method); inspect (a log per "
      "method) "
      "and\nevery-eval (a record per method), which write folders.\n"
      "Example:\n  proctor report my-campaign\n  proctor report --json my-campaign | jq .\n"
      "  proctor report my-campaign --form junit --out junit.xml\n"
      "  proctor report my-campaign --stage pilot\n"
      "  proctor report my-campaign --form badge --method my-agent > badge.svg");
  const auto args = arguments<ReportArgs>(command, exit_code, report);
  args->form = "text";
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("--form", args->form, "what is printed")
      .type_name("FORM")
      .capture_default_str();
  command.add_option("--method", args->method, "of a badge: whose (without: the first compared)");
  command
      .add_option("--out", args->out,
                  "a file instead of standard output; of inspect and every-eval a folder")
      .type_name("PATH");
  command
      .add_option("--stage", args->stage,
                  "of the runs of one stage alone: printed, and the files of the campaign stay")
      .type_name("STAGE");
  const Option json =
      command.add_flag("--json", args->json, "every number with the runs behind it (--form json)");
  command
      .add_option(
          "--schema", args->schema,
          "of json: 2, or 1 for readers of before, with a list of runs in every row, which the "
          "next release has no more")
      .one_of({1U, 2U})
      .capture_default_str();
  command.add_flag("--csv", args->csv, "one record per row of the tables (--form csv)")
      .excludes(json);
  command.add_flag("--words", args->words, "below the tables, what each of their words means");
}
}  // namespace proctor::cli
