#include "coordinator/cli/verify_seal.h"

#include <fmt/format.h>

#include <cstdio>

#include "common/base/parse.h"
#include "common/base/system_clock.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/seals.h"

namespace proctor::cli {
namespace {

using journal::SealVerdict;

constexpr const char* kNotVerified = "not verified against the host's seal key";
constexpr const char* kGiveIt = "; on the coordinator's host, or with --seal-key FILE, it can be";
constexpr const char* kTrustABackup =
    "; what it says cannot be relied on: proctor verify of a backup of the campaign's folder says "
    "whether that one fits";
constexpr std::size_t kHeadsBytes = std::size_t{16} << 20;

Result<HostKey> key_of(const std::string& named) {
  if (!named.empty()) return HostKey::read(named);
  PROCTOR_TRY(const fs::path own, host_key_file());
  return HostKey::read(own);
}

void say(const std::string& line) {
  std::printf("seal: %s\n", line.c_str());
}

}  // namespace

Status verify_keyed_seal(JournalReader& journal, const std::string& key_file,
                         const SealProblem& problem) {
  const Result<HostKey> key = key_of(key_file);
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
                    const SealProblem& problem) {
  std::error_code ec;
  std::string text = head;
  if (fs::exists(head, ec)) {
    PROCTOR_TRY(text, read_file(head, kHeadsBytes));
  }
  const Result<HostKey> key = key_of(key_file);
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
  if (const Result<HostKey> key = key_of(""); key.ok()) sign(head, key->key());
  return head;
}

}  // namespace proctor::cli
