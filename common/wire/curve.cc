#include "common/wire/curve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/base/ids.h"
#include "common/base/owned.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor::wire {
namespace {

constexpr std::size_t kKeyFileBytes = 4096;
constexpr std::size_t kAllowListBytes = std::size_t{1} << 20;
using Z85Buffer = std::array<char, kZ85KeyChars + 1>;

Error at_line(const fs::path& path, std::size_t line, std::string_view what) {
  return Error{Errc::kInvalid,
               path.string() + ":" + std::to_string(line) + ": " + std::string(what)};
}

std::string_view next_word(std::string_view& rest) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!rest.empty() && blank(rest.front())) rest.remove_prefix(1);
  const auto end = std::find_if(rest.begin(), rest.end(), blank);
  const std::string_view word = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  rest.remove_prefix(word.size());
  return word;
}

// Calls `use(line number, first word, second word)` for every line that says something.
template <class F>
Status each_line(const fs::path& path, std::string_view text, F use) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = take_until(text, '\n');
    if (line.starts_with('#')) continue;
    const std::string_view first = next_word(line);
    if (first.empty()) continue;
    const std::string_view second = next_word(line);
    if (!next_word(line).empty()) return at_line(path, number, "more than two words");
    PROCTOR_CHECK_OK(use(number, first, second));
  }
  return ok_status();
}

// The checks are made on the open file, so that it cannot be exchanged after them.
Result<std::string> read_private(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return errno_error("open " + path.string(), errno);
  struct stat st = {};
  if (::fstat(fd.get(), &st) != 0) return errno_error("stat " + path.string(), errno);
  const auto refuse = [&](std::string_view why) {
    return Error{Errc::kInvalid, path.string() + ": " + std::string(why)};
  };
  if (!S_ISREG(st.st_mode)) return refuse("not a regular file");
  if ((st.st_mode & 077) != 0)
    return refuse("a secret key that others may read; chmod 600 it, or make a new one");
  if (st.st_uid != ::geteuid() && st.st_uid != 0) return refuse("belongs to another user");
  std::string text(kKeyFileBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("read " + path.string(), errno);
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  if (kKeyFileBytes < size) return refuse("too large for a key");
  text.resize(size);
  return text;
}

Error from_zmq(std::string_view what) {
  return Error{Errc::kInvalid, std::string(what) + ": " + zmq_strerror(zmq_errno())};
}

}  // namespace

bool is_z85_key(std::string_view text) {
  static constexpr std::string_view kAlphabet =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
  if (text.size() != kZ85KeyChars || text.find_first_not_of(kAlphabet) != std::string_view::npos)
    return false;
  // Five characters can say more than 2^32 - 1; libzmq knows.
  std::array<std::uint8_t, 32> raw{};
  return zmq_z85_decode(raw.data(), std::string(text).c_str()) != nullptr;
}

std::string z85_of(std::string_view raw_key) {
  PROCTOR_ASSERT(raw_key.size() == 32);
  Z85Buffer out{};
  zmq_z85_encode(out.data(), reinterpret_cast<const std::uint8_t*>(raw_key.data()), raw_key.size());
  return out.data();
}

Result<KeyPair> generate_key() {
  Z85Buffer public_key{};
  Z85Buffer secret_key{};
  do {
    if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) return from_zmq("make a key");
  } while (public_key.front() == '#');
  return KeyPair{public_key.data(), Secret(secret_key.data())};
}

Result<KeyPair> load_key(const fs::path& path) {
  PROCTOR_TRY(const std::string text, read_private(path));
  KeyPair keys;
  std::string secret;
  PROCTOR_CHECK_OK(each_line(
      path, text, [&](std::size_t line, std::string_view what, std::string_view key) -> Status {
        if (is_z85_key(what))
          return at_line(path, line,
                         "this is a public key, where the file with its secret belongs (NAME.key)");
        if (what != "public" && what != "secret")
          return at_line(path, line, "expected `public KEY` or `secret KEY`");
        // The text itself is never shown: it may be a secret with a typing error.
        if (!is_z85_key(key)) return at_line(path, line, "not a key of 40 characters of Z85");
        std::string& target = what == "public" ? keys.public_z85 : secret;
        if (!target.empty()) return at_line(path, line, "a second key of its kind");
        target = key;
        return ok_status();
      }));
  if (keys.public_z85.empty() || secret.empty())
    return Error{Errc::kInvalid, path.string() + ": needs one `public` and one `secret` line"};
  Z85Buffer derived{};
  if (zmq_curve_public(derived.data(), secret.c_str()) != 0) return from_zmq(path.string());
  if (keys.public_z85 != derived.data())
    return Error{Errc::kInvalid, path.string() + ": the public key is not that of the secret key"};
  keys.secret_z85 = Secret(std::move(secret));
  return keys;
}

Status save_key(const KeyPair& keys, const fs::path& path) {
  std::error_code ec;
  if (fs::exists(fs::symlink_status(path, ec)))
    return Error{Errc::kConflict, path.string() + ": exists; a key is never overwritten"};
  return write_file(path,
                    "# Secret CURVE key of proctor: keep it private (mode 0600), never copy it.\n"
                    "public " +
                        keys.public_z85 + "\nsecret " + keys.secret_z85.reveal() + "\n",
                    Durability::kSync, 0600);
}

Status save_public_key(const std::string& public_z85, std::string_view name, const fs::path& path) {
  AllowList checks;
  PROCTOR_CHECK_OK(checks.add(public_z85, name));
  return write_file(path, public_z85 + " " + std::string(name) + "\n");
}

Result<std::string> load_public_key(const fs::path& path) {
  PROCTOR_TRY(const std::string text, read_file(path, kKeyFileBytes));
  std::string found;
  PROCTOR_CHECK_OK(each_line(
      path, text, [&](std::size_t line, std::string_view key, std::string_view) -> Status {
        if (key == "public" || key == "secret")
          return at_line(path, line,
                         "this is a secret key's file, where a public key belongs (NAME.pub)");
        if (!is_z85_key(key)) return at_line(path, line, "not a key of 40 characters of Z85");
        if (found.empty()) found = key;
        return ok_status();
      }));
  if (found.empty()) return Error{Errc::kInvalid, path.string() + ": no key in it"};
  return found;
}

Status AllowList::add(std::string_view public_z85, std::string_view name) {
  if (!is_z85_key(public_z85))
    return Error{Errc::kInvalid,
                 "`" + printable(public_z85, 60) + "` is not a public key of 40 characters of Z85"};
  if (public_z85.starts_with('#'))
    return Error{Errc::kInvalid, "a key that begins with a hash would read as a comment"};
  if (!is_worker_name(name))
    return Error{Errc::kInvalid, "`" + printable(name, 60) + "` is not a worker's name (" +
                                     std::string(kWorkerNameRule) + ")"};
  if (names_.contains(public_z85)) return Error{Errc::kConflict, "this key is listed already"};
  if (keys_.contains(name))
    return Error{Errc::kConflict, "`" + std::string(name) + "` has a key already"};
  names_.emplace(public_z85, name);
  keys_.emplace(name, public_z85);
  return ok_status();
}

std::optional<std::string> AllowList::name_of(std::string_view public_z85) const {
  const auto found = names_.find(public_z85);
  if (found == names_.end()) return std::nullopt;
  return found->second;
}

Result<AllowList> load_allow_list(const fs::path& path) {
  PROCTOR_TRY(const std::string text, read_file(path, kAllowListBytes));
  AllowList list;
  PROCTOR_CHECK_OK(each_line(
      path, text, [&](std::size_t line, std::string_view key, std::string_view name) -> Status {
        const Status added = list.add(key, name);
        if (!added.ok()) return at_line(path, line, added.error().detail);
        return ok_status();
      }));
  return list;
}

}  // namespace proctor::wire
