#include "coordinator/cli/verify_kept.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/registered_files.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/seals.h"
#include "coordinator/shell/behind.h"

namespace proctor::cli {
namespace {
constexpr mode_t kOthers = 077;

void check_mode(const fs::path& path, const ProblemHandler& problem) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0 || (st.st_mode & kOthers) == 0) return;
  problem(path.string(),
          fmt::format("its mode is {:04o}, so that other users of this host can {}; it is its "
                      "owner's alone: chmod go-rwx {}",
                      st.st_mode & 07777U,
                      (st.st_mode & 022U) != 0 ? "change what lies there" : "read what lies there",
                      printable(path.string())));
}

// Whoever owns a folder changes what lies there, whatever its mode says.
void check_owner(const fs::path& path, uid_t owner, const ProblemHandler& problem) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0 || st.st_uid == owner) return;
  problem(path.string(),
          fmt::format("it belongs to user {}, and the journal to user {}: who has it "
                      "can change what lies there",
                      st.st_uid, owner));
}

// Everybody could put other folders in the place of the campaign's own.
void check_open(const fs::path& campaign, const ProblemHandler& problem) {
  struct stat st {};
  if (::stat(campaign.c_str(), &st) != 0) return;
  if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
    problem(
        campaign.string(),
        fmt::format("its mode is {:04o}, so that every user of this host can put something else "
                    "in the place of runs, reports and .proctor: chmod o-w {}",
                    st.st_mode & 07777U, printable(campaign.string())));
}
}  // namespace

void verify_modes(const StateFolder& folder, const ProblemHandler& problem) {
  // What is looked at below a link would be whatever lies elsewhere, whoever keeps that.
  for (const auto& [path, what] : not_own_folders(own_folders(folder)))
    problem(path.string(), what);
  for (const fs::path& path : {folder.runs(), folder.reports(), folder.state(), folder.journal()})
    check_mode(path, problem);
  check_open(folder.campaign, problem);
  if (struct stat journal{}; ::stat(folder.journal().c_str(), &journal) == 0)
    for (const fs::path& path : {folder.runs(), folder.reports(), folder.state()})
      check_owner(path, journal.st_uid, problem);
  // Beside a journal that is written, or whose writer was killed.
  for (const char* beside : {"-wal", "-shm"}) {
    fs::path path = folder.journal();
    path += beside;
    check_mode(path, problem);
  }
}

Status each_note(JournalReader& journal, const std::function<void(const Note&)>& hear) {
  constexpr std::size_t kAtOnce = 10'000;
  for (std::int64_t after = 0;;) {
    PROCTOR_TRY(const std::vector<NoteRecord> notes, journal.notes(after, kAtOnce));
    for (const NoteRecord& n : notes) hear(n.note);
    if (notes.size() < kAtOnce) return ok_status();
    after = notes.back().seq;
  }
}

std::string removal_note(const std::string& task, const std::string& reason,
                         const std::string& by) {
  return task + ": " + reason + (by.empty() ? "" : " (by " + by + ")");
}

Status verify_removals(JournalReader& journal, const Registration& registration,
                       const ProblemHandler& tell) {
  std::set<std::string> noted, registered;
  PROCTOR_CHECK_OK(each_note(journal, [&](const Note& note) {
    if (note.kind == kNoteTaskRemoved) noted.insert(note.detail);
  }));
  for (const Removal& r : registration.removals) {
    registered.insert(removal_note(r.task, r.reason, r.by));
    if (!noted.contains(removal_note(r.task, r.reason, r.by)))
      tell("registration.json", "it removes the task " + r.task + " (" + r.reason +
                                    "), which the journal knows nothing of: its runs are in no "
                                    "rate of the report");
  }
  for (const std::string& note : noted)
    if (!registered.contains(note))
      tell("registration.json",
           "it has no removal of the task that the journal says was removed (" + note + ")");
  return ok_status();
}

namespace {
// From a file's name, as a list writes it, to its line.
std::map<std::string, std::string> by_name(std::string_view list) {
  constexpr std::size_t kNameAt = 2 * Digest::kBytes + 2;
  std::map<std::string, std::string> out;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find('\n'), list.size() - 1) + 1;
    const std::string_view line = list.substr(0, end);
    list.remove_prefix(end);
    const std::size_t escaped = line.starts_with('\\') ? 1 : 0;
    if (kNameAt + escaped < line.size())
      out.emplace(line.substr(kNameAt + escaped, line.size() - kNameAt - escaped - 1), line);
  }
  return out;
}

class KeptAudit {
 public:
  KeptAudit(const Campaign& campaign, const ProblemHandler& problem)
      : state_{campaign.folder}, kept_(state_.registered()), problem_(problem) {}

  void add(const Campaign& campaign, const Registration& registration,
           const std::optional<std::string>& sealed) {
    std::error_code ec;
    const fs::file_status is = fs::symlink_status(kept_, ec);
    if (!fs::exists(is)) {
      if (sealed) tell(kept_, "is missing: it held the files as they were registered");
      return;
    }
    if (!fs::is_directory(is)) return tell(kept_, "is no folder of its own");
    look_at_files(files_to_keep(campaign));
    const bool listed = sealed && look_at_list(*sealed);
    for (const std::string& name : missing_) tell(kept_ / name, "is missing");
    if (!listed) look_at_meaning(registration);
  }

 private:
  void tell(const fs::path& file, const std::string& what) {
    told_.insert(file);
    problem_(file.string(), what);
  }

  // Against what is known of them without a list.
  void look_at_files(const std::map<std::string, KeptFile>& files) {
    for (const auto& [name, file] : files)
      if (!file.may_be_absent) missing_.insert(name);
    std::error_code ec;
    for (fs::recursive_directory_iterator it(kept_, ec), end; !ec && it != end; it.increment(ec)) {
      const std::string name = it->path().lexically_relative(kept_).string();
      const fs::file_status status = it->symlink_status(ec);
      if (fs::is_directory(status)) continue;
      missing_.erase(name);
      const auto known = files.find(name);
      if (known == files.end())
        tell(it->path(), "is not of the files that were registered: remove it");
      else if (!fs::is_regular_file(status))
        tell(it->path(), "is no file of its own");
      else
        look_at_file(it->path(), known->second);
    }
    if (ec) tell(kept_, "cannot be read: " + ec.message());
  }

  void look_at_file(const fs::path& file, const KeptFile& was) {
    if (!was.bytes) return;
    const Result<std::string> is = read_file(file, limits::kReferencedFileBytes);
    const bool program = is_program(file);
    if (!is.ok() || *is != *was.bytes)
      tell(file, "is not as it was registered");
    else if (program != was.program)
      tell(file, program ? "is executable, and was not when it was registered"
                         : "is not executable, and was when it was registered");
  }

  // Against the list, byte for byte.  False: it is not the one that the journal speaks of.
  bool look_at_list(const std::string& sealed) {
    const fs::path file = kept_list(state_);
    const Result<std::string> list = read_file(file, limits::kPlanFileBytes);
    if (!list.ok() || sha256(*list).hex() != sealed) {
      tell(file, !list.ok() && list.error().code == Errc::kNotFound
                     ? "is missing: it lists the files that were registered"
                     : "is not the list of the registered files that the journal speaks of");
      return false;
    }
    const Result<std::string> now = list_kept(kept_);
    if (!now.ok()) {
      tell(kept_, now.error().detail);
      return true;
    }
    const std::map<std::string, std::string> lines = by_name(*now);
    for (const auto& [name, line] : by_name(*list)) {
      const auto found = lines.find(name);
      if (found == lines.end()) {
        if (!told_.contains(kept_ / name)) missing_.insert(name);
      } else if (found->second != line && !told_.contains(kept_ / name)) {
        tell(kept_ / name, "is not as it was registered");
      }
    }
    return true;
  }

  // What nothing lists is held against the registration alone, which knows no comments.
  void look_at_meaning(const Registration& registration) {
    if (!told_.empty() && told_ != std::set<fs::path>{kept_list(state_)}) return;
    const std::optional<Campaign> loaded = load_kept(state_);
    if (!loaded) return tell(kept_, "is no campaign any more");
    const Result<Registration> again =
        make_registration(*loaded, registration.plan, registration.at);
    if (!again.ok()) return tell(kept_, again.error().detail);
    for (const std::string& d : differences(registration, *again))
      tell(kept_, "does not make the registration again: " + d);
  }

  StateFolder state_;
  fs::path kept_;
  const ProblemHandler& problem_;
  std::set<std::string> missing_;
  std::set<fs::path> told_;
};
}  // namespace

void verify_kept(const Campaign& campaign, const Registration& registration,
                 const std::optional<std::string>& sealed, const ProblemHandler& problem) {
  KeptAudit(campaign, problem).add(campaign, registration, sealed);
}

namespace {
using journal::SealVerdict;

constexpr const char* kNotVerified = "not verified against the host's seal key";
constexpr const char* kGiveIt = "; on the coordinator's host, or with --seal-key FILE, it can be";
constexpr const char* kTrustABackup =
    "; what it says cannot be relied on: proctor verify of a backup of the campaign's folder says "
    "whether that one fits";
constexpr std::size_t kHeadsBytes = std::size_t{16} << 20;

void say(const std::string& line) {
  std::printf("seal: %s\n", line.c_str());
}
}  // namespace

Status verify_keyed_seal(JournalReader& journal, const std::string& key_file,
                         const ProblemHandler& problem) {
  const Result<HostKey> key = host_key_of(key_file);
  if (!key.ok() && !key_file.empty()) return in_context("--seal-key", key.error());
  if (!key.ok() && key.error().code == Errc::kInvalid) problem("seal", key.error().detail);
  if (!key.ok()) {
    PROCTOR_TRY(const auto seal, journal.keyed_seal());
    say(seal ? fmt::format("of key {}: {} ({}){}", seal->key, kNotVerified, key.error().detail,
                           kGiveIt)
             : "none: this journal was never sealed with a host's key");
    return ok_status();
  }
  PROCTOR_TRY(const journal::SealFinding found, journal.check_keyed_seal(*key));
  switch (found.verdict) {
    case SealVerdict::kFits:
      say(fmt::format("fits key {}: {} rows in {} commits, since {}", found.seal->key,
                      found.seal->all.rows, found.seal->commits, to_rfc3339(found.seal->since)));
      break;
    case SealVerdict::kBroken:
      problem("journal", fmt::format("rows were changed behind the coordinator's back: the seal of "
                                     "key {} does not fit them{}",
                                     key->key().id(), kTrustABackup));
      say("does not fit");
      break;
    case SealVerdict::kTaken:
      problem("journal", fmt::format("the seal of key {}, which this host made for the campaign, "
                                     "was taken away{}",
                                     key->key().id(), kTrustABackup));
      say("taken away");
      break;
    case SealVerdict::kOtherKey:
      if (!key_file.empty())
        problem("journal", fmt::format("its seal is of key {}, {} holds {}: name that key's file "
                                       "with --seal-key",
                                       found.seal->key, key_file, key->key().id()));
      say(fmt::format("of key {}, this one is {}: {}{}", found.seal->key, key->key().id(),
                      kNotVerified, kGiveIt));
      break;
    case SealVerdict::kNone:
      say("none: this journal was never sealed with a host's key");
      break;
  }
  return ok_status();
}

Status verify_heads(JournalReader& journal, const std::string& head, const std::string& key_file,
                    const ProblemHandler& problem) {
  std::string text = head;
  if (is_there(head)) {
    PROCTOR_TRY(text, read_file(head, kHeadsBytes));
  }
  const Result<HostKey> key = host_key_of(key_file);
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    PROCTOR_TRY(const JournalHead kept, parse_head(take_until(rest, '\n')));
    ++number;
    const std::string where = fmt::format("head {} of {}", number, to_rfc3339(kept.until));
    if (key.ok() && kept.key == key->key().id() && !is_signed_by(kept, key->key()))
      problem(where, "it is not as this host signed it: take the line from where else it was kept");
    PROCTOR_TRY(const JournalHead now, journal.head_until(kept.until));
    if (now.campaign != kept.campaign) {
      problem(where, fmt::format("it is of another campaign, {}: give --head the heads of this one",
                                 kept.campaign));
    } else if (now.digest != kept.digest || now.facts != kept.facts) {
      problem(where, now.facts == kept.facts
                         ? "the journal has other facts of before it than it had then"
                         : fmt::format("the journal has {} facts of before it, then it had {}",
                                       now.facts, kept.facts));
    } else {
      std::printf("%s: the journal extends it, %lld facts are as they were\n", where.c_str(),
                  static_cast<long long>(kept.facts));
    }
  }
  if (number == 0)
    return Error{
        Errc::kInvalid,
        "--head: no head in it, which is a line that proctor journal head CAMPAIGN prints"};
  return ok_status();
}

Result<JournalHead> present_head(const fs::path& file) {
  const bool moves = journal_owner(file).has_value();
  PROCTOR_TRY(JournalReader journal, JournalReader::open(file));
  PROCTOR_TRY(const std::optional<WallTime> last, journal.last_fact());
  if (!last) return not_begun(file.parent_path().parent_path());
  // More of the same millisecond may be on its way to the disk.
  PROCTOR_TRY(JournalHead head, journal.head_until(WallTime(last->raw() - (moves ? 1 : 0))));
  if (const Result<HostKey> key = host_key_of(""); key.ok()) sign(head, key->key());
  return head;
}
}  // namespace proctor::cli
