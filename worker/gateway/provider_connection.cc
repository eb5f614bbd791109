#include "worker/gateway/provider_connection.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "common/base/digest.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/base/words.h"
#include "worker/network/resolver.h"

namespace proctor {
std::uint64_t micros_since(SteadyClock::time_point since) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - since).count());
}

bool has_left(int fd) {
  pollfd one{fd, 0, 0};
  return 0 < ::poll(&one, 1, 0) && (one.revents & (POLLHUP | POLLERR)) != 0;
}

ProviderStreak::May ProviderStreak::may_begin(Run run, Time now) {
  if (!holds(run)) return {};
  // Others that wait come at `until_`: behind them, who tried in vain does not keep them from it.
  const Time from = several() && run == tried_ ? until_ + 2 * rule_.look_again : until_;
  if (now < from) return {std::chrono::ceil<Millis>(from - now), false};
  if (probing_) return {rule_.look_again, false};
  probing_ = true;
  return {Millis(0), true};
}

void ProviderStreak::ended(Run run, End end, bool probe, Time now) {
  if (probe) probing_ = false;
  if (end == End::kUnknown) return;  // of a probe: the next call is one
  if (end == End::kAnswered) {
    failures_ = 0;
    open_ = false;
    tried_ = nullptr;
    failed_.clear();
    return;
  }
  // It began before, or is a run's first: neither says more than is known.
  const bool known = holds(run) || (open_ && several());
  ++failures_;
  if (failed_.size() < kRunsKnown) failed_.insert(run);
  if (known && !probe) return;
  if (failures_ < rule_.failures) return;
  pause_ = probe ? std::min(pause_ * 2, rule_.most) : rule_.first;
  tried_ = probe ? run : nullptr;
  open_ = true;
  until_ = now + pause_;
}

void ProviderHolds::no_room(const std::string& model, std::optional<Millis> asked, Time now) {
  constexpr Millis kFirst{1'000}, kUnasked{30'000};
  Provider& p = providers_[model];
  // Calls that were under way together are one want of room.
  if (p.own <= now) p.unasked = std::clamp(2 * p.unasked, kFirst, kUnasked);
  if (p.until <= now) p.places = 0;
  p.own = std::max(p.own, now + std::min(asked.value_or(p.unasked), Millis(kHoldMsMax)));
  p.until = std::max(p.until, p.own);
}

ProviderHolds::Millis ProviderHolds::left(const std::string& model, std::uint32_t& place,
                                          Time now) {
  constexpr Millis kApart{50};
  constexpr std::uint32_t kPlaces = 20;
  Provider& p = providers_[model];
  if (place == 0 && p.until <= now) return Millis(0);
  if (place == 0) place = ++p.places;
  return std::max(Millis(0), std::chrono::ceil<Millis>(p.until + kApart * (place % kPlaces) - now));
}

std::vector<ProviderHold> ProviderHolds::own(Time now) const {
  std::vector<ProviderHold> out;
  for (const auto& [model, p] : providers_)
    if (now < p.own && out.size() < kHoldsMax)
      out.push_back({name_of(model),
                     static_cast<std::uint32_t>(std::chrono::ceil<Millis>(p.own - now).count())});
  return out;
}

void ProviderHolds::take(const std::vector<ProviderHold>& of_others, Time now) {
  for (auto& [model, p] : providers_)
    for (const ProviderHold& hold : of_others)
      if (hold.provider == name_of(model)) {
        if (p.until <= now) p.places = 0;
        p.until = std::max(p.until, now + std::min(Millis(hold.ms), Millis(kHoldMsMax)));
      }
}

std::string ProviderHolds::name_of(const std::string& model) {
  constexpr std::size_t kLetters = 16;
  return sha256(model).hex().substr(0, kLetters);
}

namespace {
constexpr std::size_t kChunk = std::size_t{16} << 10, kIdleMost = 32;
constexpr std::chrono::seconds kIdleFor{20};
constexpr std::string_view kClosed = "the provider closed the connection";
constexpr auto kReadEnds = each_once(std::to_array<Word<ProviderConnection::Read>>(
    {{"", ProviderConnection::Read::kBytes},
     {kClosed, ProviderConnection::Read::kEnd},
     {"the connection to the provider broke", ProviderConnection::Read::kBroken},
     {"the provider sent nothing in time", ProviderConnection::Read::kTime},
     {"the run ended", ProviderConnection::Read::kStopped}}));

// A provider's limits, and what its answers show, are of one model.
std::string model_at(const ModelAccess& access) {
  return access.url + "\n" + access.send_as;
}

Error away(std::string why) {
  return Error{Errc::kUnavailable, std::move(why)};
}

using Ssl = Owned<SSL, SSL_free>;
using Context = Owned<SSL_CTX, SSL_CTX_free>;

std::string tls_error() {
  std::array<char, 256> text{};
  const unsigned long code = ERR_get_error();
  if (code == 0) return "the connection broke";
  ERR_error_string_n(code, text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

// A socket, with TLS above it or without.
class SocketConnection final : public ProviderConnection {
 public:
  explicit SocketConnection(UniqueFd fd, Ssl ssl = {}) : fd_(std::move(fd)), ssl_(std::move(ssl)) {}

  Status shake_hands(int stop, SteadyClock::time_point until) {
    ERR_clear_error();
    for (;;) {
      const int done = SSL_connect(ssl_.get());
      if (done == 1) return ok_status();
      const short events = events_of(SSL_get_error(ssl_.get(), done));
      if (events == 0) {
        const long verdict = SSL_get_verify_result(ssl_.get());
        return away("TLS: " + (verdict == X509_V_OK
                                   ? tls_error()
                                   : std::string(X509_verify_cert_error_string(verdict))));
      }
      if (wait_for_fd(fd_.get(), events, stop, until) != Waited::kReady)
        return away("TLS: no answer in time");
    }
  }
  bool write(std::string_view bytes, int stop, SteadyClock::time_point until) override {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now());
    if (!ssl_) return write_all(fd_.get(), bytes, stop, left) == Wrote::kAll;
    while (!bytes.empty()) {
      ERR_clear_error();
      const int now = static_cast<int>(std::min(bytes.size(), kChunk));
      const int n = SSL_write(ssl_.get(), bytes.data(), now);
      if (0 < n) {
        bytes.remove_prefix(static_cast<std::size_t>(n));
        continue;
      }
      const short events = events_of(SSL_get_error(ssl_.get(), n));
      if (events == 0 || wait_for_fd(fd_.get(), events, stop, until) != Waited::kReady)
        return false;
    }
    return true;
  }
  Read read(std::string& out, int stop, SteadyClock::time_point until) override {
    std::array<char, kChunk> buffer;  // NOLINT: filled by recv or SSL_read
    for (;;) {
      short events = 0;
      const ssize_t n = ssl_ ? tls_once(buffer, events) : plain_once(buffer, events);
      if (0 < n) {
        out.append(buffer.data(), static_cast<std::size_t>(n));
        return Read::kBytes;
      }
      if (n == 0) return Read::kEnd;
      if (events == 0) return Read::kBroken;
      const Waited waited = wait_for_fd(fd_.get(), events, stop, until);
      if (waited == Waited::kStopped) return Read::kStopped;
      if (waited == Waited::kTime) return Read::kTime;
    }
  }
  bool is_quiet() const override {
    pollfd one{fd_.get(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 0;
  }

 private:
  // One read without waiting: how many bytes; 0: its end; -1: none, and `events` says what to wait
  // for, 0 that it broke.
  ssize_t plain_once(std::span<char> into, short& events) const {
    const ssize_t n = ::recv(fd_.get(), into.data(), into.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) events = POLLIN;
    return n;
  }
  ssize_t tls_once(std::span<char> into, short& events) const {
    ERR_clear_error();
    const int n = SSL_read(ssl_.get(), into.data(), static_cast<int>(into.size()));
    if (0 < n) return n;
    const int error = SSL_get_error(ssl_.get(), n);
    events = events_of(error);
    return error == SSL_ERROR_ZERO_RETURN ? 0 : -1;
  }
  // Which to wait for before the call is made again; 0: it failed.
  static short events_of(int error) {
    if (error == SSL_ERROR_WANT_READ) return POLLIN;
    return error == SSL_ERROR_WANT_WRITE ? POLLOUT : 0;
  }
  UniqueFd fd_;
  Ssl ssl_;  // empty: none
};

Result<UniqueFd> connect_place(const ProviderPlace& place, int stop,
                               SteadyClock::time_point until) {
  std::vector<IpAddress> addresses;
  if (place.host.address) {
    addresses = {*place.host.address};
  } else {
    auto found = resolve_name(place.host.text, stop, until);
    if (!found.ok()) return away(found.error().detail);
    addresses = std::move(found).value();
  }
  std::string failed = "its name leads nowhere";
  for (const IpAddress& address : addresses) {
    Result<UniqueFd> fd = connect_to_address(address, place.port, stop, until, "connect: ");
    if (fd.ok()) return fd;
    failed = fd.error().detail;
  }
  return away(place.host.text + ": " + failed);
}
}  // namespace

std::unique_ptr<ProviderConnection> plain_connection(UniqueFd fd) {
  return std::make_unique<SocketConnection>(std::move(fd));
}

Result<ProviderPlace> provider_place(std::string_view url) {
  constexpr std::uint16_t kHttp = 80, kHttps = 443;
  const Error wrong{Errc::kInvalid, "no URL of a provider: " + printable(url)};
  ProviderPlace out;
  out.tls = url.starts_with("https://");
  if (!out.tls && !url.starts_with("http://")) return wrong;
  url.remove_prefix(out.tls ? 8 : 7);
  const std::size_t slash = std::min(url.find('/'), url.size());
  const std::string_view authority = url.substr(0, slash);
  out.path = url.substr(slash);
  while (out.path.ends_with('/')) out.path.pop_back();
  const bool bracketed = authority.ends_with(']');
  const std::size_t colon = bracketed ? std::string_view::npos : authority.rfind(':');
  const auto host = parse_net_host(authority.substr(0, colon));
  if (!host || out.path.find_first_of("?# \r\n") != std::string::npos) return wrong;
  out.host = *host;
  out.port = out.tls ? kHttps : kHttp;
  if (colon != std::string_view::npos) {
    const auto port = parse_port(authority.substr(colon + 1));
    if (!port) return wrong;
    out.port = *port;
  }
  out.header = authority;
  return out;
}

struct ProviderPool::Tls {
  Context context;
};

ProviderPool::ProviderPool(ProviderStreak::Rule rule) : rule_(rule) {}
ProviderPool::~ProviderPool() = default;

Result<std::shared_ptr<ProviderPool::Tls>> ProviderPool::tls_for(const std::string& ca_file) {
  const std::lock_guard lock(mutex_);
  if (const auto it = tls_by_file_.find(ca_file); it != tls_by_file_.end()) return it->second;
  auto tls = std::make_shared<Tls>();
  tls->context.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* const c = tls->context.get();
  if (c == nullptr) return away("TLS: " + tls_error());
  SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_default_verify_paths(c);
  if (!ca_file.empty() && SSL_CTX_load_verify_locations(c, ca_file.c_str(), nullptr) != 1)
    return away("ca_file " + ca_file + ": " + tls_error());
  tls_by_file_.emplace(ca_file, tls);
  return tls;
}

Result<std::unique_ptr<ProviderConnection>> ProviderPool::connect(const ModelAccess& access,
                                                                  int stop,
                                                                  SteadyClock::time_point until) {
  PROCTOR_TRY(const ProviderPlace place, provider_place(access.url));
  PROCTOR_TRY(UniqueFd fd, connect_place(place, stop, until));
  if (!place.tls) return plain_connection(std::move(fd));
  PROCTOR_TRY(const std::shared_ptr<Tls> tls, tls_for(access.ca_file));
  Ssl ssl(SSL_new(tls->context.get()));
  if (!ssl || SSL_set_fd(ssl.get(), fd.get()) != 1) return away("TLS: " + tls_error());
  const std::string& name = place.host.text;
  if (place.host.address) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), name.c_str());
  } else {
    SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(name.c_str()));  // NOLINT: it copies the name
    SSL_set1_host(ssl.get(), name.c_str());
  }
  auto out = std::make_unique<SocketConnection>(std::move(fd), std::move(ssl));
  if (const Status shaken = out->shake_hands(stop, until); !shaken.ok())
    return in_context(name, shaken.error());
  return std::unique_ptr<ProviderConnection>(std::move(out));
}

Result<std::unique_ptr<ProviderConnection>> ProviderPool::take(const ModelAccess& access, int stop,
                                                               SteadyClock::time_point until) {
  {
    const std::lock_guard lock(mutex_);
    std::list<Idle>& kept = idle_[access.url + "\n" + access.ca_file];
    while (!kept.empty()) {
      Idle last = std::move(kept.back());
      kept.pop_back();
      if (SteadyClock::now() < last.since + kIdleFor && last.connection->is_quiet())
        return std::move(last.connection);
    }
  }
  return connect(access, stop, until);
}

ProviderStreak::May ProviderPool::may_call(const ModelAccess& access, ProviderStreak::Run run) {
  const std::lock_guard lock(mutex_);
  return streaks_.try_emplace(access.url, rule_).first->second.may_begin(run, SteadyClock::now());
}

void ProviderPool::call_ended(const ModelAccess& access, ProviderStreak::Run run,
                              ProviderStreak::End end, bool probe) {
  const std::lock_guard lock(mutex_);
  streaks_.try_emplace(access.url, rule_).first->second.ended(run, end, probe, SteadyClock::now());
}

bool ProviderPool::delta_holds(const ModelAccess& access) const {
  const std::lock_guard lock(mutex_);
  const auto it = trusts_.find(model_at(access));
  return it != trusts_.end() && it->second.holds();
}

void ProviderPool::delta_seen(const ModelAccess& access, std::uint64_t bound,
                              std::uint64_t actual) {
  const std::lock_guard lock(mutex_);
  trusts_[model_at(access)].seen(bound, actual);
}

std::chrono::milliseconds ProviderPool::held(const ModelAccess& access, std::uint32_t& place) {
  const std::lock_guard lock(mutex_);
  return holds_.left(model_at(access), place, SteadyClock::now());
}

void ProviderPool::no_room(const ModelAccess& access,
                           std::optional<std::chrono::milliseconds> asked) {
  const std::lock_guard lock(mutex_);
  holds_.no_room(model_at(access), asked, SteadyClock::now());
}

void ProviderPool::had_room(const ModelAccess& access) {
  const std::lock_guard lock(mutex_);
  holds_.answered(model_at(access));
}

std::vector<ProviderHold> ProviderPool::holds() const {
  const std::lock_guard lock(mutex_);
  return holds_.own(SteadyClock::now());
}

void ProviderPool::hold(const std::vector<ProviderHold>& of_others) {
  const std::lock_guard lock(mutex_);
  holds_.take(of_others, SteadyClock::now());
}

void ProviderPool::give_back(const ModelAccess& access,
                             std::unique_ptr<ProviderConnection> connection) {
  const std::lock_guard lock(mutex_);
  std::list<Idle>& kept = idle_[access.url + "\n" + access.ca_file];
  kept.push_back({std::move(connection), SteadyClock::now()});
  if (kIdleMost < kept.size()) kept.pop_front();
}

ProviderAnswer::More ProviderAnswer::broken(std::string why) {
  why_ = std::move(why);
  return More::kBroken;
}

bool ProviderAnswer::fill(SteadyClock::time_point until, More& how) {
  using Read = ProviderConnection::Read;
  const Read got = connection_.read(bytes_, stop_, until);
  if (got == Read::kBytes) return true;
  how = broken(std::string(word_in(kReadEnds, got)));
  if (got == Read::kTime) how = More::kTime;
  return false;
}

bool ProviderAnswer::read_head(SteadyClock::time_point until) {
  constexpr int kOk = 200;
  for (int interim = 0; interim < 10; ++interim) {
    std::size_t size = 0;
    while ((size = head_length(bytes_)) == 0) {
      if (kHttpHeadBytes <= bytes_.size()) {
        why_ = "an answer's head of more than 32 KiB";
        return false;
      }
      More how{};
      if (!fill(until, how)) return false;
    }
    const Result<AnswerHead> head = read_answer_head(std::string_view(bytes_).substr(0, size));
    bytes_.erase(0, size);
    if (!head.ok()) {
      why_ = "an answer that is no HTTP: " + head.error().detail;
      return false;
    }
    head_ = *head;
    body_ = BodyScanner(head_.body);
    whole_ = body_.done();
    if (kOk <= head_.status) return true;
  }
  why_ = "too many answers that are none yet";
  return false;
}

ProviderAnswer::More ProviderAnswer::read_body(std::string& out, SteadyClock::time_point until) {
  if (whole_) return More::kWhole;
  for (;;) {
    const std::size_t before = out.size();
    const auto used = body_.feed(bytes_, &out);
    if (!used.ok()) return broken(used.error().detail);
    bytes_.erase(0, *used);
    whole_ = body_.done();
    if (before < out.size()) return More::kBytes;
    if (whole_) return More::kWhole;
    More how{};
    if (fill(until, how)) continue;
    if (head_.body.kind == HttpFraming::Kind::kToTheEnd && why_ == kClosed) {
      whole_ = true;
      return More::kWhole;
    }
    return how;
  }
}

bool ProviderAnswer::read_all(std::string& out, std::size_t most, SteadyClock::time_point until) {
  for (;;) {
    const More more = read_body(out, until);
    if (more == More::kWhole) return true;
    if (more != More::kBytes) return false;
    if (most < out.size()) {
      why_ = "an answer that is too large";
      return false;
    }
  }
}

std::optional<std::chrono::milliseconds> retry_after(const HttpFields& fields) {
  constexpr std::uint32_t kMost = 3'600'000;
  struct Word {
    const char* name;
    std::uint32_t ms;
  };
  for (const Word& word : {Word{"retry-after-ms", 1}, Word{"retry-after", 1'000}}) {
    const std::string* said = find_field(fields, word.name);
    std::uint32_t n = 0;
    std::string_view left = said == nullptr ? "" : std::string_view(*said);
    if (!take_number(left, n)) continue;
    return std::chrono::milliseconds(std::min(n, kMost / word.ms) * word.ms);
  }
  return std::nullopt;
}
}  // namespace proctor
