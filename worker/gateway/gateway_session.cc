#include "worker/gateway/gateway_session.h"

#include <openssl/rand.h>
#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include "common/base/json_fields.h"
#include "common/base/text.h"
#include "worker/gateway/cassette.h"
#include "worker/gateway/http_gate.h"
#include "worker/gateway/session_shared.h"

namespace proctor {
namespace {
// The recordings together.
std::size_t unused_calls(const GatewayOptions& options) {
  std::size_t out = 0;
  for (const auto& [file, player] : options.players) out += player->unused();
  return out;
}

void name_model(JsonWriter& v, const char* name, const GatewayModel& m) {
  v(name, m.name);
  v("provider", m.provider);
}

Json opened_json(const GatewayOptions& options) {
  const std::vector<GatewayModel>& models = options.method.models;
  JsonWriter v;
  name_model(v, "model", models.front());
  v("pieces", true);  // how texts are kept
  if (1 < models.size()) {
    Json all = Json::array();
    for (const GatewayModel& m : models) {
      JsonWriter one;
      name_model(one, "name", m);
      all.push_back(one.take());
    }
    v("models", all);
  }
  if (options.method.breakers.any()) v("breakers", options.method.breakers.rules);
  const auto played = std::ranges::find_if(models, [&](const GatewayModel& m) {
    return options.players.contains(options.models.at(m.name).cassette);
  });
  if (played != models.end())
    v.section("cassette", [&, &access = options.models.at(played->name)](JsonWriter& cassette) {
      cassette("calls", unused_calls(options));
      cassette("match", access.cassette_match);
      cassette("charges", access.cassette_charges);
    });
  return v.take();
}
}  // namespace

// GatewaySession::Shared: the state of all connections.

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
  SessionBreakers::Told told = breakers.tell(
      type, by, proctor::redacted(payload, [this](std::string_view t) { return redacted(t); }));
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
  watched([told = redacted(why)](ModelWatch& w) { w.refused(told, 0); });
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

bool GatewaySession::Shared::answered() const {
  const std::lock_guard lock(mutex_);
  return watch_.answered();
}

void GatewaySession::Shared::begun(CallRecord& stream) {
  stream.begun = true;
  const std::lock_guard lock(mutex_);
  watch_.begun();
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

// GatewaySession: its socket, its threads, its end.

struct GatewaySession::Impl {
  Shared shared;
  std::unique_ptr<SocketServer> server;  // last: its threads use what is shared
};

GatewaySession::GatewaySession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<GatewaySession>> GatewaySession::open(const fs::path& dir,
                                                             GatewayOptions options,
                                                             GatewayHooks hooks,
                                                             ProviderPool& pool) {
  PROCTOR_TRY(auto server, SocketServer::open(dir, options.bounds.connections, "gateway"));
  std::unique_ptr<Impl> impl(
      new Impl{{std::move(options), std::move(hooks), pool}, std::move(server)});
  Shared& shared = impl->shared;
  PROCTOR_TRY(shared.closing, new_signal("gateway"));
  PROCTOR_TRY(shared.cut, new_signal("gateway"));
  shared.note("gateway.open", GatewayHooks::By::kHarness, opened_json(shared.options));
  impl->server->start(shared.closing.get(), [&shared](UniqueFd client) {
    serve_gateway_client(shared, std::move(client));
  });
  return std::unique_ptr<GatewaySession>(new GatewaySession(std::move(impl)));
}

void GatewaySession::close() {
  if (impl_->server == nullptr) return;
  wake(impl_->shared.closing.get());
  impl_->shared.wait_for_calls(impl_->shared.options.bounds.drain);
  wake(impl_->shared.cut.get());
  impl_->server.reset();
  const GatewayOptions& options = impl_->shared.options;
  JsonWriter v;
  impl_->shared.count([&](const GatewaySums& sums) { fields(v, sums); });
  if (!options.players.empty()) v("cassette_unused", unused_calls(options));
  impl_->shared.note("gateway.closed", GatewayHooks::By::kHarness, v.take());
}

GatewaySession::Heard GatewaySession::tell(std::string_view type, GatewayHooks::By by,
                                           const Json& payload) {
  SessionBreakers::Told told = impl_->shared.tell(type, by, payload);
  return {told.seq, std::move(told.suspended)};
}

ModelLack GatewaySession::lack() const {
  return impl_->shared.watched([](const ModelWatch& w) { return w.lack(); });
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

// One connection of an agent: requests one after the other, each judged before anything of it is
// believed.

namespace {
using Cause = Refusal::Cause;
using std::chrono::milliseconds;

constexpr std::size_t kRequestsMax = 1'000;  // of one connection

bool same_bytes(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;  // in constant time
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

class Client {
 public:
  Client(GatewaySession::Shared& shared, UniqueFd fd) : shared_(shared), fd_(std::move(fd)) {}

  void serve() {
    for (std::size_t i = 0; i < kRequestsMax; ++i) {
      if (!read_head()) return;
      const auto judged = judge_head(std::string_view(bytes_).substr(0, head_size_));
      bytes_.erase(0, head_size_);
      number_ = ++shared_.requests;
      if (const auto* no = std::get_if<GateRefusal>(&judged)) {
        Refusal refusal{Cause::kGate, no->why};
        refusal.status = no->status;
        refuse(ModelApi::kChat, refusal);
        return hang_up();
      }
      const auto& head = std::get<GatewayHead>(judged);
      const bool more = answer(head);
      if (0 < held_) shared_.give_bytes(std::exchange(held_, 0));
      if (!more || head.last) return hang_up();
    }
    hang_up();
  }

 private:
  const GatewayBounds& bounds() const { return shared_.options.bounds; }

  // False: nothing more comes.
  bool read_head() {
    auto until = SteadyClock::now() + (bytes_.empty() ? bounds().keep_alive : bounds().head);
    bool begun = !bytes_.empty();
    while ((head_size_ = head_length(bytes_)) == 0) {
      if (kHttpHeadBytes <= bytes_.size()) return refuse_head("a head of more than 32 KiB");
      const Waited waited = wait_for_fd(fd_.get(), POLLIN, shared_.closing.get(), until);
      if (waited == Waited::kStopped) return false;
      if (waited == Waited::kTime) return begun ? refuse_head("a head without end") : false;
      if (!receive()) return false;
      if (!begun) until = SteadyClock::now() + bounds().head;
      begun = true;
    }
    if (kHttpHeadBytes < head_size_) return refuse_head("a head of more than 32 KiB");
    return true;
  }

  bool refuse_head(const char* why) {
    refuse(ModelApi::kChat, {Cause::kGate, why});
    hang_up();
    return false;
  }

  bool receive() {
    std::array<char, std::size_t{64} << 10> buffer;  // NOLINT: filled by recv
    const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    bytes_.append(buffer.data(), static_cast<std::size_t>(n));
    return 0 < n;
  }

  bool say(std::string_view bytes) {
    return write_all(fd_.get(), bytes, shared_.cut.get(), bounds().client_idle) == Wrote::kAll;
  }
  void refuse(ModelApi api, const Refusal& refusal) {
    shared_.count([](GatewaySums& s) { ++s.refused; });
    shared_.hooks.count({.refused = 1});
    say(to_bytes(make_refusal(api, refusal, litellm_, number_)));
  }
  bool plain(int status, std::string body, std::string headers = "") {
    return say(to_bytes({status, std::move(headers), std::move(body), false}, head_only_));
  }

  // What is unread when a socket is closed resets it, and the answer may be lost with it.
  void hang_up() {
    ::shutdown(fd_.get(), SHUT_WR);
    constexpr std::size_t kMost = std::size_t{1} << 20;
    constexpr std::chrono::seconds kPatience{2};
    const auto until = SteadyClock::now() + kPatience;
    std::size_t read = 0;
    while (read < kMost &&
           wait_for_fd(fd_.get(), POLLIN, shared_.closing.get(), until) == Waited::kReady) {
      bytes_.clear();
      if (!receive()) break;
      read += bytes_.size();
    }
    fd_.reset();
  }

  bool has_token(const GatewayHead& head) const {
    constexpr std::string_view kBearer = "Bearer ";
    bool any = false, good = true;
    for (const auto& [name, value] : head.fields) {
      std::string_view said = value;
      if (name == "authorization") {
        if (!said.starts_with(kBearer)) return false;
        said.remove_prefix(kBearer.size());
      } else if (name != "x-api-key" && name != "api-key") {
        continue;
      }
      any = true;
      good = same_bytes(said, shared_.options.token.reveal()) && good;
    }
    return any && good;
  }

  // False: the connection ends.
  bool answer(const GatewayHead& head) {
    using Place = Route::Place;
    const Route route = route_of(head.method, head.target);
    head_only_ = head.method == "HEAD";
    const std::string* agent = find_field(head.fields, "user-agent");
    litellm_ = agent != nullptr && agent->starts_with("litellm/");
    if (!BodyScanner(head.body).done() && route.place != Place::kCall) {  // not worth reading
      other_place(head, route);
      return false;
    }
    if (route.place != Place::kCall) return other_place(head, route);
    if (!has_token(head)) return refuse_token(route.api);
    if (const auto final = shared_.final_word()) return refuse_for_good(route.api, *final);
    if (head.expects_continue && !say("HTTP/1.1 100 Continue\r\n\r\n")) return false;
    std::string body;
    if (!read_body(head, route.api, body)) return false;
    return make_gateway_call({shared_, fd_.get(), head, route.api, body, litellm_, number_});
  }

  bool refuse_token(ModelApi api) {
    shared_.count([](GatewaySums& s) { ++s.wrong_tokens; });
    refuse(api, {Cause::kToken, "not the token of this run"});
    return false;
  }

  // The body is not read: the connection ends with the answer.
  bool refuse_for_good(ModelApi api, const Refusal& final) {
    const auto wait = shared_.refused_again();
    if (0 < wait.count()) wait_for_fd(-1, 0, shared_.closing.get(), SteadyClock::now() + wait);
    refuse(api, final);
    return false;
  }

  bool other_place(const GatewayHead& head, const Route& route) {
    using Place = Route::Place;
    const bool anthropic = find_field(head.fields, "anthropic-version") != nullptr;
    const ModelApi style = anthropic ? ModelApi::kMessages : ModelApi::kChat;
    const MethodGateway& method = shared_.options.method;
    if (route.place == Place::kHealth) return plain(200, "\"ok\"");
    if (route.place == Place::kOptions) return say("HTTP/1.1 204 No Content\r\n\r\n");
    if (route.place == Place::kUnknown) {
      shared_.count([](GatewaySums& s) { ++s.unknown_routes; });
      refuse(style, {Cause::kUnknownRoute,
                     "no such route: this run's gateway has /v1/chat/completions, "
                     "/v1/completions, /v1/responses, /v1/embeddings, /v1/messages, "
                     "/v1/messages/count_tokens and /v1/models"});
      return true;
    }
    if (route.place == Place::kWrongMethod) {
      OwnAnswer no = make_refusal(style, {Cause::kWrongMethod, "this route takes another method"},
                                  false, number_);
      no.headers += "allow: " + std::string(route.allow) + "\r\n";
      return say(to_bytes(no, head_only_));
    }
    if (!has_token(head)) return refuse_token(style);
    if (route.place == Place::kStatus) {
      std::string line = shared_.hooks.status();
      while (line.ends_with('\n')) line.pop_back();
      return plain(200, std::move(line));
    }
    if (route.place == Place::kModels) return plain(200, model_list(style, method.models));
    if (std::ranges::find(method.models, route.model, &GatewayModel::name) != method.models.end())
      return plain(200, model_entry(style, route.model));
    refuse(style, {Cause::kUnknownModel, "this run's model is \"" + method.names("\", \"") + "\""});
    return true;
  }

  bool refuse_body(ModelApi api, Cause cause, const char* why) {
    refuse(api, {cause, why});
    return false;
  }

  // Whole, before it is judged.
  bool read_body(const GatewayHead& head, ModelApi api, std::string& out) {
    const bool chunked = head.body.kind == HttpFraming::Kind::kChunked;
    if (!chunked && bounds().body < head.body.bytes)
      return refuse_body(api, Cause::kTooLarge, "a request of more than 32 MiB");
    if (!chunked && !hold(head.body.bytes))
      return refuse_body(api, Cause::kNotNow, "this run's requests under way are too large");
    const auto until = SteadyClock::now() + bounds().body_time;
    BodyScanner scanner(head.body);
    for (;;) {
      const std::size_t before = out.size();
      const auto used = scanner.feed(bytes_, &out);
      if (!used.ok()) return refuse_body(api, Cause::kGate, "chunks that are none");
      bytes_.erase(0, *used);
      if (bounds().body < out.size())
        return refuse_body(api, Cause::kTooLarge, "a request of more than 32 MiB");
      if (chunked && !hold(out.size() - before))
        return refuse_body(api, Cause::kNotNow, "this run's requests under way are too large");
      if (scanner.done()) return true;
      const Waited waited = wait_for_fd(fd_.get(), POLLIN, shared_.closing.get(), until);
      if (waited == Waited::kTime)
        return refuse_body(api, Cause::kGate, "a body that did not come in time");
      if (waited == Waited::kStopped || !receive()) return false;
    }
  }

  bool hold(std::uint64_t n) {
    if (!shared_.take_bytes(n)) return false;
    held_ += n;
    return true;
  }

  GatewaySession::Shared& shared_;
  UniqueFd fd_;
  std::string bytes_;  // read and not yet used
  std::size_t head_size_ = 0;
  std::uint64_t held_ = 0;    // of the session's memory
  std::uint64_t number_ = 0;  // of the request, among all of the session
  bool head_only_ = false, litellm_ = false;
};
}  // namespace

void serve_gateway_client(GatewaySession::Shared& shared, UniqueFd client) {
  Client(shared, std::move(client)).serve();
}
}  // namespace proctor
