// Bytes of a finished run on disk, and how long writing and loading many of them takes.
#include <chrono>
#include <cstdlib>
#include <ctime>

#include "common/base/digest.h"
#include "tests/integration/journal/support.h"

using namespace proctor;
using namespace proctor::test;

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Of this process, all threads: other work on the machine does not count.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// PROCTOR_JOURNAL_RUNS asks for another number, to measure a release build.
std::uint32_t runs() {
  const char* text = std::getenv("PROCTOR_JOURNAL_RUNS");
  return text == nullptr ? 20'000 : static_cast<std::uint32_t>(std::atoi(text));
}

}  // namespace

TEST_SUITE("journal") {
  TEST_CASE("a finished run takes at most 600 bytes of disk") {
    const Folder folder;
    const std::uint32_t count = runs();
    auto journal = folder.open();
    auto begin = std::chrono::steady_clock::now();
    // As a campaign does it: 64 runs are under way at once, facts of one kind travel together.
    for (std::uint32_t first = 0; first < count; first += 64) {
      std::vector<std::vector<JournalWrite>> steps(4);
      for (std::uint32_t run = first; run < std::min(first + 64, count); ++run) {
        const auto life = life_of(run);
        for (std::size_t i = 0; i < life.size(); ++i) steps[i].push_back(life[i]);
      }
      for (auto& step : steps) journal->append(std::move(step), [](Status s) { CHECK(s.ok()); });
    }
    REQUIRE(journal->append_and_wait({}).ok());
    MESSAGE("attempts written per second: " << count / seconds_since(begin)
                                            << ", per CPU second: " << count / cpu_seconds());
    begin = std::chrono::steady_clock::now();
    const double cpu = cpu_seconds();
    const RestoredState state = must(journal->load());
    MESSAGE("seconds to load " << count << " ended runs: " << seconds_since(begin)
                               << ", CPU seconds: " << cpu_seconds() - cpu);
    CHECK(state.ended.size() == count);
    REQUIRE(journal->close().ok());
    const auto bytes = fs::file_size(folder.file) / count;
    MESSAGE("bytes per finished run: " << bytes);
    CHECK(bytes <= 600);
  }
}
