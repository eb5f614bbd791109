#pragma once
// A gateway's session with a meter of its own, against a provider of ours, and a client that says
// whatever bytes it likes.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "common/base/owned.h"
#include "common/base/system_clock.h"
#include "common/contract/cost_model_parser.h"
#include "tests/support/json_tools.h"
#include "tests/support/provider_server.h"
#include "worker/gateway/cassette.h"
#include "worker/gateway/gateway_session.h"

namespace proctor::testing {

inline constexpr const char* kToken = "prk1_test";
inline constexpr const char* kProviderKey = "sk-the-operators-own";

// 1 micro-dollar for a token of input, 10 for one of output.
inline constexpr const char* kPrices =
    "action_type,unit,unit_price,provider,model\n"
    "llm_request,input_token,0.000001,acme,m\nllm_request,output_token,0.00001,acme,m\n";

struct HttpAnswer {
  int status = 0;
  std::string head, body;
  bool whole = false;
  Json json() const { return json_or_null(body); }
};

class SessionScene {
 public:
  // What no test is about does not end one where all is ten times slower.
  static GatewayBounds patient() {
    constexpr std::chrono::minutes kLong{10};
    GatewayBounds out;
    out.head = out.body_time = out.keep_alive = kLong;
    out.wait = out.client_idle = out.connect = kLong;
    return out;
  }
  struct Shape {
    std::int64_t micros = 1'000'000;
    MethodGateway::As as = MethodGateway::As::kOpenai;
    std::vector<GatewayModel> models{{"m", "acme", {}, {}}};
    ModelAccess access{};
    GatewayBounds bounds = patient();
    Caps caps{};
    std::string prices = kPrices;
    std::string url{};  // of another provider than the scene's
    std::shared_ptr<CassettePlayer> player{};
    std::shared_ptr<const Redactor> redactor{};
    Breakers breakers{};
    ProviderStreak::Rule streak{};
    std::function<std::optional<WorkspaceLook>()> look{};
    std::function<void()> cover{};
    std::function<void(std::uint64_t call, std::string_view answer)> answered{};
  };

  SessionScene(const Shape& shape, ProviderServer::Script script)
      : provider_(std::move(script)),
        dir_(TempDir::create("gateway").value()),
        meter_(plan(shape)),
        pool_(shape.streak) {
    key_file_ = dir_.path() / "key";
    REQUIRE(write_file(key_file_, std::string(kProviderKey) + "\n").ok());
    REQUIRE(make_dirs(dir_.path() / "gw").ok());
    GatewayOptions options;
    options.method.models = shape.models;
    options.method.as = shape.as;
    ModelAccess access = shape.access;
    access.api = {ModelApi::kChat,       ModelApi::kCompletions, ModelApi::kResponses,
                  ModelApi::kEmbeddings, ModelApi::kMessages,    ModelApi::kCountTokens};
    access.url = shape.as == MethodGateway::As::kAnthropic ? provider_.at() : provider_.url();
    if (!shape.url.empty()) access.url = shape.url;
    access.send_as = "provider-model";
    access.hidden_input = 0;
    if (access.key_file.empty()) access.key_file = key_file_;
    options.token = Secret(kToken);
    options.ids = "gw-0-";
    options.bounds = shape.bounds;
    if (shape.player) access.cassette = "calls";
    if (shape.player) options.players["calls"] = shape.player;
    for (const GatewayModel& m : shape.models) options.models[m.name] = access;
    // Each of several is asked for by its own name.
    if (1 < shape.models.size())
      for (auto& [name, of] : options.models) of.send_as.clear();
    options.redactor = shape.redactor;
    options.method.breakers = shape.breakers;
    GatewayHooks hooks;
    hooks.meter = [this](const GatewayOperation& o) { return act(o); };
    hooks.status = [] { return std::string("{\"answer\":\"status\"}\n"); };
    hooks.count = [this](const CallCounts& seen) {
      const std::lock_guard lock(meter_mutex_);
      meter_.count_calls(seen);
    };
    hooks.note = [this](std::string_view type, GatewayHooks::By, const Json& payload) {
      const std::lock_guard lock(mutex_);
      events_.emplace_back(type, payload);
      return std::uint64_t{events_.size()};
    };
    hooks.cap_reached = [](std::uint64_t) {};
    hooks.look = shape.look;
    hooks.cover = shape.cover;
    hooks.answered = shape.answered;
    hooks.stop = [this](std::string_view cap, const std::string& why, std::uint64_t) {
      const std::lock_guard lock(meter_mutex_);
      meter_.order_stop(std::string(cap), why);
    };
    hooks.keep = [this](const std::string& digest, std::string_view bytes) {
      const std::lock_guard lock(mutex_);
      kept_[digest] = bytes;
      return true;
    };
    auto session = GatewaySession::open(dir_.path() / "gw", std::move(options), hooks, pool_);
    if (!session.ok()) FAIL(session.error().detail);
    session_ = std::move(session).value();
  }

  ProviderServer& provider() { return provider_; }
  const fs::path& key_file() const { return key_file_; }
  void close() { session_->close(); }
  ModelLack lack() const { return session_->lack(); }

  UniqueFd connect() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    const std::string path = (dir_.path() / "gw/socket").string();
    REQUIRE(path.size() < sizeof at.sun_path);
    std::memcpy(at.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    return fd;
  }
  static void say(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  // Until the answer is whole or the connection ends.
  static HttpAnswer read(int fd) {
    HttpAnswer out;
    std::string bytes;
    const auto more = [&] {
      pollfd one{fd, POLLIN, 0};
      if (::poll(&one, 1, 300'000) <= 0) return false;
      char buffer[4096];
      const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
      if (0 < n) bytes.append(buffer, static_cast<std::size_t>(n));
      return 0 < n;
    };
    std::size_t head = 0;
    while ((head = bytes.find("\r\n\r\n")) == std::string::npos)
      if (!more()) return out;
    out.head = bytes.substr(0, head + 2);
    out.status = std::stoi(out.head.substr(9, 3));
    bytes.erase(0, head + 4);
    if (out.head.find("transfer-encoding: chunked") != std::string::npos) {
      while (bytes.find("0\r\n\r\n") == std::string::npos)
        if (!more()) break;
      out.whole = bytes.ends_with("0\r\n\r\n");
      for (std::size_t at = 0; at < bytes.size();) {  // chunks
        const std::size_t end = bytes.find("\r\n", at);
        if (end == std::string::npos) break;
        const std::size_t size = std::stoul(bytes.substr(at, end - at), nullptr, 16);
        out.body += bytes.substr(end + 2, size);
        if (size == 0) break;
        at = end + 2 + size + 2;
      }
      return out;
    }
    const std::size_t at = out.head.find("content-length: ");
    const std::size_t length = at == std::string::npos ? 0 : std::stoul(out.head.substr(at + 16));
    while (bytes.size() < length)
      if (!more()) break;
    out.whole = bytes.size() == length;
    out.body = bytes;
    return out;
  }
  static std::string request(const std::string& path, const std::string& body,
                             const std::string& token = kToken) {
    return "POST " + path +
           " HTTP/1.1\r\nHost: 127.0.0.1:8710\r\nContent-Type: application/json\r\n"
           "User-Agent: test/1\r\nAuthorization: Bearer " +
           token + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  HttpAnswer ask(const std::string& path, const std::string& body,
                 const std::string& token = kToken) const {
    const UniqueFd fd = connect();
    say(fd.get(), request(path, body, token));
    return read(fd.get());
  }
  HttpAnswer raw(const std::string& bytes) const {
    const UniqueFd fd = connect();
    say(fd.get(), bytes);
    return read(fd.get());
  }

  // ---- what came of it
  std::int64_t spent() {
    const std::lock_guard lock(meter_mutex_);
    return meter_.spent().micros();
  }
  std::int64_t held() {
    const std::lock_guard lock(meter_mutex_);
    return meter_.held().micros();
  }
  Usage usage() {
    const std::lock_guard lock(meter_mutex_);
    return meter_.usage();
  }
  std::map<std::string, std::string> kept() {
    const std::lock_guard lock(mutex_);
    return kept_;
  }
  std::optional<MeterStop> stop() {
    const std::lock_guard lock(meter_mutex_);
    return meter_.stop();
  }
  bool stopped() { return stop().has_value(); }
  // The event of an answer follows the answer.
  std::vector<Json> events(const std::string& type) {
    if (type == "model.response")
      eventually([&] { return count("model.response") == count("model.request"); });
    const std::lock_guard lock(mutex_);
    std::vector<Json> out;
    for (const auto& [name, payload] : events_)
      if (name == type) out.push_back(payload);
    return out;
  }
  std::vector<std::pair<std::string, Json>> all_events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  std::string all_evidence() {
    const std::lock_guard lock(mutex_);
    std::string out;
    for (const auto& [name, payload] : events_) out += name + payload.dump() + "\n";
    for (const auto& [digest, bytes] : kept_) out += bytes + "\n";
    return out;
  }

  static bool eventually(const std::function<bool()>& asked) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(180);
    while (!asked()) {
      if (until < std::chrono::steady_clock::now()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

 private:
  std::size_t count(const std::string& type) {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::ranges::count_if(events_, [&](const auto& e) { return e.first == type; }));
  }
  static MeterPlan plan(const Shape& shape) {
    Diagnostics out;
    MeterPlan p;
    p.prices = parse_cost_model(shape.prices, "p.csv", out);
    REQUIRE(out.text() == "");
    p.ask = MicroUsd::from_micros(shape.micros);
    p.caps = shape.caps;
    return p;
  }
  Result<MeterAnswer> act(const GatewayOperation& operation) {
    const std::lock_guard lock(meter_mutex_);
    if (const auto* fit = std::get_if<MeterFit>(&operation)) return meter_.fit(*fit, mono_now());
    if (const auto* charge = std::get_if<MeterCharge>(&operation)) return meter_.charge(*charge);
    return meter_.release(std::get<MeterRelease>(operation));
  }

  ProviderServer provider_;
  TempDir dir_;
  fs::path key_file_;
  std::mutex meter_mutex_, mutex_;
  RunMeter meter_;
  std::vector<std::pair<std::string, Json>> events_;
  std::map<std::string, std::string> kept_;
  ProviderPool pool_;
  std::unique_ptr<GatewaySession> session_;
};

inline const std::string kChat = "/v1/chat/completions";
inline std::string chat(std::uint64_t limit, const std::string& more = "") {
  return R"({"model":"m","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":)" +
         std::to_string(limit) + more + "}";
}

}  // namespace proctor::testing
