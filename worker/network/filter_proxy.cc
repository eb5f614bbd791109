#include "worker/network/filter_proxy.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>

#include "common/base/net_host.h"
#include "worker/network/proxy_connection.h"

namespace proctor {
namespace {

constexpr int kUnavailable = 503;

void wake(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(fd, &one, sizeof one);
}

}  // namespace

struct FilterProxy::Impl {
  struct Client {
    std::atomic<bool> ended = false;
    std::jthread thread;
  };

  Impl(AllowList l, Options o, OnRecord r, UniqueFd s, UniqueFd w, UniqueFd e)
      : list(std::move(l)),
        options(std::move(o)),
        on_record(std::move(r)),
        listener(std::move(s)),
        stop(std::move(w)),
        news(std::move(e)) {}

  AllowList list;
  Options options;
  OnRecord on_record;
  std::mutex recording;
  UniqueFd listener;
  UniqueFd stop;  // readable from the end on
  UniqueFd news;  // a client has ended
  std::atomic<std::uint64_t> bytes = 0;
  std::uint64_t requests = 0;
  std::list<Client> clients;  // of the accepting thread alone
  std::jthread thread;

  void record(const ProxyRecord& r) {
    const std::lock_guard lock(recording);
    on_record(r);
  }

  void run() {
    for (;;) {
      const bool full = options.bounds.connections <= clients.size();
      std::array<pollfd, 3> fds = {pollfd{stop.get(), POLLIN, 0}, pollfd{news.get(), POLLIN, 0},
                                   pollfd{full ? -1 : listener.get(), POLLIN, 0}};
      if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
      if (fds[0].revents != 0) break;
      if (fds[1].revents != 0) {
        std::uint64_t count = 0;
        [[maybe_unused]] const ssize_t n = ::read(news.get(), &count, sizeof count);
        clients.remove_if([](const Client& c) { return c.ended.load(); });
      }
      if (fds[2].revents != 0) accept_one();
    }
    clients.clear();  // joins: each of them sees `stop`
  }

  void accept_one() {
    UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) return;
    if (options.bounds.requests <= requests) {
      ProxyRecord turned_away;
      turned_away.verdict = ProxyRecord::Verdict::kDenied;
      turned_away.why = "more requests than a phase may make";
      answer_proxy_client(fd.get(), kUnavailable, turned_away.why, stop.get());
      return record(turned_away);
    }
    ++requests;
    Client& client = clients.emplace_back();
    try {
      client.thread = std::jthread([this, &client, c = std::move(fd)]() mutable {
        if (const auto done = serve_proxy_client({list, options, stop.get(), bytes}, std::move(c)))
          record(*done);
        client.ended = true;
        wake(news.get());
      });
    } catch (const std::system_error&) {  // no thread to be had: as if nobody listened
      clients.pop_back();
    }
  }
};

FilterProxy::FilterProxy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<FilterProxy>> FilterProxy::start(const fs::path& dir, Options options,
                                                        OnRecord on_record) {
  PROCTOR_TRY(AllowList list, AllowList::of(options.allow));
  PROCTOR_TRY(UniqueFd listener,
              listen_in(dir, static_cast<int>(options.bounds.connections), "network proxy"));
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid() || !news.valid()) return errno_error("network proxy: eventfd", errno);
  auto impl = std::make_unique<Impl>(std::move(list), std::move(options), std::move(on_record),
                                     std::move(listener), std::move(stop), std::move(news));
  impl->thread = std::jthread([i = impl.get()] { i->run(); });
  return std::unique_ptr<FilterProxy>(new FilterProxy(std::move(impl)));
}

FilterProxy::~FilterProxy() {
  wake(impl_->stop.get());
  impl_->thread.join();
}

}  // namespace proctor
