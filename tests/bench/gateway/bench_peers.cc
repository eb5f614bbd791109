#include "tests/bench/gateway/bench_peers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/bench/bench_support.h"
#include "tests/bench/gateway/bench_wire.h"

namespace proctor::bench {
namespace {

constexpr int kBacklog = 512;

std::string padding(std::size_t bytes) {
  return std::string(bytes, 'x');
}

// As a chat endpoint answers: some 1 KiB, or 4 KiB to a long request.
std::string whole_answer(std::size_t asked) {
  constexpr std::size_t kLong = 8'192, kSmallText = 700, kLargeText = 3'700;
  const std::string body = fmt::format(
      R"({{"id":"c1","object":"chat.completion","created":1,"model":"provider-model","choices":[{{"index":0,"finish_reason":"stop","message":{{"role":"assistant","content":"{}"}}}}],"usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{}}}}})",
      padding(asked < kLong ? kSmallText : kLargeText), kBilledInput, kBilledOutput,
      kBilledInput + kBilledOutput);
  return fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
}

bool say_chunk(int fd, const std::string& data) {
  const std::string event = "data: " + data + "\n\n";
  return send_whole(fd, fmt::format("{:x}\r\n{}\r\n", event.size(), event));
}

bool say_stream(int fd) {
  if (!send_whole(fd,
                  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n"))
    return false;
  for (int i = 0; i < kStreamEvents; ++i) {
    if (0 < i) std::this_thread::sleep_for(std::chrono::milliseconds(kStreamEventMs));
    if (!say_chunk(
            fd,
            fmt::format(
                R"({{"id":"c1","object":"chat.completion.chunk","created":1,"model":"provider-model","choices":[{{"index":0,"delta":{{"content":"{}{}{}{}"}}}}]}})",
                kStamp, mono_ns(), kStampEnd, padding(20))))
      return false;
  }
  const std::string usage = fmt::format(
      R"({{"id":"c1","object":"chat.completion.chunk","created":1,"model":"provider-model","choices":[],"usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{}}}}})",
      kBilledInput, kBilledOutput, kBilledInput + kBilledOutput);
  return say_chunk(fd, usage) && say_chunk(fd, "[DONE]") && send_whole(fd, "0\r\n\r\n");
}

void serve(int fd, std::atomic<std::uint64_t>& calls) {
  std::string said;
  HttpMessage request;
  while (read_message(fd, said, request)) {
    ++calls;
    const bool streams = request.body.find("\"stream\":true") != std::string::npos;
    if (!(streams ? say_stream(fd) : send_whole(fd, whole_answer(request.body.size())))) return;
  }
}

void relay(int client, std::uint16_t port) {
  const UniqueFd provider = connect_port(port);
  std::array<char, 65536> buffer;  // NOLINT: filled by recv
  std::array<pollfd, 2> ends{{{client, POLLIN, 0}, {provider.get(), POLLIN, 0}}};
  for (;;) {
    if (::poll(ends.data(), ends.size(), -1) < 0) return;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].revents == 0) continue;
      const ssize_t n = ::recv(ends[i].fd, buffer.data(), buffer.size(), 0);
      if (n <= 0 || !send_whole(ends[1 - i].fd, {buffer.data(), static_cast<std::size_t>(n)}))
        return;
    }
  }
}

// For ever, each on a thread of its own.
template <class Serve>
void accept_all(int listener, Serve serve) {
  for (;;) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const int yes = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);  // a Unix socket has none
    std::thread([own = UniqueFd(fd), serve] { serve(own.get()); }).detach();
  }
}

// Its port is one that is free.
std::pair<int, std::uint16_t> listen_at_port() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (::bind(listener, address, size) != 0 || ::listen(listener, kBacklog) != 0 ||
      ::getsockname(listener, address, &size) != 0)
    give_up("nothing can listen");
  return {listener, ntohs(at.sin_port)};
}

bool is_alive(std::uint16_t port) {
  const UniqueFd fd = try_port(port);
  std::string said;
  HttpMessage answer;
  return fd.valid() &&
         send_whole(fd.get(), "GET /health/liveliness HTTP/1.1\r\nHost: localhost\r\n\r\n") &&
         read_message(fd.get(), said, answer) && answer.head.starts_with("http/1.1 200");
}

}  // namespace

void be_provider(const Line& line) {
  static std::atomic<std::uint64_t> calls{0};  // threads outlive this function by a moment
  const auto [listener, port] = listen_at_port();
  std::thread([at = listener] { accept_all(at, [](int fd) { serve(fd, calls); }); }).detach();
  line.say(std::to_string(port));
  while (!line.hear().empty()) line.say(std::to_string(calls.load()));
}

void be_litellm(const Line& line, const std::string& program, std::uint16_t provider_port) {
  const auto [listener, port] = listen_at_port();
  ::close(listener);
  const std::string base = fmt::format("http://127.0.0.1:{}/v1", provider_port);
  const std::string at = std::to_string(port);
  ::setenv("LITELLM_MASTER_KEY", kProxyToken, 1);
  ::setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True", 1);
  ::setenv("OPENAI_API_KEY", "tok", 1);
  const pid_t bench = ::getpid(), waits = ::fork();
  if (waits != 0) {  // the bench measures this process
    const int nothing = ::open("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2}) ::dup2(nothing, fd);
    ::execl(program.c_str(), "litellm", "--host", "127.0.0.1", "--port", at.c_str(), "--model",
            "openai/m", "--alias", "m", "--api_base", base.c_str(), "--num_workers", "1", nullptr);
    ::_exit(1);
  }
  while (::getppid() == bench && !is_alive(port))
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  if (::getppid() == bench) line.say(at);
}

void be_relay(const Line& line, const std::string& path, std::uint16_t port) {
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un at = unix_address(path);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      ::listen(listener, kBacklog) != 0)
    give_up("the relay cannot listen");
  std::thread([listener, port] {
    accept_all(listener, [port](int fd) { relay(fd, port); });
  }).detach();
  line.say("listens");
  while (!line.hear().empty()) line.say("relays");
}

}  // namespace proctor::bench
