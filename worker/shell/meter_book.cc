#include "worker/shell/meter_book.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/wire/codec.h"
#include "worker/shell/host_facts.h"
#include "worker/shell/spool.h"

namespace proctor {
constexpr const char* kLives = "lives";
constexpr const char* kSynced = "synced";
constexpr std::size_t kLivesBytes = 4096;
constexpr std::size_t kLivesKept = 8;  // that nobody has been told of

std::vector<BootId> lives_with_books(const fs::path& meters) {
  const Result<std::string> text = read_file(meters / kLives, kLivesBytes);
  if (!text.ok() || !text->ends_with('\n')) return {};
  std::istringstream words(*text);
  std::string first;
  words >> first;
  if (first != kSynced) return {};
  std::vector<BootId> out;
  for (std::uint64_t life = 0; words >> life;) out.emplace_back(life);
  return out;
}

Status begin_life(const fs::path& meters, BootId life) {
  PROCTOR_CHECK_OK(make_private_dirs(meters));
  std::vector<BootId> lives = lives_with_books(meters);
  lives.push_back(life);
  if (kLivesKept < lives.size()) lives.erase(lives.begin());
  std::string text = kSynced;
  for (const BootId one : lives) text += " " + std::to_string(one.raw());
  return write_file(meters / kLives, text + "\n");
}

void books_are_not_whole(const fs::path& meters) {
  const fs::path file = meters / kLives;
  if (::unlink(file.c_str()) == 0) {
    if (const Status synced = sync_path(meters); !synced.ok()) log::warn(synced.error().detail);
  } else if (errno != ENOENT) {
    log::warn(errno_error("remove " + file.string(), errno).detail);
  }
}

namespace {
constexpr std::size_t kPage = 4096;  // an encoded Result is a few hundred bytes
constexpr std::size_t kFile = 4 * kPage;
// A command whose begin was on no page yet when the power went: pages are synced every second.
constexpr Millis kUnseen{2'000};
constexpr std::string_view kEnding = ".meter";
constexpr std::string_view kMagic = "proctor-meter-2", kClaim = "proctor-meter-claim-2";

struct Page {
  bool claims = false;
  std::uint64_t turn = 0;
  std::string boot;
  std::optional<MeterBook::Command> command;
  wire::ResultMessage so_far;
  MeterBook::Left::Before written{};
  std::size_t place = 0;  // among those of its file
};

// Counters that somebody grants, as against what passes.
constexpr std::array<std::uint64_t Usage::*, 9> kGranted{
    &Usage::model_calls,   &Usage::input_tokens,  &Usage::output_tokens,
    &Usage::priced_micros, &Usage::other_micros,  &Usage::tool_calls,
    &Usage::tool_ms,       &Usage::failed_cycles, &Usage::dependency_installs};

// ... and what a claim has room for, in grants as large as the largest: a call holds its worst case
// and comes to a part of it, but it is one call.
constexpr std::array<std::pair<std::uint64_t Usage::*, std::uint64_t>, 7> kAhead{
    {{&Usage::model_calls, 128},
     {&Usage::priced_calls, 128},
     {&Usage::input_tokens, 8},
     {&Usage::priced_input, 8},
     {&Usage::output_tokens, 8},
     {&Usage::priced_output, 8},
     {&Usage::priced_micros, 8}}};

// "proctor-meter-2 TURN BOOT PHASE SINCE LIMIT DOCKER MONO WALL BYTES DIGEST\n", then an encoded
// Result.
// PHASE 0: no command is under way.  A claim begins with "proctor-meter-claim-2".
std::string page_text(const Page& p) {
  const std::string body = wire::encode(p.so_far);
  std::ostringstream head;
  head << (p.claims ? kClaim : kMagic) << ' ' << p.turn << ' ' << p.boot << ' ';
  if (p.command)
    head << 1 + static_cast<int>(p.command->phase) << ' '
         << p.command->since.time_since_epoch().count() << ' ' << p.command->limit.count() << ' '
         << (p.command->docker ? 1 : 0);
  else
    head << "0 0 0 0";
  head << ' ' << p.written.mono.time_since_epoch().count() << ' ' << p.written.wall.raw() << ' '
       << body.size() << ' ';
  return head.str() + sha256(head.str() + body).hex() + "\n" + body;
}

std::optional<Page> parse_page(std::string_view bytes) {
  const std::size_t line = bytes.find('\n');
  if (line == std::string_view::npos) return std::nullopt;
  std::istringstream head{std::string(bytes.substr(0, line))};
  std::string magic, digest;
  Page p;
  int phase = 0, docker = 0;
  std::int64_t since = 0, limit = 0, mono = 0, wall = 0;
  std::size_t size = 0;
  head >> magic >> p.turn >> p.boot >> phase >> since >> limit >> docker >> mono >> wall >> size >>
      digest;
  p.claims = magic == kClaim;
  if (!head || !(p.claims || magic == kMagic) || bytes.size() - line - 1 < size)
    return std::nullopt;
  const std::string_view body = bytes.substr(line + 1, size);
  const std::string hashed =
      std::string(bytes.substr(0, line - std::min(line, digest.size()))) + std::string(body);
  if (sha256(hashed).hex() != digest) return std::nullopt;
  Result<wire::Message> message = wire::decode(body);
  if (!message.ok()) return std::nullopt;
  const auto* so_far = std::get_if<wire::ResultMessage>(&*message);
  if (so_far == nullptr || phase < 0 || 3 < phase) return std::nullopt;
  p.so_far = *so_far;
  p.written = {Instant(Millis(mono)), WallTime(wall)};
  if (0 < phase)
    p.command = MeterBook::Command{static_cast<MeterPhase>(phase - 1), Instant(Millis(since)),
                                   Millis(limit), docker != 0};
  return p;
}

// Each counter at the most that either says.
void raise(Usage& to, const Usage& by) {
  for (const auto& [name, counter, since] : kUsageCounters)
    to.*counter = std::max(to.*counter, by.*counter);
}

// Its worker ended before the first page was on the disk, and nothing begins before that.
bool never_began(const fs::path& file) {
  const Result<std::string> bytes = read_file(file, kFile);
  return bytes.ok() && bytes->find_first_not_of('\0') == std::string::npos;
}

// By its newest page; while one is there that claims nothing, no claim of this boot counts.  Of an
// earlier boot what was granted counts at the most that any page says: others than the synced claim
// are there or not.
std::optional<MeterBook::Left> read_book(const fs::path& file, const std::string& boot) {
  const Result<std::string> bytes = read_file(file, kFile);
  if (!bytes.ok() || boot == "unknown") return std::nullopt;
  std::vector<Page> pages;
  MeterBook::Left left;
  for (std::size_t at = 0; at < bytes->size(); at += kPage) {
    std::optional<Page> page = parse_page(std::string_view(*bytes).substr(at, kPage));
    if (!page || page->boot == "unknown") continue;
    page->place = at / kPage;
    pages.push_back(std::move(*page));
  }
  const auto claims = [&](const Page& p) { return p.claims && p.boot == boot; };
  if (!std::ranges::all_of(pages, claims)) std::erase_if(pages, claims);
  const auto newest = std::ranges::max_element(pages, {}, &Page::turn);
  if (newest == pages.end()) return std::nullopt;
  left.turn = newest->turn;
  left.page = newest->place;
  left.so_far = newest->so_far;
  left.command = newest->command;
  if (newest->boot == boot) return left;
  left.before = newest->written;
  for (const Page& page : pages) {
    if (page.boot != newest->boot || page.so_far.attempt != left.so_far.attempt)
      return std::nullopt;
    raise(left.so_far.usage, page.so_far.usage);
  }
  return left;
}

// The time that the command under way when the power went has taken, at most.
Millis time_before(const MeterBook::Left& left, WallTime wall) {
  const Millis since_page(wall.raw() - left.before->wall.raw());
  if (!left.command) return std::clamp(since_page, Millis(0), kUnseen);
  if (since_page < Millis(0)) return left.command->limit;  // the clock was set
  return time_of(*left.command, left.before->mono + since_page);
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
  // A disk that fills up later must not stop the book, and no sync waits for places of its pages.
  if (::pwrite(fd.get(), std::string(kFile, '\0').data(), kFile, 0) != ssize_t{kFile})
    return errno_error("allocate " + file.string(), errno);
  auto book = std::unique_ptr<MeterBook>(
      new MeterBook(std::move(file), std::move(fd), kernel_boot(), std::move(so_far)));
  book->write({}, std::nullopt);
  book->sync();
  if (book->synced_ != kPages) return book;
  book->close();
  return Error{Errc::kUnavailable, "sync " + book->file_.string() + ": the disk does not take it"};
}

Result<std::unique_ptr<MeterBook>> MeterBook::go_on(const Left& left) {
  UniqueFd fd(::open(left.file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return errno_error("open " + left.file.string(), errno);
  auto book = std::unique_ptr<MeterBook>(
      new MeterBook(left.file, std::move(fd), kernel_boot(), left.so_far));
  book->command_ = left.command;
  book->turn_ = left.turn;
  book->last_ = left.page;
  book->sync();
  return book;
}

// In a page that neither counts nor is about to.
bool MeterBook::put(bool claims, const Usage& usage, std::size_t& page) {
  wire::ResultMessage said = so_far_;
  said.usage = usage;
  const std::string text =
      page_text({claims, turn_, boot_, command_, said, {mono_now(), wall_now()}});
  page = 0;
  while (page == last_ || page == syncing_ || page == synced_) ++page;
  ssize_t written = -1;
  if (text.size() <= kPage) {
    do {
      written = ::pwrite(fd_.get(), text.data(), text.size(), static_cast<off_t>(page * kPage));
    } while (written < 0 && errno == EINTR);
  }
  return written == static_cast<ssize_t>(text.size());
}

void MeterBook::write(const Usage& usage, const std::optional<Command>& command, MicroUsd free) {
  std::unique_lock lock(mutex_);
  if (!fd_.valid()) return;
  for (const auto& [counter, ahead] : kAhead) {
    const std::uint64_t before = std::min(usage.*counter, so_far_.usage.*counter);
    step_.*counter = std::max(step_.*counter, usage.*counter - before);
  }
  so_far_.usage = usage;
  command_ = command;
  free_ = free;
  ++turn_;
  std::size_t page = 0;
  if (put(false, usage, page)) {
    last_ = page;
    return;
  }
  log::warn("meter of attempt " + to_string(so_far_.attempt) +
            " cannot be kept: it costs its whole reservation if this worker is killed");
  books_are_not_whole(file_.parent_path().parent_path());
  static_cast<void>(::ftruncate(fd_.get(), 0));
  close(lock);
}

Usage MeterBook::claim() const {
  Usage out = so_far_.usage;
  for (const auto& [counter, ahead] : kAhead)
    out.*counter = std::min(kUsageCountMax, out.*counter + ahead * step_.*counter);
  const auto free = static_cast<std::uint64_t>(free_.micros());
  out.priced_micros = std::min(out.priced_micros, so_far_.usage.priced_micros + free);
  return out;
}

void MeterBook::cover() {
  std::unique_lock lock(mutex_);
  cover(lock, false);
}

void MeterBook::sync() {
  std::unique_lock lock(mutex_);
  if (turn_ != synced_turn_ || synced_ == kPages) cover(lock, true);
}

// One thread syncs, and before the claim is used up: the others go on within it.
void MeterBook::cover(std::unique_lock<std::mutex>& lock, bool anyway) {
  Usage next;
  for (;; synced_now_.wait(lock)) {
    if (!fd_.valid()) return;
    next = claim();
    const auto lacks = [&](const auto c) { return on_disk_.*c < so_far_.usage.*c; };
    const auto half = [&](const auto& of) {
      const auto& [c, ahead] = of;
      return 0 < step_.*c && on_disk_.*c + ahead / 2 * step_.*c <= next.*c;
    };
    const bool must = anyway || std::ranges::any_of(kGranted, lacks);
    if (syncing_ == kPages && (must || std::ranges::any_of(kAhead, half))) break;
    if (!must) return;
  }
  std::size_t page = 0;
  if (!put(true, next, page)) return;
  syncing_ = page;
  const std::uint64_t turn = turn_;
  const bool named = synced_ != kPages;
  lock.unlock();
  // A disk that does not take it is no reason to stop the agent: then the page may be lost with the
  // power, and the attempt costs its whole reservation.
  const fs::path folder = file_.parent_path();
  const bool done = ::fdatasync(fd_.get()) == 0 &&
                    (named || (sync_path(folder).ok() && sync_path(folder.parent_path()).ok()));
  lock.lock();
  syncing_ = kPages;
  if (done) {
    synced_ = page;
    synced_turn_ = turn;
    on_disk_ = next;
  }
  synced_now_.notify_all();
}

void MeterBook::close() {
  std::unique_lock lock(mutex_);
  close(lock);
}

void MeterBook::close(std::unique_lock<std::mutex>& lock) {
  synced_now_.wait(lock, [this] { return syncing_ == kPages; });
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
    std::optional<Left> left = read_book(file, boot);
    const std::string campaign = file.parent_path().filename().string();
    if (left && to_string(left->so_far.attempt) == file.stem().string() &&
        is_plain_name(campaign)) {
      left->campaign = campaign;
      left->file = file;
      out.push_back(std::move(*left));
    } else if (never_began(file)) {
      ::unlink(file.c_str());
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
    if (left.before) {
      r.rationale =
          "its host went down; it is charged as metered until then, and for the time since";
      add_time(r.usage, left.command ? left.command->phase : MeterPhase::kAgent,
               time_before(left, wall));
      continue;
    }
    if (!left.command) continue;
    const bool runs_on = left.command->docker && !docker_is_clean;
    add_time(r.usage, left.command->phase,
             runs_on ? left.command->limit : time_of(*left.command, now));
  }
  return all;
}
}  // namespace proctor
