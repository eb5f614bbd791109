#include "common/ledger/private_redis.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/ledger/redis_connection.h"

namespace proctor {
namespace {
using namespace std::chrono_literals;

constexpr std::size_t kSocketPathMax = 107;  // sockaddr_un without its NUL
constexpr std::string_view kSocketName = "redis.sock";
constexpr auto kReadyWithin = 10s;  // measured 20 ms; a loaded machine may need a second

std::string end_of(const fs::path& log) {
  const auto text = read_file(log, std::size_t{1} << 20);
  return text.ok() ? last_lines(*text, 600) : "no log";
}

// A new folder (0700) whose path leaves room for the socket's name.
Result<TempDir> socket_folder(const fs::path& state_dir) {
  if (state_dir.string().size() + 32 + kSocketName.size() < kSocketPathMax) {
    return TempDir::create("redis", state_dir);
  }
  return TempDir::create("proctor-redis-" + sha256(state_dir.string()).short_hex(), "/tmp");
}
}  // namespace

Result<PrivateRedis> PrivateRedis::start(const fs::path& state_dir) {
  PROCTOR_CHECK_OK(make_private_dirs(state_dir));
  std::error_code ec;
  const fs::path absolute = fs::absolute(state_dir, ec);
  if (ec) return errno_error(state_dir.string(), ec.value());
  PROCTOR_TRY(TempDir folder, socket_folder(absolute));
  const std::string socket = (folder.path() / kSocketName).string();
  const fs::path log = absolute / "redis.log";

  CommandSpec spec;
  spec.argv = {
      "redis-server", "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700", "--dir",
      folder.path().string(), "--save", "",
      // Packed lists are searched from end to end: a hundred envelopes cost a quarter of the time.
      "--hash-max-ziplist-entries", "0", "--appendonly", "no", "--daemonize", "no",
      "--maxmemory-policy", "noeviction"};
  // Ours may hold what is declared as a secret for the campaign's workers.
  const char* path = ::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody calls setenv
  spec.env = {{"PATH", path == nullptr ? "/usr/bin:/bin" : path}, {"LC_ALL", "C"}};
  auto child = Child::start(spec, log, Child::Lifetime::kDiesWithParent);
  if (!child.ok()) return in_context("start redis-server", std::move(child).error());

  PROCTOR_TRY(const RedisEndpoint endpoint, parse_redis_endpoint("unix:" + socket));
  PrivateRedis redis(std::move(spec), log, std::move(child).value(), std::move(folder),
                     "unix:" + socket);
  const auto deadline = std::chrono::steady_clock::now() + kReadyWithin;
  while (true) {
    auto connection = RedisConnection::open(endpoint, 1s);
    if (connection.ok()) {
      auto pong = connection.value().call(std::array<std::string_view, 1>{"PING"});
      if (pong.ok()) {
        PROCTOR_CHECK_OK(
            write_file(address_file(absolute), redis.address_ + "\n", Durability::kLazy));
        return redis;
      }
    } else if (connection.error().code != Errc::kUnavailable) {
      return std::move(connection).error();
    }
    if (!redis.running()) {
      return Error{Errc::kUnavailable, "redis-server ended at once: " + end_of(log)};
    }
    if (deadline < std::chrono::steady_clock::now()) {
      return Error{Errc::kUnavailable, "redis-server does not answer: " + end_of(log)};
    }
    std::this_thread::sleep_for(2ms);
  }
}

void PrivateRedis::tend() {
  const auto now = std::chrono::steady_clock::now();
  if (child_.running() || now < not_before_) return;
  not_before_ = now + 1s;
  log::warn("redis-server has ended; it is started again and rebuilt from the journal");
  auto child = Child::start(command_, log_, Child::Lifetime::kDiesWithParent);
  if (child.ok()) {
    child_ = std::move(child).value();
  } else {
    log::warn("redis-server: " + child.error().detail);
  }
}

void PrivateRedis::remove_abandoned() const {
  const fs::path parent = folder_.path().parent_path();
  // Up to the random part: of this state's folders alone.
  const std::string prefix = folder_.path().stem().string() + ".";
  std::error_code ec;
  std::vector<fs::path> abandoned;
  for (fs::directory_iterator it(parent, ec), end; !ec && it != end; it.increment(ec)) {
    const fs::path& at = it->path();
    if (at.filename().string().starts_with(prefix) && at != folder_.path() &&
        it->symlink_status(ec).type() == fs::file_type::directory)
      abandoned.push_back(at);
  }
  for (const fs::path& at : abandoned) (void)remove_tree(at);
}

PrivateRedis::~PrivateRedis() {
  stop();
}

void PrivateRedis::stop() {
  if (address_.empty()) return;  // moved from
  child_.stop(2s);
  // Whether it still runs, or was killed: who looks in from outside would wait for it.
  const fs::path file = address_file(log_.parent_path());
  const Result<std::string> named = read_file(file, 2 * kSocketPathMax);
  std::error_code ec;
  if (named.ok() && *named == address_ + "\n") fs::remove(file, ec);
}
}  // namespace proctor
