// A journal and its log that were damaged: never a crash; what `check` calls whole reads whole; and
// what is salvaged of a damaged one loads.  After an even first byte come changes of a sound
// journal (OFFSET OFFSET OFFSET VALUE, over file and log), after an odd one the file itself.
#include <vector>

#include "coordinator/journal/journal.h"
#include "coordinator/journal/journal_check.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/journal/journal_rows.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/journal_scene.h"

namespace proctor::fuzz::journal_file {

constexpr std::uint32_t kRuns = 64;
constexpr std::size_t kFileMax = std::size_t{64} << 20;

struct Files {
  std::string main, log;
};

// Journals to start from, made once: one with runs in the file and in its log, and an empty one.
struct Templates {
  Files lived, fresh;
};

Files files_of(const fs::path& journal) {
  return {must(read_file(journal, kFileMax)), must(read_file(journal.string() + "-wal", kFileMax))};
}

const Templates& templates() {
  static const Templates kTemplates = [] {
    const fs::path at = scratch_folder() / "template.sqlite",
                   empty = scratch_folder() / "empty.sqlite";
    must(must(Journal::open(at))->append_and_wait(first_facts()));
    Templates out;
    {
      const auto journal = must(Journal::open(at));
      must(journal->append_and_wait(later_facts()));
      out.lived = files_of(at);
    }
    must(must(Journal::open(empty))->close());
    out.fresh.main = must(read_file(empty, kFileMax));
    return out;
  }();
  return kTemplates;
}

Files damaged(std::string_view bytes) {
  if (take_byte(bytes) % 2 == 1) return {std::string(bytes), ""};
  Files out = templates().lived;
  while (4 <= bytes.size()) {
    std::size_t offset = take_byte(bytes);
    offset = offset << 8 | take_byte(bytes);
    offset = offset << 8 | take_byte(bytes);
    const auto value = static_cast<char>(take_byte(bytes));
    offset %= out.main.size() + out.log.size();
    (offset < out.main.size() ? out.main[offset] : out.log[offset - out.main.size()]) = value;
  }
  return out;
}

fs::path placed(const char* name, const Files& files) {
  const fs::path at = scratch_folder() / name;
  for (const char* end : {"-wal", "-shm", "-journal", ".lock"}) fs::remove(at.string() + end);
  must(write_file(at, files.main, Durability::kLazy));
  if (!files.log.empty()) must(write_file(at.string() + "-wal", files.log, Durability::kLazy));
  return at;
}

// All that reads a journal; false when something of it could not be read.
bool reads_whole(const fs::path& file) {
  auto reader = JournalReader::open(file);
  if (!reader.ok()) return false;
  std::uint64_t seen = 0;
  bool good = reader->load().ok() && reader->epochs().ok() && reader->notes(0, 1000).ok();
  good = reader->each_attempt([&](const AttemptRecord&) { ++seen; }).ok() && good;
  good = reader->each_fact({}, WallTime(0), [&](const StoryFact&) { ++seen; }).ok() && good;
  good = reader->each_row_of_all([&](std::string_view, const Json&) { ++seen; }).ok() && good;
  const auto seals = reader->check_seals();
  return seals.ok() && seals->empty() && good;
}

void target(std::string_view bytes) {
  const Files files = damaged(bytes);
  const Result<JournalFinding> finding = check_journal(placed("checked.sqlite", files));
  const bool whole = reads_whole(placed("read.sqlite", files));
  // A blank one holds nothing that could be read.
  if (finding.ok() && finding->problems.empty()) PROCTOR_ASSERT(whole != finding->blank);

  const fs::path damaged_file = placed("damaged.sqlite", files);
  const fs::path fresh_file = placed("fresh.sqlite", templates().fresh);
  auto fresh = must(sqlite::Database::open(fresh_file, sqlite::Database::Mode::kCreate));
  if (salvage_journal(damaged_file, fresh, kRuns).ok()) must(journal::load_state(fresh));
}

}  // namespace proctor::fuzz::journal_file
