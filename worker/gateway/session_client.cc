// One connection of an agent: requests one after the other, each judged before anything of it is
// believed.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/base/text.h"
#include "worker/gateway/gateway_call.h"
#include "worker/gateway/http_gate.h"
#include "worker/gateway/route.h"
#include "worker/gateway/session_shared.h"
#include "worker/gateway/wire_io.h"

namespace proctor {
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
    while ((head_size_ = gateway_head_length(bytes_)) == 0) {
      if (kGatewayHeadBytes <= bytes_.size()) return refuse_head("a head of more than 32 KiB");
      const Waited waited = wait_for_fd(fd_.get(), POLLIN, shared_.closing.get(), until);
      if (waited == Waited::kStopped) return false;
      if (waited == Waited::kTime) return begun ? refuse_head("a head without end") : false;
      if (!receive()) return false;
      if (!begun) until = SteadyClock::now() + bounds().head;
      begun = true;
    }
    if (kGatewayHeadBytes < head_size_) return refuse_head("a head of more than 32 KiB");
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
    const bool has_body = head.body.kind != HttpFraming::Kind::kNone &&
                          !(head.body.kind == HttpFraming::Kind::kLength && head.body.bytes == 0);
    if (has_body && route.place != Place::kCall) {  // not worth reading
      other_place(head, route);
      return false;
    }
    if (route.place != Place::kCall) return other_place(head, route);
    if (!has_token(head)) {
      shared_.count([](GatewaySums& s) { ++s.wrong_tokens; });
      refuse(route.api, {Cause::kToken, "not the token of this run"});
      return false;
    }
    if (const auto final = shared_.final_word()) return refuse_for_good(route.api, *final);
    if (head.expects_continue && !say("HTTP/1.1 100 Continue\r\n\r\n")) return false;
    std::string body;
    if (!read_body(head, route.api, body)) return false;
    return make_gateway_call({shared_, fd_.get(), head, route.api, body, litellm_, number_});
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
    switch (route.place) {
      case Place::kHealth:
        return plain(200, "\"ok\"");
      case Place::kOptions:
        return say("HTTP/1.1 204 No Content\r\n\r\n");
      case Place::kUnknown:
        shared_.count([](GatewaySums& s) { ++s.unknown_routes; });
        refuse(style, {Cause::kUnknownRoute,
                       "no such route: this run's gateway has /v1/chat/completions, "
                       "/v1/completions, /v1/responses, /v1/embeddings, /v1/messages, "
                       "/v1/messages/count_tokens and /v1/models"});
        return true;
      case Place::kWrongMethod: {
        OwnAnswer no = make_refusal(style, {Cause::kWrongMethod, "this route takes another method"},
                                    false, number_);
        no.headers += "allow: " + std::string(route.allow) + "\r\n";
        return say(to_bytes(no, head_only_));
      }
      case Place::kModels:
      case Place::kModel:
      case Place::kStatus:
        break;
      case Place::kCall:
        return false;
    }
    if (!has_token(head)) {
      shared_.count([](GatewaySums& s) { ++s.wrong_tokens; });
      refuse(style, {Cause::kToken, "not the token of this run"});
      return false;
    }
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
    const std::uint64_t most = chunked ? bounds().body : head.body.bytes;
    if (!chunked && !hold(most))
      return refuse_body(api, Cause::kNotNow, "this run's requests under way are too large");
    const auto until = SteadyClock::now() + bounds().body_time;
    ChunkReader chunks;
    for (;;) {
      if (chunked) {
        const std::size_t before = out.size();
        const auto used = chunks.feed(bytes_, out);
        if (!used.ok()) return refuse_body(api, Cause::kGate, "chunks that are none");
        bytes_.erase(0, *used);
        if (most < out.size())
          return refuse_body(api, Cause::kTooLarge, "a request of more than 32 MiB");
        if (!hold(out.size() - before))
          return refuse_body(api, Cause::kNotNow, "this run's requests under way are too large");
        if (chunks.done()) return true;
      } else {
        const std::size_t now =
            std::min(bytes_.size(), static_cast<std::size_t>(most) - out.size());
        out.append(bytes_, 0, now);
        bytes_.erase(0, now);
        if (out.size() == most) return true;
      }
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
