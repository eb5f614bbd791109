#include "coordinator/shell/control_call.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "common/base/owned.h"
#include "coordinator/shell/control_server.h"

namespace proctor {
namespace {

using Clock = std::chrono::steady_clock;

class Call {
 public:
  Call(UniqueFd fd, const ControlPatience& patience, const std::function<void()>& waits)
      : fd_(std::move(fd)), notice_(Clock::now() + patience.notice), waits_(waits) {}

  // False: it is not ready by then.
  bool wait(short events, Clock::time_point until) {
    for (;;) {
      const auto now = Clock::now();
      if (until <= now) return false;
      if (waits_ && notice_ <= now) std::exchange(waits_, nullptr)();
      const auto next = waits_ ? std::min(until, notice_) : until;
      pollfd p{fd_.get(), events, 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
      if (0 < ::poll(&p, 1, static_cast<int>(left))) return true;
    }
  }

  void send(std::string_view bytes, Clock::time_point until) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (0 <= n)
        bytes.remove_prefix(static_cast<std::size_t>(n));
      else if (errno == EAGAIN && !wait(POLLOUT, until))
        return;
      else if (errno != EINTR && errno != EAGAIN)
        return;  // it has said why already, or ended: what it said tells
    }
  }

  // Nothing: no whole line has come by then, or the other end has gone.
  std::optional<std::string> line(Clock::time_point until) {
    for (;;) {
      if (const std::size_t end = in_.find('\n'); end != std::string::npos) {
        std::string out = in_.substr(0, end);
        in_.erase(0, end + 1);
        return out;
      }
      if (ended_ || kControlAnswerBytes < in_.size() || !wait(POLLIN, until)) return std::nullopt;
      read();
    }
  }

  // Nothing that is said from now on is said to us; what was said before is heard.
  std::optional<std::string> hang_up() {
    ::shutdown(fd_.get(), SHUT_RDWR);
    while (read()) {
    }
    ended_ = true;
    return line(Clock::now());
  }

  bool ended() const { return ended_; }

 private:
  // False: there is nothing to read now.
  bool read() {
    std::array<char, 16'384> buffer{};
    const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (0 < n) in_.append(buffer.data(), static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EAGAIN)) ended_ = true;
    return 0 < n;
  }

  UniqueFd fd_;
  Clock::time_point notice_;
  std::function<void()> waits_;
  std::string in_;
  bool ended_ = false;
};

}  // namespace

Result<ControlHeard> call_control(const fs::path& socket, ControlRequest request,
                                  const ControlPatience& patience,
                                  const std::function<void()>& waits) {
  using What = ControlHeard::What;
  request.taken = request.act != kActExplain;
  const std::string question = encode(request);
  if (kControlLineBytes < question.size())
    return Error{Errc::kInvalid, "this is more than " + std::to_string(kControlLineBytes) +
                                     " bytes of words for a coordinator"};
  const auto begun = Clock::now();
  PROCTOR_TRY(const int fd, connect_control(socket));
  Call call(UniqueFd(fd), patience, waits);
  const auto until = begun + patience.taken;
  call.send(question, until);
  std::optional<std::string> line = call.line(until);
  bool ended = call.ended();
  const bool gave_up = !line && !ended;
  if (!line) line = call.hang_up();
  constexpr std::string_view kTaken = kTakenLine.substr(0, kTakenLine.size() - 1);
  const bool taken = line && *line == kTaken;
  if (taken) {
    line = call.line(begun + patience.answered);
    ended = !gave_up && call.ended();
  }
  if (!line) return ControlHeard{taken ? What::kTaken : What::kNothing, {}, ended};
  PROCTOR_TRY(ControlAnswer answer, parse_control_answer(*line));
  return ControlHeard{What::kAnswer, std::move(answer), false};
}

}  // namespace proctor
