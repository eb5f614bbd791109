#pragma once
// Sockets with a descriptor that ends every wait, and a server with a thread for each connection.
// Blocking; any thread.
#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "common/base/files.h"
#include "common/base/net_host.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {
using SteadyClock = std::chrono::steady_clock;

// A descriptor that is readable from wake() on.  kUnavailable, beginning with `what`.
Result<UniqueFd> new_signal(const std::string& what);
void wake(int signal);

enum class Waited { kReady, kTime, kStopped };
// Until `fd` is ready for `events`, `until` has come, or `stop` (a descriptor) is readable.
Waited wait_for_fd(int fd, short events, int stop, SteadyClock::time_point until);

enum class Wrote { kAll, kGone, kStopped };
// The rest is not written to a peer that takes nothing for `idle`: it is as good as gone.
Wrote write_all(int fd, std::string_view bytes, int stop, std::chrono::milliseconds idle);

// A connection over TCP.  kUnavailable: "no connection in time", else `what` and the host's words.
Result<UniqueFd> connect_to_address(const IpAddress& address, std::uint16_t port, int stop,
                                    SteadyClock::time_point until, std::string_view what);

// A Unix socket in a folder of its own, one thread that accepts and one for each connection.
class SocketServer {
 public:
  using Serve = std::function<void(UniqueFd client)>;
  // Makes `dir`/socket.  At most `connections` at a time; others wait.
  static Result<std::unique_ptr<SocketServer>> open(const fs::path& dir, std::size_t connections,
                                                    const std::string& what);
  SocketServer(const SocketServer&) = delete;
  SocketServer& operator=(const SocketServer&) = delete;
  // Joins all threads.  Requires, after start(): `stop` is readable.
  ~SocketServer() = default;

  // Until `stop` is readable; then `serve`, which is called on the connections' threads without
  // SIGPIPE, ends soon, too.
  void start(int stop, Serve serve);

 private:
  struct Client {
    std::atomic<bool> ended = false;
    std::jthread thread;
  };
  SocketServer(UniqueFd listener, UniqueFd news, std::size_t connections)
      : listener_(std::move(listener)), news_(std::move(news)), connections_(connections) {}
  void run(int stop);
  void accept_one();

  UniqueFd listener_, news_;  // news: a client has ended
  const std::size_t connections_;
  Serve serve_;
  std::list<Client> clients_;  // of the accepting thread alone
  std::jthread thread_;        // last: it uses the others
};
}  // namespace proctor
