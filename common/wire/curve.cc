#include "common/wire/curve.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "common/base/owned.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor::wire {
namespace {
Error invalid(const std::string& endpoint, std::string_view why) {
  return Error{Errc::kInvalid, "endpoint " + printable(endpoint) + ": " + std::string(why)};
}

// Only literals: what a name resolves to is decided by somebody else.
bool is_loopback_literal(const std::string& host) {
  if (host == "[::1]") return true;
  in_addr v4 = {};
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

Status check_tcp(const std::string& endpoint, std::string_view rest, bool has_curve,
                 bool insecure_loopback) {
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return invalid(endpoint, "expected tcp://HOST:PORT");
  const std::string host(rest.substr(0, colon));
  const std::string_view port = rest.substr(colon + 1);
  if (!whole_number<std::uint16_t>(port) && port != "*")
    return invalid(endpoint, "the port is not a number to 65535");
  if (host.find_first_of(";/ ") != std::string::npos) return invalid(endpoint, "not a host");
  if (has_curve) return ok_status();
  if (!insecure_loopback)
    return invalid(
        endpoint,
        "TCP needs CURVE keys (proctor keygen); without them only 127.0.0.1 may be used, "
        "with --insecure-loopback");
  if (!is_loopback_literal(host))
    return invalid(endpoint, "--insecure-loopback allows 127.x.y.z and [::1] only, not " +
                                 printable(host, 60));
  return ok_status();
}

Status check_ipc(const std::string& endpoint, std::string_view path) {
  if (path.empty() || path == "*") return invalid(endpoint, "needs the path of a socket");
  // Abstract sockets have no folder that could keep others out.
  if (path.starts_with('@')) return invalid(endpoint, "abstract sockets are open to every user");
  if (sizeof(sockaddr_un::sun_path) <= path.size())
    return invalid(endpoint, "the path has " + std::to_string(path.size()) +
                                 " bytes, a socket's may have 107");
  return ok_status();
}

Status check_ipc_folder(const std::string& endpoint, std::string_view path) {
  const fs::path parent = fs::path(path).parent_path();
  const fs::path folder = parent.empty() ? fs::path(".") : parent;
  struct stat st = {};
  if (::stat(folder.c_str(), &st) != 0)
    return errno_error("endpoint " + printable(endpoint), errno);
  if (!S_ISDIR(st.st_mode)) return invalid(endpoint, "its folder is not one");
  if (st.st_uid != ::geteuid() || (st.st_mode & 077) != 0)
    return invalid(endpoint, "its folder must be yours and closed to others (chmod 700)");
  return ok_status();
}

enum class Side { kListen, kConnect };

Status check(const std::string& endpoint, bool has_curve, bool insecure_loopback, Side side) {
  constexpr std::string_view kTcp = "tcp://";
  constexpr std::string_view kIpc = "ipc://";
  constexpr std::string_view kInproc = "inproc://";
  const std::string_view text = endpoint;
  if (text.find('\0') != std::string_view::npos) return invalid(endpoint, "has a NUL byte");
  if (text.starts_with(kTcp))
    return check_tcp(endpoint, text.substr(kTcp.size()), has_curve, insecure_loopback);
  if (text.starts_with(kIpc)) {
    const std::string_view path = text.substr(kIpc.size());
    PROCTOR_CHECK_OK(check_ipc(endpoint, path));
    return side == Side::kListen ? check_ipc_folder(endpoint, path) : ok_status();
  }
  if (text.starts_with(kInproc) && text.size() != kInproc.size()) return ok_status();
  return invalid(endpoint, "expected tcp://HOST:PORT or ipc://PATH");
}
}  // namespace

Status check_listen_endpoint(const std::string& endpoint, bool has_curve, bool insecure_loopback) {
  return check(endpoint, has_curve, insecure_loopback, Side::kListen);
}

Status check_connect_endpoint(const std::string& endpoint, bool has_curve, bool insecure_loopback) {
  return check(endpoint, has_curve, insecure_loopback, Side::kConnect);
}

// Keys and allow-lists as files.

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

// ZapHandler.

namespace {
constexpr const char* kZapEndpoint = "inproc://zeromq.zap.01";
constexpr std::size_t kFramesMax = 16;  // a request has 7; more are read away and not kept

// RFC 27: version, request id, domain, address, identity, mechanism, credentials...
struct Request {
  std::vector<std::string> frames;
  std::string_view frame(std::size_t i) const {
    return i < frames.size() ? std::string_view(frames[i]) : std::string_view();
  }
  std::string_view version() const { return frame(0); }
  std::string_view id() const { return frame(1); }
  std::string_view domain() const { return frame(2); }
  std::string_view address() const { return frame(3); }
  std::string_view mechanism() const { return frame(5); }
  std::string_view key() const { return frame(6); }
};

struct Verdict {
  const char* status;
  std::string text;  // of a refusal
  std::string user;
  std::string key;
};

Verdict judge(const Request& r, const AllowList& list) {
  if (r.frames.size() < 6 || r.version() != "1.0") return {"500", "malformed ZAP request", {}, {}};
  if (r.domain() != kZapDomain) return {"400", "unknown domain", {}, {}};
  if (r.mechanism() != "CURVE")
    return {"400", "mechanism " + printable(r.mechanism(), 20) + " is not allowed", {}, {}};
  if (r.frames.size() != 7 || r.key().size() != 32)
    return {"500", "malformed CURVE credentials", {}, {}};
  std::string key = z85_of(r.key());
  std::optional<std::string> name = list.name_of(key);
  if (!name) return {"400", "key " + key + " is not in the allow-list", {}, {}};
  return {"200", {}, *std::move(name), std::move(key)};
}

// ZMTP metadata: one byte of name length, name, four bytes of value length, value.
std::string metadata(std::string_view name, std::string_view value) {
  std::string out(1, static_cast<char>(name.size()));
  out += name;
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>((value.size() >> shift) & 0xff);
  out += value;
  return out;
}

Request receive(zmq::socket_t& socket) {
  Request r;
  zmq::message_t part;
  do {
    if (!socket.recv(part, zmq::recv_flags::none)) break;
    if (r.frames.size() < kFramesMax) r.frames.push_back(part.to_string());
  } while (part.more());
  return r;
}
}  // namespace

ZapHandler::ZapHandler(AllowList list, OnDenied on_denied)
    : list_(std::move(list)), on_denied_(std::move(on_denied)) {}

Result<std::shared_ptr<ZapHandler>> ZapHandler::start(zmq::context_t& context, AllowList list,
                                                      OnDenied on_denied) try {
  std::shared_ptr<ZapHandler> self(new ZapHandler(std::move(list), std::move(on_denied)));
  zmq::socket_t requests(context, zmq::socket_type::rep);
  requests.set(zmq::sockopt::linger, 0);
  requests.bind(kZapEndpoint);
  // Two ends of a pipe, named by the object: one context, one handler, so no other name is needed.
  const std::string stop_name = "inproc://proctor.zap.stop";
  zmq::socket_t stop(context, zmq::socket_type::pair);
  stop.set(zmq::sockopt::linger, 0);
  stop.bind(stop_name);
  self->stop_ = std::make_unique<zmq::socket_t>(context, zmq::socket_type::pair);
  self->stop_->set(zmq::sockopt::linger, 0);
  self->stop_->connect(stop_name);
  // Sockets may change threads across a full fence; starting a thread is one.
  self->thread_ =
      std::thread([raw = self.get(), r = std::move(requests), s = std::move(stop)]() mutable {
        raw->serve(std::move(r), std::move(s));
      });
  return self;
} catch (const zmq::error_t& e) {
  const Errc code = e.num() == EADDRINUSE ? Errc::kConflict : Errc::kUnavailable;
  return Error{code, std::string("start the ZAP handler: ") + e.what()};
}

ZapHandler::~ZapHandler() {
  if (!thread_.joinable()) return;
  try {
    stop_->send(zmq::str_buffer("stop"), zmq::send_flags::none);
  } catch (const zmq::error_t&) {
    // The context is being terminated: the thread's poll ends with ETERM.
  }
  thread_.join();
}

void ZapHandler::replace(AllowList list) {
  const std::lock_guard lock(mutex_);
  list_ = std::move(list);
}

bool ZapHandler::lists(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return list_.has_name(name);
}

std::optional<std::string> ZapHandler::admits(std::string_view public_z85) const {
  const std::lock_guard lock(mutex_);
  return list_.name_of(public_z85);
}

void ZapHandler::serve(zmq::socket_t requests, zmq::socket_t stop) {
  while (true) {
    try {
      std::array<zmq::pollitem_t, 2> items{
          {{requests.handle(), 0, ZMQ_POLLIN, 0}, {stop.handle(), 0, ZMQ_POLLIN, 0}}};
      zmq::poll(items, std::chrono::milliseconds(-1));
      if ((items[1].revents & ZMQ_POLLIN) != 0) return;
      if ((items[0].revents & ZMQ_POLLIN) != 0) answer(requests);
    } catch (const zmq::error_t& e) {
      if (e.num() != EINTR && e.num() != EAGAIN) return;  // ETERM: the context is going
    }
  }
}

void ZapHandler::answer(zmq::socket_t& requests) {
  const Request r = receive(requests);
  const Verdict v = [&] {
    const std::lock_guard lock(mutex_);
    return judge(r, list_);
  }();
  if (!v.text.empty()) {
    ++denials_;
    if (on_denied_) on_denied_("peer at " + printable(r.address(), 60) + ": " + v.text);
  }
  const std::string meta = v.key.empty() ? std::string() : metadata(kKeyProperty, v.key);
  const auto more = zmq::send_flags::sndmore;
  requests.send(zmq::str_buffer("1.0"), more);
  requests.send(zmq::buffer(r.id()), more);
  requests.send(zmq::buffer(std::string_view(v.status)), more);
  requests.send(zmq::buffer(v.text), more);
  requests.send(zmq::buffer(v.user), more);
  requests.send(zmq::buffer(meta), zmq::send_flags::none);
}
}  // namespace proctor::wire
