#pragma once
// Meter books: what attempts have used so far, on disk, and the lives of a worker whose books are
// all there.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/ids.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "common/wire/messages.h"
#include "worker/core/run_meter.h"

namespace proctor {
// Lives: whose meter books are all there (MeterBook).  A life writes its number down before it
// is given anything, and each attempt has a book before it begins; so what a killed life began has
// a book, and what has none never began.  That holds until a book is missing: then the list is
// removed, before anything relies on it.  Books and list are synced, so that it holds after a loss
// of power as well.
//   ROOT/lives   "synced LIFE LIFE ...\n", the oldest first; a list that begins with anything else
//   is of a release that synced neither, and is not believed
// Any thread; the worker's lock keeps other processes out.

// `meters`: the folder of the books.
std::vector<BootId> lives_with_books(const fs::path& meters);
Status begin_life(const fs::path& meters, BootId life);
// Called where an attempt of this life or an earlier one has no book.
void books_are_not_whole(const fs::path& meters);

// MeterBook: what one attempt has used so far, on disk, so that an attempt whose worker is killed
// is settled at what was metered instead of at its ceiling.
//   ROOT/<campaign>/<run>.<attempt>.meter
// A page is written before what it counts takes effect: a grant before its answer, a command before
// its start.  What is granted and not yet charged stands in it at its worst case.  Pages in turn,
// each with a digest, so that a half-written one is never read.
// A kill -9 loses nothing that was written.  For the day when the power goes (another kernel boot)
// there are pages that claim: the usage so far and room for the next calls of models, so that not
// every call waits for the disk.  The first is synced before anything begins, a new one before a
// grant that the synced one does not cover counts, the synced one is not written over, and sync()
// writes one every second: an attempt is then charged at the most that any page says, and for the
// time since.  In the same boot no claim is read beside another page.
// A book without a byte in it is of an attempt that never began.
// A book that cannot be written any more is removed: no book, no claim.
// Thread-safe; write() in the order in which usage grew (AttemptMeter's lock).
class MeterBook {
 public:
  // A command in a sandbox: its time counts from its start, whoever still sees its end.
  struct Command {
    MeterPhase phase = MeterPhase::kSetup;
    Instant since{};
    Millis limit{0};
    bool docker = false;  // its sandbox does not die with the worker
  };
  // The attempt's result so far: everything but how it ends.  On the disk when it returns.
  // kInvalid: not a campaign's id; kUnavailable: the disk does not sync it.
  static Result<std::unique_ptr<MeterBook>> create(const fs::path& root,
                                                   const std::string& campaign,
                                                   wire::ResultMessage so_far);
  // Goes on with a book that an earlier life left.
  struct Left;
  static Result<std::unique_ptr<MeterBook>> go_on(const Left& left);
  // The file stays: whoever made sure of the attempt's result calls close().
  ~MeterBook() = default;
  MeterBook(const MeterBook&) = delete;
  MeterBook& operator=(const MeterBook&) = delete;

  // `free`: what further calls of models can cost at most.
  void write(const Usage& usage, const std::optional<Command>& command, MicroUsd free = {});
  void cover();  // waits until what was written counts, also after a loss of power
  void sync();   // what was written and is not on the disk yet
  void close();  // the result is safe elsewhere

  // The books that a killed life left below `root`.  An attempt whose book cannot be believed is
  // not there.
  struct Left {
    std::string campaign;
    wire::ResultMessage so_far;
    std::optional<Command> command;
    fs::path file;
    std::uint64_t turn = 0;  // of its newest page
    std::size_t page = 0;    // which that is
    // When the newest page was written, if that was in another boot of the kernel: the power was
    // lost, or the host was started again.
    struct Before {
      Instant mono{};
      WallTime wall{};
    };
    std::optional<Before> before{};
  };
  static std::vector<Left> read_all(const fs::path& root);

 private:
  MeterBook(fs::path file, UniqueFd fd, std::string boot, wire::ResultMessage so_far);
  static constexpr std::size_t kPages = 4;
  bool put(bool claims, const Usage& usage, std::size_t& page);
  Usage claim() const;
  void cover(std::unique_lock<std::mutex>& lock, bool anyway);
  void close(std::unique_lock<std::mutex>& lock);
  std::mutex mutex_;
  std::condition_variable synced_now_;
  fs::path file_;
  UniqueFd fd_;
  std::string boot_;
  wire::ResultMessage so_far_;  // as written
  std::optional<Command> command_;
  MicroUsd free_;
  Usage step_;     // the most that one grant added
  Usage on_disk_;  // what the synced claim says
  std::uint64_t turn_ = 0, synced_turn_ = 0;
  std::size_t last_ = kPages, syncing_ = kPages, synced_ = kPages;  // pages; kPages: none
};

// Makes the result of each attempt that a killed life of this worker was running: infrastructure,
// with the usage of its book and the time of the command that was under way, until now or its limit
// (the limit where a Docker Engine that may still run it does not answer).  After another boot the
// time goes by the wall clock, so that the host's being away counts, up to the limit.
std::vector<MeterBook::Left> end_of_left_attempts(std::vector<MeterBook::Left> left,
                                                  bool docker_is_clean, Instant now, WallTime wall);
// The time that the command under way has taken until then: at most its limit.
Millis time_of(const MeterBook::Command& command, Instant now);
void add_time(Usage& usage, MeterPhase phase, Millis time);
}  // namespace proctor
