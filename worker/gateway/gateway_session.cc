#include "worker/gateway/gateway_session.h"

#include <openssl/rand.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <list>
#include <system_error>
#include <thread>

#include "common/base/net_host.h"
#include "worker/gateway/cassette_player.h"
#include "worker/gateway/session_shared.h"
#include "worker/gateway/wire_io.h"

namespace proctor {
namespace {

void wake(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(fd, &one, sizeof one);
}

// OpenSSL writes to sockets whose peer may have gone.
void forbid_sigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

Json sums_json(const GatewaySums& s) {
  return {{"calls", s.calls},
          {"refused", s.refused},
          {"released", s.released},
          {"by_usage", s.by_usage},
          {"at_ceiling", s.at_ceiling},
          {"partial", s.partial},
          {"overruns", s.overruns},
          {"charged_micros", s.charged_micros},
          {"ceiling_micros", s.ceiling_micros},
          {"input_tokens", s.input},
          {"cache_read_tokens", s.cache_read},
          {"cache_written_tokens", s.cache_written},
          {"output_tokens", s.output},
          {"reasoning_tokens", s.reasoning},
          {"waited_ms", s.waited_ms},
          {"clamped", s.clamped},
          {"clients_gone", s.clients_gone},
          {"wrong_tokens", s.wrong_tokens},
          {"unknown_routes", s.unknown_routes}};
}

// The recordings together.
std::size_t unused_calls(const GatewayOptions& options) {
  std::size_t out = 0;
  for (const auto& [file, player] : options.players) out += player->unused();
  return out;
}

Json opened_json(const GatewayOptions& options) {
  const GatewayModel& first = options.method.model();
  Json out = {
      {"model", first.name}, {"provider", first.provider}, {"pieces", true}};  // how texts are kept
  if (1 < options.method.models.size())
    for (const GatewayModel& m : options.method.models)
      out["models"].push_back({{"name", m.name}, {"provider", m.provider}});
  if (options.method.breakers.any()) {
    Json breakers = Json::object();
    for (const auto& [code, rule] : options.method.breakers.rules) breakers[code] = rule;
    out["breakers"] = std::move(breakers);
  }
  for (const GatewayModel& m : options.method.models)
    if (const ModelAccess& access = options.models.at(m.name);
        !out.contains("cassette") && options.players.contains(access.cassette))
      out["cassette"] = {{"calls", unused_calls(options)},
                         {"match", to_string(access.cassette_match)},
                         {"charges", access.cassette_charges}};
  return out;
}

}  // namespace

// ---------------------------------------------------------------- what connections share

void GatewaySums::settled(const Settlement& s, std::uint64_t charged, bool overrun) {
  using How = Settlement::How;
  (s.how == How::kReleased  ? released
   : s.how == How::kUsage   ? by_usage
   : s.how == How::kPartial ? partial
                            : at_ceiling) += 1;
  charged_micros += charged;
  overruns += overrun ? 1 : 0;
  if (s.how == How::kCeiling) ceiling_micros += charged;
  if (s.how != How::kUsage && s.how != How::kPartial) return;
  input += s.actual.input_tokens;
  output += s.actual.output_tokens;
  cache_read += s.actual.cache_read;
  cache_written += s.actual.cache_write + s.actual.cache_write_long;
  reasoning += s.actual.reasoning;
}

std::optional<Refusal> GatewaySession::Shared::final_word() const {
  const std::lock_guard lock(mutex_);
  return final_;
}

void GatewaySession::Shared::say_final(const Refusal& refusal) {
  const std::lock_guard lock(mutex_);
  if (!final_) final_ = refusal;
}

std::chrono::milliseconds GatewaySession::Shared::refused_again() {
  constexpr std::uint64_t kPatience = 10, kDoublings = 5;
  constexpr std::chrono::seconds kFirst{1}, kMost{30};
  const std::lock_guard lock(mutex_);
  if (++refused_after_ < kPatience) return {};
  const std::uint64_t doublings = std::min(refused_after_ - kPatience, kDoublings);
  return std::min(kFirst * (std::int64_t{1} << doublings), kMost);
}

std::string GatewaySession::Shared::redacted(std::string_view text) const {
  std::string own = own_token.apply(text);
  return options.redactor ? options.redactor->apply(own) : own;
}

SessionBreakers::Told GatewaySession::Shared::tell(std::string_view type, GatewayHooks::By by,
                                                   const Json& payload) {
  struct Own final : Redactor {
    explicit Own(const Shared& s) : shared(s) {}
    std::string apply(std::string_view text) const override { return shared.redacted(text); }
    const Shared& shared;
  };
  SessionBreakers::Told told = breakers.tell(type, by, proctor::redacted(payload, Own(*this)));
  if (told.stop) {
    Refusal no{Refusal::Cause::kFinal, "breaker: " + told.stop->code + ": " + told.stop->why};
    no.code = "breaker";
    say_final(no);
    if (hooks.stop) hooks.stop(kBreakerCap, no.text, told.evidence);
  }
  return told;
}

bool GatewaySession::Shared::is_first_result(const std::string& id) {
  constexpr std::size_t kMost = 100'000;
  const std::lock_guard lock(mutex_);
  return results_.size() < kMost && results_.insert(id.substr(0, 200)).second;
}

void GatewaySession::Shared::watch(const CallRecord& call, std::uint64_t evidence) {
  const bool over = wait_for_fd(-1, 0, cut.get(), SteadyClock::now()) == Waited::kStopped;
  CallRecord told = call;
  told.why = redacted(call.why);
  const std::lock_guard lock(mutex_);
  watch_.take(told, over, evidence);
}

void GatewaySession::Shared::cannot_ask(const std::string& why) {
  const std::string told = redacted(why);
  const std::lock_guard lock(mutex_);
  watch_.refused(told, 0);
}

void GatewaySession::Shared::barred(const std::string& why) {
  const std::string told = redacted(why);
  const std::lock_guard lock(mutex_);
  watch_.barred(told);
}

void GatewaySession::Shared::watch_charge(const CallRecord& call) {
  if (is_busy(call.status))
    hooks.count({.busy = 1});
  else if (is_unanswered(call))
    hooks.count({.failed = 1});
  const std::lock_guard lock(mutex_);
  watch_.charged(
      call, under_way_,
      std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now().time_since_epoch()));
}

void GatewaySession::Shared::watch_cap(const MeterDenied& no) {
  const std::lock_guard lock(mutex_);
  watch_.capped(no);
}

bool GatewaySession::Shared::answered() const {
  const std::lock_guard lock(mutex_);
  return watch_.answered();
}

void GatewaySession::Shared::begun(CallRecord& stream) {
  stream.begun = true;
  const std::lock_guard lock(mutex_);
  watch_.begun();
}

ModelLack GatewaySession::Shared::lack() const {
  const std::lock_guard lock(mutex_);
  return watch_.lack();
}

bool GatewaySession::Shared::take_bytes(std::uint64_t n) {
  if (options.bounds.memory < bytes.fetch_add(n) + n) {
    bytes.fetch_sub(n);
    return false;
  }
  return true;
}

bool GatewaySession::Shared::may_begin(const Turn* turn) const {
  return line_.front() == turn && under_way_ < options.bounds.calls;
}

void GatewaySession::Shared::change() {
  ++changes_;
  changed_.notify_all();
  if (!line_.empty()) line_.front()->changed_.notify_one();
}

GatewaySession::Shared::Turn::Turn(Shared& shared) : shared_(shared) {
  const std::lock_guard lock(shared_.mutex_);
  in_line_ = shared_.line_.size() < shared_.options.bounds.waiting;
  if (in_line_) shared_.line_.push_back(this);
}

GatewaySession::Shared::Turn::~Turn() {
  const std::lock_guard lock(shared_.mutex_);
  if (begun_)
    --shared_.under_way_;
  else
    std::erase(shared_.line_, this);
  shared_.change();
}

bool GatewaySession::Shared::Turn::is_next() {
  const std::lock_guard lock(shared_.mutex_);
  seen_ = shared_.changes_;
  return shared_.may_begin(this);
}

void GatewaySession::Shared::Turn::begin() {
  const std::lock_guard lock(shared_.mutex_);
  std::erase(shared_.line_, this);
  ++shared_.under_way_;
  begun_ = true;
  shared_.change();
}

void GatewaySession::Shared::Turn::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(shared_.mutex_);
  changed_.wait_for(lock, most,
                    [this] { return seen_ != shared_.changes_ && shared_.may_begin(this); });
}

void GatewaySession::Shared::wait_for_calls(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [this] { return under_way_ == 0; });
}

// ---------------------------------------------------------------- the session

struct GatewaySession::Impl {
  struct Client {
    std::atomic<bool> ended = false;
    std::jthread thread;
  };
  Shared shared;
  UniqueFd listener, news;
  std::list<Client> clients;  // of the accepting thread alone
  std::jthread thread;
  bool closed = false;

  void run() {
    forbid_sigpipe();
    for (;;) {
      const bool full = shared.options.bounds.connections <= clients.size();
      std::array<pollfd, 3> fds = {pollfd{shared.closing.get(), POLLIN, 0},
                                   pollfd{news.get(), POLLIN, 0},
                                   pollfd{full ? -1 : listener.get(), POLLIN, 0}};
      if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
      if (fds[0].revents != 0) break;
      if (fds[1].revents != 0) {
        std::uint64_t count = 0;
        [[maybe_unused]] const ssize_t n = ::read(news.get(), &count, sizeof count);
        clients.remove_if([](const Client& c) { return c.ended.load(); });
      }
      if (fds[2].revents != 0) accept_one();
    }
    listener.reset();
    clients.clear();  // joins: each of them sees `closing`, and `cut`
  }

  void accept_one() {
    UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) return;
    Client& client = clients.emplace_back();
    try {
      client.thread = std::jthread([this, &client, c = std::move(fd)]() mutable {
        serve_gateway_client(shared, std::move(c));
        client.ended = true;
        wake(news.get());
      });
    } catch (const std::system_error&) {  // no thread to be had: as if nobody listened
      clients.pop_back();
    }
  }
};

GatewaySession::GatewaySession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<GatewaySession>> GatewaySession::open(const fs::path& dir,
                                                             GatewayOptions options,
                                                             GatewayHooks hooks,
                                                             ProviderPool& pool) {
  PROCTOR_TRY(UniqueFd listener,
              listen_in(dir, static_cast<int>(options.bounds.connections), "gateway"));
  UniqueFd closing(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd cut(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!closing.valid() || !cut.valid() || !news.valid())
    return errno_error("gateway: eventfd", errno);
  std::unique_ptr<Impl> impl(
      new Impl{{std::move(options), std::move(hooks), pool}, {}, {}, {}, {}, false});
  impl->listener = std::move(listener);
  impl->news = std::move(news);
  impl->shared.closing = std::move(closing);
  impl->shared.cut = std::move(cut);
  impl->shared.note("gateway.open", GatewayHooks::By::kHarness, opened_json(impl->shared.options));
  impl->thread = std::jthread([i = impl.get()] { i->run(); });
  return std::unique_ptr<GatewaySession>(new GatewaySession(std::move(impl)));
}

void GatewaySession::close() {
  if (std::exchange(impl_->closed, true)) return;
  wake(impl_->shared.closing.get());
  impl_->shared.wait_for_calls(impl_->shared.options.bounds.drain);
  wake(impl_->shared.cut.get());
  impl_->thread.join();
  Json sums = sums_json(impl_->shared.sums());
  const GatewayOptions& options = impl_->shared.options;
  if (!options.players.empty()) sums["cassette_unused"] = unused_calls(options);
  impl_->shared.note("gateway.closed", GatewayHooks::By::kHarness, sums);
}

GatewaySession::Heard GatewaySession::tell(std::string_view type, GatewayHooks::By by,
                                           const Json& payload) {
  SessionBreakers::Told told = impl_->shared.tell(type, by, payload);
  return {told.seq, std::move(told.suspended)};
}

ModelLack GatewaySession::lack() const {
  return impl_->shared.lack();
}

GatewaySession::~GatewaySession() {
  close();
}

std::string new_gateway_token() {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  constexpr std::size_t kCharacters = 43;
  std::array<unsigned char, kCharacters> random{};
  PROCTOR_ASSERT(RAND_bytes(random.data(), static_cast<int>(random.size())) == 1);
  std::string out = "prk1_";
  for (const unsigned char byte : random) out += kLetters[byte % kLetters.size()];
  return out;
}

}  // namespace proctor
