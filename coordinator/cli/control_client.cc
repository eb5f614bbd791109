#include "coordinator/cli/control_client.h"

#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "common/base/text.h"
#include "common/base/unique_fd.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/journal/journal.h"
#include "coordinator/shell/control_server.h"

namespace proctor::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kWait(75);  // longer than the server lets a question lie

Error silent(const std::string& what) {
  return {Errc::kUnavailable, "the coordinator " + what};
}

Status wait_for(int fd, short events, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return silent("does not answer");
    pollfd p{fd, events, 0};
    const int n = ::poll(&p, 1, static_cast<int>(left));
    if (n > 0) return ok_status();
    if (n < 0 && errno != EINTR) return errno_error("poll", errno);
  }
}

Status send_all(int fd, std::string_view bytes, Clock::time_point until) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      PROCTOR_CHECK_OK(wait_for(fd, POLLOUT, until));
    } else if (errno != EINTR) {
      return ok_status();  // it has said why already, or ended: the answer tells
    }
  }
  return ok_status();
}

Result<std::string> read_line(int fd, Clock::time_point until) {
  std::string in;
  std::array<char, 16'384> buffer{};
  while (in.find('\n') == std::string::npos) {
    if (kControlAnswerBytes < in.size()) return silent("answers with too much");
    PROCTOR_CHECK_OK(wait_for(fd, POLLIN, until));
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n > 0) in.append(buffer.data(), static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
      return silent("ended before it answered: proctor status says where the campaign stands");
  }
  in.resize(in.find('\n'));
  return in;
}

}  // namespace

Result<std::optional<ControlAnswer>> ask_coordinator(const StateFolder& folder,
                                                     const ControlRequest& request) {
  const std::string line = encode(request);
  if (kControlLineBytes < line.size())
    return Error{Errc::kInvalid, "this is more than " + std::to_string(kControlLineBytes) +
                                     " bytes of words for a coordinator"};
  const auto until = Clock::now() + kWait;
  const Result<int> connected = connect_control(folder.control());
  if (!connected.ok()) {
    const auto owner = journal_owner(folder.journal(), kJournalPatience);
    if (!owner) return std::optional<ControlAnswer>();
    return Error{Errc::kUnavailable,
                 connected.error().detail + ", but the campaign is in use: " + *owner};
  }
  const UniqueFd fd(*connected);
  PROCTOR_CHECK_OK(send_all(fd.get(), line, until));
  PROCTOR_TRY(const std::string answer, read_line(fd.get(), until));
  PROCTOR_TRY(ControlAnswer parsed, parse_control_answer(answer));
  return std::optional<ControlAnswer>(std::move(parsed));
}

std::string user_name() {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
      found != nullptr && *found->pw_name != '\0')
    return found->pw_name;
  return "uid " + std::to_string(::geteuid());
}

Result<StateFolder> campaign_folder(const std::string& folder) {
  std::error_code ec;
  const fs::path absolute = fs::canonical(folder, ec);
  if (ec || !fs::exists(absolute / "campaign.yaml", ec)) return no_campaign(folder);
  return StateFolder{absolute};
}

}  // namespace proctor::cli
