#pragma once
// CURVE keys (libzmq's CurveZMQ, Curve25519) as files, and the list of keys that may connect.
//
// Secret file, mode 0600:      Public file, and a line of an allow-list:
//   # anything                   # anything
//   public <40 characters>       <40 characters of Z85> <name>
//   secret <40 characters>
// So an allow-list is `cat w1.pub w2.pub > workers.allow`.  A line that begins with a hash is a
// comment; Z85 contains the hash too, so generate_key() makes no public key that begins with one.
//
// Fails with kInvalid and "path:line: what" on bad files, kNotFound when absent.  Pure but for the
// files and libsodium's random source; any thread.
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/ids.h"
#include "common/base/result.h"

namespace proctor::wire {

inline constexpr std::size_t kZ85KeyChars = 40;  // of 32 bytes

struct KeyPair {
  std::string public_z85;
  Secret secret_z85;
};

Result<KeyPair> generate_key();

// Refuses a file that anyone but its owner can read, that belongs to another user (root apart), or
// whose public key is not that of its secret key.
Result<KeyPair> load_key(const fs::path& path);
// Mode 0600 from its first moment.  kConflict if the file exists: a key is never overwritten.
Status save_key(const KeyPair& keys, const fs::path& path);

// The first key of a public file.
Result<std::string> load_public_key(const fs::path& path);
// `name`: as ids.h says.
Status save_public_key(const std::string& public_z85, std::string_view name, const fs::path& path);

bool is_z85_key(std::string_view text);
// 32 raw bytes, as ZAP delivers them.
std::string z85_of(std::string_view raw_key);

// Who may connect: one name per key and one key per name.  A value; read-only after loading.
class AllowList {
 public:
  // kInvalid: not a key, not a name (ids.h).  kConflict: this key or this name is there
  // already.
  Status add(std::string_view public_z85, std::string_view name);
  std::optional<std::string> name_of(std::string_view public_z85) const;
  bool has_name(std::string_view name) const { return keys_.contains(name); }
  std::size_t size() const { return names_.size(); }
  const std::map<std::string, std::string, std::less<>>& names() const { return names_; }  // by key
  friend bool operator==(const AllowList&, const AllowList&) = default;

 private:
  std::map<std::string, std::string, std::less<>> names_;  // by key
  std::map<std::string, std::string, std::less<>> keys_;   // by name
};

Result<AllowList> load_allow_list(const fs::path& path);

}  // namespace proctor::wire
