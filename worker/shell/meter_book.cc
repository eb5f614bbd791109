#include "worker/shell/meter_book.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/wire/codec.h"
#include "worker/shell/host_facts.h"
#include "worker/shell/lives.h"
#include "worker/shell/spool.h"

namespace proctor {
namespace {

constexpr std::size_t kPage = 4096;  // an encoded Result is a few hundred bytes
constexpr std::size_t kFile = 2 * kPage;
constexpr std::string_view kEnding = ".meter";
constexpr std::string_view kMagic = "proctor-meter-1";

struct Page {
  std::uint64_t turn = 0;
  std::string boot;
  std::optional<MeterBook::Command> command;
  wire::ResultMessage so_far;
};

// "proctor-meter-1 TURN BOOT PHASE SINCE LIMIT DOCKER BYTES DIGEST\n", then an encoded Result.
// PHASE 0: no command is under way.
std::string page_text(const Page& p) {
  const std::string body = wire::encode(p.so_far);
  std::ostringstream head;
  head << kMagic << ' ' << p.turn << ' ' << p.boot << ' ';
  if (p.command)
    head << 1 + static_cast<int>(p.command->phase) << ' '
         << p.command->since.time_since_epoch().count() << ' ' << p.command->limit.count() << ' '
         << (p.command->docker ? 1 : 0);
  else
    head << "0 0 0 0";
  head << ' ' << body.size() << ' ';
  return head.str() + sha256(head.str() + body).hex() + "\n" + body;
}

std::optional<Page> parse_page(std::string_view bytes) {
  const std::size_t line = bytes.find('\n');
  if (line == std::string_view::npos) return std::nullopt;
  std::istringstream head{std::string(bytes.substr(0, line))};
  std::string magic, digest;
  Page p;
  int phase = 0, docker = 0;
  std::int64_t since = 0, limit = 0;
  std::size_t size = 0;
  head >> magic >> p.turn >> p.boot >> phase >> since >> limit >> docker >> size >> digest;
  if (!head || magic != kMagic || bytes.size() - line - 1 < size) return std::nullopt;
  const std::string_view body = bytes.substr(line + 1, size);
  const std::string hashed =
      std::string(bytes.substr(0, line - std::min(line, digest.size()))) + std::string(body);
  if (sha256(hashed).hex() != digest) return std::nullopt;
  Result<wire::Message> message = wire::decode(body);
  if (!message.ok()) return std::nullopt;
  const auto* so_far = std::get_if<wire::ResultMessage>(&*message);
  if (so_far == nullptr || phase < 0 || 3 < phase) return std::nullopt;
  p.so_far = *so_far;
  if (0 < phase)
    p.command = MeterBook::Command{static_cast<MeterPhase>(phase - 1), Instant(Millis(since)),
                                   Millis(limit), docker != 0};
  return p;
}

// The newer of the two pages, if it is of this boot of the kernel.
std::optional<Page> read_book(const fs::path& file, const std::string& boot) {
  const Result<std::string> bytes = read_file(file, kFile);
  if (!bytes.ok()) return std::nullopt;
  std::optional<Page> newest;
  for (const std::size_t at : {std::size_t{0}, kPage}) {
    if (bytes->size() <= at) continue;
    std::optional<Page> page = parse_page(std::string_view(*bytes).substr(at, kPage));
    if (page && (!newest || newest->turn < page->turn)) newest = std::move(page);
  }
  if (!newest || newest->boot != boot || boot == "unknown") return std::nullopt;
  return newest;
}

}  // namespace

MeterBook::MeterBook(fs::path file, UniqueFd fd, std::string boot, wire::ResultMessage so_far)
    : file_(std::move(file)),
      fd_(std::move(fd)),
      boot_(std::move(boot)),
      so_far_(std::move(so_far)) {}

Result<std::unique_ptr<MeterBook>> MeterBook::create(const fs::path& root,
                                                     const std::string& campaign,
                                                     wire::ResultMessage so_far) {
  if (!is_plain_name(campaign)) return Error{Errc::kInvalid, "not a campaign's id: " + campaign};
  PROCTOR_CHECK_OK(make_private_dirs(root / campaign));
  fs::path file = root / campaign / (to_string(so_far.attempt) + std::string(kEnding));
  constexpr mode_t kMode = 0600;
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!fd.valid()) return errno_error("open " + file.string(), errno);
  // A disk that fills up later must not stop the book.
  if (const int error = ::posix_fallocate(fd.get(), 0, kFile); error != 0)
    return errno_error("allocate " + file.string(), error);
  auto book = std::unique_ptr<MeterBook>(
      new MeterBook(std::move(file), std::move(fd), kernel_boot(), std::move(so_far)));
  book->write({}, std::nullopt);
  return book;
}

Result<std::unique_ptr<MeterBook>> MeterBook::go_on(const Left& left) {
  UniqueFd fd(::open(left.file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return errno_error("open " + left.file.string(), errno);
  auto book = std::unique_ptr<MeterBook>(
      new MeterBook(left.file, std::move(fd), kernel_boot(), left.so_far));
  book->turn_ = left.turn;
  return book;
}

void MeterBook::write(const Usage& usage, const std::optional<Command>& command) {
  if (!fd_.valid()) return;
  so_far_.usage = usage;
  const std::string text = page_text({++turn_, boot_, command, so_far_});
  const auto at = static_cast<off_t>(turn_ % 2 * kPage);
  ssize_t written = -1;
  if (text.size() <= kPage) {
    do {
      written = ::pwrite(fd_.get(), text.data(), text.size(), at);
    } while (written < 0 && errno == EINTR);
  }
  if (written == static_cast<ssize_t>(text.size())) return;
  log::warn("meter of attempt " + to_string(so_far_.attempt) +
            " cannot be kept: it costs its whole reservation if this worker is killed");
  books_are_not_whole(file_.parent_path().parent_path());
  static_cast<void>(::ftruncate(fd_.get(), 0));
  close();
}

void MeterBook::close() {
  if (!fd_.valid()) return;
  fd_.reset();
  ::unlink(file_.c_str());
}

std::vector<MeterBook::Left> MeterBook::read_all(const fs::path& root) {
  std::vector<Left> out;
  const std::string boot = kernel_boot();
  std::error_code error;
  for (fs::recursive_directory_iterator it(root, error), end; !error && it != end;
       it.increment(error)) {
    const fs::path file = it->path();
    if (!it->is_regular_file(error) || file.extension() != kEnding) continue;
    Left left{file.parent_path().filename().string(), {}, {}, file, 0};
    std::optional<Page> page = read_book(file, boot);
    if (page && to_string(page->so_far.attempt) == file.stem().string() &&
        is_plain_name(left.campaign)) {
      left.so_far = std::move(page->so_far);
      left.command = page->command;
      left.turn = page->turn;
      out.push_back(std::move(left));
    } else {
      log::warn("meter of attempt " + file.stem().string() +
                " cannot be believed: it costs its whole reservation");
      books_are_not_whole(root);
      ::unlink(file.c_str());
    }
  }
  std::sort(out.begin(), out.end(), [](const Left& a, const Left& b) {
    return std::pair(a.campaign, a.so_far.attempt) < std::pair(b.campaign, b.so_far.attempt);
  });
  return out;
}

Millis time_of(const MeterBook::Command& command, Instant now) {
  return std::clamp(now - command.since, Millis(0), command.limit);
}

void add_time(Usage& usage, MeterPhase phase, Millis time) {
  std::uint64_t& counter = phase == MeterPhase::kSetup   ? usage.setup_ms
                           : phase == MeterPhase::kAgent ? usage.agent_ms
                                                         : usage.acceptance_ms;
  counter = std::min(kUsageCountMax, counter + static_cast<std::uint64_t>(time.count()));
}

std::vector<MeterBook::Left> end_of_left_attempts(std::vector<MeterBook::Left> all,
                                                  bool docker_is_clean, Instant now,
                                                  WallTime wall) {
  for (MeterBook::Left& left : all) {
    wire::ResultMessage& r = left.so_far;
    r.outcome = RunOutcome::kInvalid;
    r.termination = Termination::kInfrastructure;
    r.infrastructure = true;
    r.rationale = "its worker was killed; it is charged as metered until then";
    r.finished_ms = std::max(r.started_ms, wall.raw());
    if (!left.command) continue;
    const bool runs_on = left.command->docker && !docker_is_clean;
    add_time(r.usage, left.command->phase,
             runs_on ? left.command->limit : time_of(*left.command, now));
  }
  return all;
}

}  // namespace proctor
