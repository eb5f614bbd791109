#include "tests/support/provider_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "common/base/owned.h"
#include "tests/support/json_tools.h"

namespace proctor::testing {
namespace {

void need(bool fine, const char* what) {
  if (!fine) throw std::runtime_error(what);
}

std::size_t length_in(const std::string& head) {
  std::string lower = head;
  for (char& c : lower)
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const std::size_t at = lower.find("content-length:");
  return at == std::string::npos ? 0 : std::stoul(lower.substr(at + 15));
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void wake(int fd) {
  const std::uint64_t one = 1;
  (void)!::write(fd, &one, sizeof one);
}

std::string event(const std::string& name, const Json& data) {
  return (name.empty() ? "" : "event: " + name + "\n") + "data: " + data.dump() + "\n\n";
}

ProviderSays stream_of(std::vector<std::string> pieces) {
  ProviderSays out;
  out.content_type = "text/event-stream";
  out.pieces = std::move(pieces);
  return out;
}

}  // namespace

ProviderSays chat_answer(const std::string& text, std::uint64_t input, std::uint64_t output) {
  ProviderSays out;
  out.body = Json{{"id", "c1"},
                  {"object", "chat.completion"},
                  {"created", 1},
                  {"model", "provider-model"},
                  {"choices",
                   {{{"index", 0},
                     {"finish_reason", "stop"},
                     {"message", {{"role", "assistant"}, {"content", text}}}}}},
                  {"usage",
                   {{"prompt_tokens", input},
                    {"completion_tokens", output},
                    {"total_tokens", input + output}}}}
                 .dump();
  return out;
}

ProviderSays messages_answer(const std::string& text, std::uint64_t input, std::uint64_t output) {
  ProviderSays out;
  out.body = Json{{"id", "msg_1"},
                  {"type", "message"},
                  {"role", "assistant"},
                  {"model", "provider-model"},
                  {"content", {{{"type", "text"}, {"text", text}}}},
                  {"stop_reason", "end_turn"},
                  {"stop_sequence", nullptr},
                  {"usage", {{"input_tokens", input}, {"output_tokens", output}}}}
                 .dump();
  return out;
}

ProviderSays responses_answer(const std::string& text, std::uint64_t input, std::uint64_t output) {
  ProviderSays out;
  out.body =
      Json{{"id", "resp_1"},
           {"object", "response"},
           {"created_at", 1},
           {"model", "provider-model"},
           {"status", "completed"},
           {"parallel_tool_calls", true},
           {"tool_choice", "auto"},
           {"tools", Json::array()},
           {"output",
            {{{"type", "message"},
              {"id", "m1"},
              {"role", "assistant"},
              {"status", "completed"},
              {"content",
               {{{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}}}}}}},
           {"usage",
            {{"input_tokens", input},
             {"input_tokens_details", {{"cached_tokens", 0}}},
             {"output_tokens", output},
             {"output_tokens_details", {{"reasoning_tokens", 0}}},
             {"total_tokens", input + output}}}}
          .dump();
  return out;
}

ProviderSays chat_stream(const std::string& text, std::uint64_t input, std::uint64_t output) {
  std::vector<std::string> pieces;
  const auto chunk = [&](const Json& choices, const Json& usage) {
    pieces.push_back(event("", {{"id", "c1"},
                                {"object", "chat.completion.chunk"},
                                {"created", 1},
                                {"model", "provider-model"},
                                {"choices", choices},
                                {"usage", usage}}));
  };
  for (const char c : text)
    chunk({{{"index", 0}, {"delta", {{"content", std::string(1, c)}}}, {"finish_reason", nullptr}}},
          nullptr);
  chunk({{{"index", 0}, {"delta", Json::object()}, {"finish_reason", "stop"}}}, nullptr);
  chunk(
      Json::array(),
      {{"prompt_tokens", input}, {"completion_tokens", output}, {"total_tokens", input + output}});
  pieces.emplace_back("data: [DONE]\n\n");
  return stream_of(std::move(pieces));
}

ProviderSays messages_stream(const std::string& text, std::uint64_t input, std::uint64_t output) {
  std::vector<std::string> pieces;
  pieces.push_back(event("message_start", {{"type", "message_start"},
                                           {"message",
                                            {{"id", "msg_1"},
                                             {"type", "message"},
                                             {"role", "assistant"},
                                             {"model", "provider-model"},
                                             {"content", Json::array()},
                                             {"stop_reason", nullptr},
                                             {"usage",
                                              {{"input_tokens", input},
                                               {"cache_creation_input_tokens", 0},
                                               {"cache_read_input_tokens", 0},
                                               {"output_tokens", 1}}}}}}));
  pieces.push_back(
      event("content_block_start", {{"type", "content_block_start"},
                                    {"index", 0},
                                    {"content_block", {{"type", "text"}, {"text", ""}}}}));
  for (const char c : text)
    pieces.push_back(event("content_block_delta",
                           {{"type", "content_block_delta"},
                            {"index", 0},
                            {"delta", {{"type", "text_delta"}, {"text", std::string(1, c)}}}}));
  pieces.push_back(event("content_block_stop", {{"type", "content_block_stop"}, {"index", 0}}));
  pieces.push_back(
      event("message_delta", {{"type", "message_delta"},
                              {"delta", {{"stop_reason", "end_turn"}, {"stop_sequence", nullptr}}},
                              {"usage", {{"output_tokens", output}}}}));
  pieces.push_back(event("message_stop", {{"type", "message_stop"}}));
  return stream_of(std::move(pieces));
}

ProviderSays responses_stream(const std::string& text, std::uint64_t input, std::uint64_t output) {
  const Json whole = read_json(responses_answer(text, input, output).body);
  std::vector<std::string> pieces;
  Json begun = whole;
  begun["status"] = "in_progress";
  begun["output"] = Json::array();
  begun["usage"] = nullptr;
  int number = 0;
  const auto add = [&](const std::string& type, Json data) {
    data["type"] = type;
    data["sequence_number"] = number++;
    pieces.push_back(event(type, data));
  };
  add("response.created", {{"response", begun}});
  Json item = whole["output"][0];
  item["content"] = Json::array();
  add("response.output_item.added", {{"output_index", 0}, {"item", item}});
  for (const char c : text)
    add("response.output_text.delta", {{"item_id", "m1"},
                                       {"output_index", 0},
                                       {"content_index", 0},
                                       {"delta", std::string(1, c)}});
  add("response.output_item.done", {{"output_index", 0}, {"item", whole["output"][0]}});
  add("response.completed", {{"response", whole}});
  return stream_of(std::move(pieces));
}

struct ProviderServer::Impl {
  Script script;
  UniqueFd listener, stop, released;
  std::uint16_t port = 0;
  mutable std::mutex mutex;
  std::vector<Heard> heard;
  std::atomic<std::size_t> pieces = 0;
  std::list<std::jthread> clients;
  std::jthread thread;

  void run() {
    for (;;) {
      std::array<pollfd, 2> fds{{{stop.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}}};
      ::poll(fds.data(), fds.size(), -1);
      if (fds[0].revents != 0) return;
      UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      clients.emplace_back([this, client = std::move(fd)] {
        std::string said;
        while (serve(client.get(), said)) {
        }
      });
    }
  }

  // Waits for bytes; false when the client or the server goes.
  bool receive(int fd, std::string& said) const {
    std::array<pollfd, 2> fds{{{stop.get(), POLLIN, 0}, {fd, POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), -1);
    if (fds[0].revents != 0) return false;
    std::array<char, 65536> buffer;  // NOLINT: filled by recv
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (0 < n) said.append(buffer.data(), static_cast<std::size_t>(n));
    return 0 < n;
  }

  bool serve(int fd, std::string& said) {
    std::size_t head = std::string::npos;
    while ((head = said.find("\r\n\r\n")) == std::string::npos ||
           said.size() < head + 4 + length_in(said.substr(0, head)))
      if (!receive(fd, said)) return false;
    Heard request;
    request.head = said.substr(0, head);
    const std::size_t from = request.head.find(' ') + 1;
    request.path = request.head.substr(from, request.head.find(' ', from) - from);
    request.raw = said.substr(head + 4, length_in(request.head));
    request.body = json_or_null(request.raw);
    said.erase(0, head + 4 + request.raw.size());
    std::size_t call = 0;
    {
      const std::lock_guard lock(mutex);
      call = heard.size();
      heard.push_back(request);
    }
    return answer(fd, script(request, call));
  }

  // Until release(), or the client or the server goes: false.
  bool hang(int fd) const {
    std::array<pollfd, 3> fds{
        {{stop.get(), POLLIN, 0}, {released.get(), POLLIN, 0}, {fd, POLLIN | POLLRDHUP, 0}}};
    ::poll(fds.data(), fds.size(), -1);
    return fds[0].revents == 0 && fds[1].revents != 0;
  }

  bool answer(int fd, const ProviderSays& a) {
    using Then = ProviderSays::Then;
    if (a.then == Then::kCloseFirst) return false;
    if (a.then == Then::kHangFirst && !hang(fd)) return false;
    const bool streams = !a.pieces.empty();
    const std::string framing =
        streams ? "Transfer-Encoding: chunked" : "Content-Length: " + std::to_string(a.body.size());
    if (!send_all(fd, fmt::format("HTTP/1.1 {} X\r\nContent-Type: {}\r\n{}{}\r\n\r\n", a.status,
                                  a.content_type, a.headers, framing)))
      return false;
    if (!streams && !send_all(fd, a.body)) return false;
    for (const std::string& piece : a.pieces) {
      if (!send_all(fd, fmt::format("{:x}\r\n{}\r\n", piece.size(), piece))) return false;
      ++pieces;
    }
    if (a.then == Then::kHang && !hang(fd)) return false;
    if (a.then == Then::kClose) return false;
    return !streams || send_all(fd, "0\r\n\r\n");
  }
};

ProviderServer::ProviderServer(Script script) : impl_(std::make_unique<Impl>()) {
  Impl& i = *impl_;
  i.script = std::move(script);
  i.listener.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  i.stop.reset(::eventfd(0, EFD_CLOEXEC));
  i.released.reset(::eventfd(0, EFD_CLOEXEC));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  need(::bind(i.listener.get(), address, size) == 0, "bind");
  constexpr int kBacklog = 128;
  need(::listen(i.listener.get(), kBacklog) == 0, "listen");
  need(::getsockname(i.listener.get(), address, &size) == 0, "getsockname");
  i.port = ntohs(at.sin_port);
  i.thread = std::jthread([&i] { i.run(); });
}

ProviderServer::~ProviderServer() {
  wake(impl_->stop.get());
  impl_->thread.join();
  impl_->clients.clear();
}

std::string ProviderServer::at() const {
  return "http://127.0.0.1:" + std::to_string(impl_->port);
}

std::string ProviderServer::url() const {
  return at() + "/v1";
}

std::vector<ProviderServer::Heard> ProviderServer::heard() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->heard;
}

void ProviderServer::release() {
  wake(impl_->released.get());
}

std::size_t ProviderServer::pieces() const {
  return impl_->pieces;
}

}  // namespace proctor::testing
