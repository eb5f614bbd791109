#pragma once
// Files of this host outside every campaign, by which a journal that was rewritten, or a campaign
// that begins anew, is known.  Adapter (file system); any thread.
//
// The secret of this host that journals are sealed with, and the list of the campaigns that were:
// $XDG_STATE_HOME/proctor/seal.key (without the variable ~/.local/state/proctor/seal.key) and
// `sealed.campaigns` beside it.  A user who may write to a campaign and not to these cannot rewrite
// its journal unseen.
#include <string>
#include <string_view>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {
// kNotFound: neither variable names an absolute folder.
Result<fs::path> host_key_file();

class HostKey {
 public:
  // Of `file`, 64 hex digits.  kNotFound: it is not there.  kInvalid: it is not a key, a link, of
  // another user, or readable by others.
  static Result<HostKey> read(const fs::path& file);
  // The same; made with mode 0600 in a folder of mode 0700 if it is not there.
  static Result<HostKey> read_or_make(const fs::path& file);

  const HmacKey& key() const { return key_; }
  const fs::path& file() const { return file_; }
  // Whether a journal of this campaign was ever sealed here.
  bool has_sealed(std::string_view campaign) const;
  // Repeatable; one line of the list for each campaign.
  Status remember(std::string_view campaign) const;

 private:
  HostKey(fs::path file, std::string_view secret) : file_(std::move(file)), key_(secret) {}
  fs::path list() const;
  fs::path file_;
  HmacKey key_;
};

// The key in `file`; empty: the host's own.  Fails as host_key_file() and HostKey::read().
Result<HostKey> host_key_of(const std::string& file);

// Which campaigns have ever begun on this host: $XDG_STATE_HOME/proctor/begun.campaigns, beside the
// secret.  A registration whose journal was taken away and that begins anew is known by it.

// In the journal of a campaign that began when this host knew it had begun before.
inline constexpr const char* kMetaRunAgain = "run_again";

inline constexpr const char* kRunBefore =
    "this registration was run before on the coordinator's host, and the journal of that was taken "
    "away: what is here is another run of it";

// False also where there is no such list, or none that can be read.
bool has_begun_here(std::string_view campaign);
// Repeatable.  Call it once the journal says so durably: what it says it says for ever.
Status remember_begun(std::string_view campaign);
}  // namespace proctor
