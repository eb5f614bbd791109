#include "tests/bench/gateway/bench_load.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "tests/bench/bench_support.h"
#include "tests/bench/gateway/bench_peers.h"
#include "tests/bench/gateway/bench_wire.h"

namespace proctor::bench {
namespace {

constexpr double kNsInMs = 1e6, kNsInUs = 1e3;

// A conversation of turns of some 2 KiB, the last of which nobody has said before.
std::string body_of(std::size_t bytes, std::uint64_t number, bool stream) {
  constexpr std::size_t kTurn = 2'048, kAround = 160;
  std::string out = R"({"model":"m","max_completion_tokens":100,)";
  if (stream) out += R"("stream":true,)";
  out += R"("messages":[)";
  while (out.size() + kTurn + kAround < bytes)
    out += R"({"role":"user","content":")" + std::string(kTurn, 'y') + R"("},)";
  const std::string last = std::to_string(number) + " ";
  const std::size_t used = out.size() + last.size() + kAround / 4;
  out += R"({"role":"user","content":")" + last;
  out += std::string(used < bytes ? bytes - used : 1, 'z') + "\"}]}";
  return out;
}

std::string request_of(const Target& target, const std::string& body) {
  return fmt::format(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8710\r\nContent-Type: "
      "application/json\r\nUser-Agent: bench/1\r\nAuthorization: Bearer {}\r\nContent-Length: "
      "{}\r\n\r\n{}",
      target.token, body.size(), body);
}

class Connection {
 public:
  explicit Connection(const Target& target) : target_(target) {}

  void send(const std::string& request) {
    pollfd one{fd_.get(), POLLIN | POLLRDHUP, 0};
    if (!fd_.valid() || 0 < ::poll(&one, 1, 0)) {  // it was closed behind an answer
      fd_ = target_.path.empty() ? connect_port(target_.port) : connect_path(target_.path);
      said_.clear();
    }
    if (!send_whole(fd_.get(), request)) give_up("a connection broke");
  }
  void call(const std::string& request) {
    send(request);
    HttpMessage answer;
    if (!read_message(fd_.get(), said_, answer)) give_up("a call was not answered");
    if (!answer.head.starts_with("http/1.1 200"))
      give_up("a call was refused: " + answer.head + "\n" + answer.body);
  }
  // Every event as it comes; it ends with the chunk of no bytes.
  void stream(const std::string& request, Streamed& out) {
    const std::int64_t began = mono_ns();
    send(request);
    std::size_t at = 0;
    bool first = true;
    while (!said_.ends_with("0\r\n\r\n")) {
      if (!receive_more(fd_.get(), said_)) give_up("a stream broke off");
      const std::int64_t now = mono_ns();
      for (std::size_t found = 0; (found = said_.find(kStamp, at)) != std::string::npos;) {
        const std::size_t from = found + std::string_view(kStamp).size();
        if (said_.find(kStampEnd, from) == std::string::npos) break;  // half of it
        const std::int64_t sent = std::strtoll(said_.c_str() + from, nullptr, 10);
        if (std::exchange(first, false))
          out.first_ms.push_back(static_cast<double>(now - began) / kNsInMs);
        else
          out.event_us.push_back(static_cast<double>(now - sent) / kNsInUs);
        at = from;
      }
    }
    if (first) give_up("a stream without events: " + said_);
    said_.clear();
  }

 private:
  const Target& target_;
  UniqueFd fd_;
  std::string said_;
};

std::atomic<std::uint64_t> told{0};  // requests of this process: no two are equal

void sleep_until_ns(std::int64_t at) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec until{at / kSecond, at % kSecond};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

// On so many threads at once, each with a connection of its own.
template <class Work>
void on_connections(const Target& target, Work work) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kConnections; ++i)
    threads.emplace_back([&target, &work, i] {
      ::prctl(PR_SET_TIMERSLACK, 1);  // awake when it is time
      Connection connection(target);
      work(connection, i);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

std::vector<double> calls_at_rate(const Target& target, std::size_t bytes, double per_s,
                                  double seconds) {
  const auto calls = static_cast<std::uint64_t>(per_s * seconds);
  constexpr std::int64_t kStart = 20'000'000;
  const std::int64_t begin = mono_ns() + kStart;
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::vector<double> out;
  on_connections(target, [&](Connection& connection, std::size_t) {
    std::vector<double> own;
    for (std::uint64_t i = 0; (i = next++) < calls;) {
      const std::string request = request_of(target, body_of(bytes, ++told, false));
      const std::int64_t at =
          begin + static_cast<std::int64_t>(static_cast<double>(i) * 1e9 / per_s);
      sleep_until_ns(at);
      connection.call(request);
      own.push_back(static_cast<double>(mono_ns() - at) / kNsInMs);
    }
    const std::lock_guard lock(mutex);
    out.insert(out.end(), own.begin(), own.end());
  });
  std::ranges::sort(out);
  return out;
}

double calls_at_will(const Target& target, std::size_t bytes, double seconds) {
  const std::int64_t began = mono_ns();
  std::atomic<std::uint64_t> calls{0};
  on_connections(target, [&](Connection& connection, std::size_t) {
    for (; seconds_since(began) < seconds; ++calls)
      connection.call(request_of(target, body_of(bytes, ++told, false)));
  });
  return static_cast<double>(calls.load()) / seconds_since(began);
}

Streamed streams(const Target& target) {
  Streamed out;
  std::mutex mutex;
  on_connections(target, [&](Connection& connection, std::size_t index) {
    // Not all at the same moment.
    std::this_thread::sleep_for(std::chrono::milliseconds(index));
    Streamed own;
    connection.stream(request_of(target, body_of(kSmall, ++told, true)), own);
    const std::lock_guard lock(mutex);
    out.first_ms.insert(out.first_ms.end(), own.first_ms.begin(), own.first_ms.end());
    out.event_us.insert(out.event_us.end(), own.event_us.begin(), own.event_us.end());
  });
  std::ranges::sort(out.first_ms);
  std::ranges::sort(out.event_us);
  return out;
}

double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) give_up("nothing was measured");
  const auto at = static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1));
  return sorted[at];
}

}  // namespace proctor::bench
