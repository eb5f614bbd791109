#include "worker/sandbox/docker_network.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "common/base/log.h"
#include "common/base/net_host.h"
#include "worker/sandbox/docker_config.h"
#include "worker/sandbox/holder_program.h"

namespace proctor {
namespace {

constexpr int kStartMs = 60'000, kAnswerMs = 10'000;

Status readable(int fd, int within_ms, const char* what) {
  pollfd ready{fd, POLLIN, 0};
  int n = 0;
  do n = ::poll(&ready, 1, within_ms);
  while (n < 0 && errno == EINTR);
  if (n == 1) return ok_status();
  return Error{Errc::kUnavailable, std::string("shared network: its holder ") + what};
}

}  // namespace

Result<std::shared_ptr<DockerNetwork>> DockerNetwork::make(const Plan& plan, Owed& owed) {
  // Its destructor undoes whatever of it has been made.
  std::shared_ptr<DockerNetwork> out(new DockerNetwork(DockerApi(plan.socket), owed, plan.dir));
  PROCTOR_CHECK_OK(out->start(plan));
  return out;
}

Status DockerNetwork::start(const Plan& plan) {
  PROCTOR_CHECK_OK(make_dirs(dir_));
  PROCTOR_CHECK_OK(write_file(dir_ / "holder", holder_program(), Durability::kLazy, /*mode=*/0755));
  PROCTOR_TRY(const UniqueFd listener, listen_in(dir_, 1, "shared network"));
  PROCTOR_TRY(const DockerImage image, api_.image(plan.image));
  PROCTOR_TRY(id_, api_.create(holder_config(image, dir_, plan.owner, plan.label)));
  PROCTOR_CHECK_OK(api_.start(id_));
  PROCTOR_CHECK_OK(readable(listener.get(), kStartMs, "does not come"));
  line_.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!line_.valid()) return errno_error("shared network: accept", errno);
  return ok_status();
}

DockerNetwork::~DockerNetwork() {
  line_.reset();
  if (!id_.empty()) {
    if (const Status s = api_.remove(id_); !s.ok()) {
      log::warn("a network's container stays until the engine is back: " + id_ + ": " +
                s.error().detail);
      owed_.add(id_);
    }
  }
  (void)remove_tree(dir_).ok();
}

Result<bool> DockerNetwork::accepts(std::uint16_t port) {
  const std::array<unsigned char, 2> question = {static_cast<unsigned char>(port & 0xFF),
                                                 static_cast<unsigned char>(port >> 8)};
  if (::send(line_.get(), question.data(), question.size(), MSG_NOSIGNAL) != 2)
    return Error{Errc::kUnavailable, "shared network: its holder is gone"};
  PROCTOR_CHECK_OK(readable(line_.get(), kAnswerMs, "does not answer"));
  char answer = 0;
  if (::recv(line_.get(), &answer, 1, 0) != 1)
    return Error{Errc::kUnavailable, "shared network: its holder is gone"};
  return answer == '1';
}

}  // namespace proctor
