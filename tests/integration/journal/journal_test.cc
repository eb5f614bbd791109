#include "coordinator/journal/journal.h"

#include <sqlite3.h>

#include <atomic>
#include <future>

#include "common/base/digest.h"
#include "coordinator/core/notes.h"
#include "tests/integration/journal/support.h"

using namespace proctor;
using namespace proctor::test;

namespace {

// Runs SQL as an operator's shell would; the first column of the first row.
std::string shell(const fs::path& file, const std::string& sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
  std::string out;
  const auto keep = [](void* to, int n, char** values, char**) {
    auto& text = *static_cast<std::string*>(to);
    for (int i = 0; i < n; ++i)
      text += std::string(i == 0 ? "" : "|") + (values[i] ? values[i] : "-");
    text += "\n";
    return 0;
  };
  char* error = nullptr;
  const int rc = sqlite3_exec(db, sql.c_str(), keep, &out, &error);
  INFO(std::string(error == nullptr ? "" : error));
  CHECK(rc == SQLITE_OK);
  sqlite3_free(error);
  sqlite3_close(db);
  return out;
}

}  // namespace

TEST_SUITE("journal") {
  TEST_CASE("what was committed is what a resume finds") {
    const Folder folder;
    {
      auto journal = folder.open();
      REQUIRE(journal->append_and_wait(two_scopes()).ok());
      REQUIRE(journal
                  ->append_and_wait({MetaSet{kMetaCampaign, "old"}, MetaSet{kMetaCampaign, "c1"},
                                     MetaSet{kMetaPlan, "abc"},
                                     EpochBegun{Epoch(1), "host", 42, "0.1.0", at(0)},
                                     EpochBegun{Epoch(2), "host", 43, "0.1.0", at(5)}})
                  .ok());
      REQUIRE(journal->append_and_wait(life_of(7)).ok());
      REQUIRE(journal
                  ->append_and_wait({AttemptIntent{attempt(3), 0, micro(50), at(1)},
                                     AttemptDenied{attempt(3), 0, ScopeId(1), micro(9), at(2)},
                                     RunParked{RunId(3), ScopeId(1), micro(9), at(3)},
                                     AttemptIntent{attempt(5), 0, micro(60), at(1)},
                                     AttemptGranted{attempt(5), WorkerId("w1"), BootId(7), at(2)},
                                     AttemptLost{attempt(5), "silent for 15 minutes", at(3)},
                                     AttemptSettled{attempt(5), micro(60), {}, micro(4), at(4)},
                                     AttemptIntent{attempt(5, 2), 0, micro(61), at(5)},
                                     RunParked{RunId(9), ScopeId(0), micro(1), at(3)},
                                     RunUnparked{RunId(9)},
                                     AttemptIntent{attempt(6), 0, micro(60), at(1)},
                                     AttemptGranted{attempt(6), WorkerId("w1"), BootId(7), at(2)},
                                     AttemptVoided{attempt(6), "never started", at(3)},
                                     RunEnded{RunId(6), attempt(6), RunOutcome::kInvalid}})
                  .ok());
      REQUIRE(journal->close().ok());
    }
    auto journal = folder.open();
    const RestoredState state = must(journal->load());
    REQUIRE(state.meta.size() == 2);
    CHECK(state.meta[0].value == "c1");
    CHECK(must(journal->meta(kMetaPlan)) == std::optional<std::string>("abc"));
    CHECK(must(journal->meta("nothing")) == std::nullopt);
    REQUIRE(state.scopes.size() == 2);
    CHECK(state.scopes[1].name == "task:a");
    CHECK(state.scopes[1].cap == micro(7'000'000));
    CHECK(state.last_epoch == Epoch(2));
    REQUIRE(state.attempts.size() == 5);
    const RestoredAttempt& denied = state.attempts[0];
    CHECK(denied.attempt == attempt(3));
    CHECK(denied.state == AttemptState::kDenied);
    CHECK(denied.denied_scope == ScopeId(1));
    CHECK(denied.short_by == micro(9));
    const RestoredAttempt& lost = state.attempts[1];
    CHECK(lost.state == AttemptState::kLost);
    CHECK(lost.worker == WorkerId("w1"));
    CHECK(lost.settled);
    CHECK(lost.charged == micro(60));
    CHECK(lost.overrun == micro(4));
    CHECK_FALSE(lost.has_result);
    CHECK(state.attempts[2].attempt == attempt(5, 2));
    CHECK(state.attempts[2].state == AttemptState::kReserving);
    CHECK(state.attempts[2].ask == micro(61));
    CHECK(state.attempts[3].state == AttemptState::kVoided);
    const RestoredAttempt& done = state.attempts[4];
    CHECK(done.attempt == attempt(7));
    CHECK(done.state == AttemptState::kFinished);
    CHECK(done.has_result);
    CHECK(done.sets_outcome);
    CHECK(done.outcome == RunOutcome::kSuccess);
    CHECK(done.charged == micro(1'234'567));
    REQUIRE(state.parked.size() == 1);
    CHECK(state.parked[0].run == RunId(3));
    CHECK(state.parked[0].scope == ScopeId(1));
    REQUIRE(state.ended.size() == 2);
    CHECK(state.ended[0].run == RunId(6));
    CHECK(state.ended[0].outcome == RunOutcome::kInvalid);
    CHECK(state.ended[1].run == RunId(7));
    CHECK(state.ended[1].attempt == AttemptNo(1));
  }

  TEST_CASE("an unsettled result comes back with the usage it has to be priced by") {
    const Folder folder;
    auto journal = folder.open();
    auto life = life_of(1);
    life.pop_back();
    REQUIRE(journal->append_and_wait(life).ok());
    const RestoredState state = must(journal->load());
    REQUIRE(state.attempts.size() == 1);
    CHECK_FALSE(state.attempts[0].settled);
    CHECK(state.attempts[0].usage == result_of(attempt(1)).usage);
  }

  TEST_CASE("a denied attempt may ask again under the next sequence") {
    const Folder folder;
    auto journal = folder.open();
    REQUIRE(journal->append_and_wait(two_scopes()).ok());
    REQUIRE(journal
                ->append_and_wait({AttemptIntent{attempt(1), 0, micro(50), at(1)},
                                   AttemptDenied{attempt(1), 0, ScopeId(0), micro(9), at(2)},
                                   AttemptIntent{attempt(1), 1, micro(40), at(3)},
                                   AttemptGranted{attempt(1), WorkerId("w"), BootId(7), at(4)}})
                .ok());
    const RestoredState state = must(journal->load());
    CHECK(state.attempts[0].state == AttemptState::kGranted);
    CHECK(state.attempts[0].seq == 1);
    CHECK(state.attempts[0].ask == micro(40));
    CHECK(state.attempts[0].short_by == micro(0));
  }

  TEST_CASE("an envelope is raised from the cap it has and from no other") {
    const Folder folder;
    const ScopeDefined scope{ScopeId(0), "global", micro(10)};
    {
      const auto journal = folder.open();
      REQUIRE(journal->append_and_wait({scope}).ok());
      const BudgetRaised raise{ScopeId(0), "global", micro(10), micro(25), "why", "who", at(5)};
      REQUIRE(journal
                  ->append_and_wait(
                      {ScopeDefined{ScopeId(0), "global", micro(25), micro(10)}, note_of(raise)})
                  .ok());
      const RestoredState state = must(journal->load());
      CHECK(state.scopes[0].cap == micro(25));
      REQUIRE(state.raises.size() == 1);
      CHECK(state.raises[0].to == micro(25));
      CHECK(state.raises[0].reason == "why");
      REQUIRE(journal->close().ok());
    }
    // A life that knows nothing of the raise, and a raise from a cap that is gone.
    for (const ScopeDefined& wrong :
         {scope, ScopeDefined{ScopeId(0), "global", micro(30), micro(10)}}) {
      const auto journal = folder.open();
      const Status refused = journal->append_and_wait({wrong});
      REQUIRE_FALSE(refused.ok());
      CHECK(refused.error().code == Errc::kCorrupt);
      CHECK(must(journal->load()).scopes[0].cap == micro(25));
    }
  }

  TEST_CASE("repeating the last fact changes nothing") {
    const Folder folder;
    auto journal = folder.open();
    for (const JournalWrite& fact : life_of(1)) {
      REQUIRE(journal->append_and_wait({fact}).ok());
      REQUIRE(journal->append_and_wait({fact}).ok());
    }
    REQUIRE(journal->append_and_wait({RunEnded{RunId(1), attempt(1), RunOutcome::kSuccess}}).ok());
    CHECK(must(journal->load()).ended.size() == 1);
  }

  TEST_CASE("a late result of a lost attempt keeps the outcome of the run") {
    const Folder folder;
    auto journal = folder.open();
    REQUIRE(journal
                ->append_and_wait({AttemptIntent{attempt(1), 0, micro(5), at(1)},
                                   AttemptGranted{attempt(1), WorkerId("w"), BootId(7), at(2)},
                                   AttemptLost{attempt(1), "silent", at(3)}})
                .ok());
    auto second = life_of(1);
    std::get<AttemptIntent>(second[0]).attempt = attempt(1, 2);
    std::get<AttemptGranted>(second[1]).attempt = attempt(1, 2);
    std::get<AttemptResult>(second[2]).attempt = attempt(1, 2);
    std::get<AttemptSettled>(second[3]).attempt = attempt(1, 2);
    REQUIRE(journal->append_and_wait(second).ok());
    AttemptResult late = result_of(attempt(1), RunOutcome::kFailure);
    late.sets_outcome = false;
    REQUIRE(journal->append_and_wait({late}).ok());
    const RestoredState state = must(journal->load());
    REQUIRE(state.ended.size() == 1);
    CHECK(state.ended[0].attempt == AttemptNo(2));
    CHECK(state.ended[0].outcome == RunOutcome::kSuccess);
    CHECK(state.attempts[0].outcome == RunOutcome::kFailure);
  }

  TEST_CASE("batches that wait together share one commit and answer in order") {
    const Folder folder;
    auto journal = folder.open();
    std::promise<void> entered;
    std::promise<void> release;
    // The first callback holds the journal's thread until all others are queued.
    journal->append(life_of(0), [&](Status s) {
      CHECK(s.ok());
      entered.set_value();
      release.get_future().wait();
    });
    entered.get_future().wait();
    std::vector<std::uint32_t> order;
    for (std::uint32_t run = 1; run <= 500; ++run) {
      journal->append(life_of(run), [&order, run](Status s) {
        CHECK(s.ok());
        order.push_back(run);
      });
    }
    release.set_value();
    REQUIRE(journal->append_and_wait({}).ok());
    REQUIRE(order.size() == 500);
    CHECK(std::is_sorted(order.begin(), order.end()));
    const JournalStats stats = journal->stats();
    CHECK(stats.batches == 502);
    CHECK(stats.writes == 4 * 501);
    CHECK(stats.commits <= 3);
  }

  TEST_CASE("closing commits what is queued and later appends are refused") {
    const Folder folder;
    auto journal = folder.open();
    std::atomic<int> committed = 0;
    for (std::uint32_t run = 0; run < 50; ++run) {
      journal->append(life_of(run), [&](Status s) { committed += s.ok() ? 1 : 0; });
    }
    CHECK(journal->close().ok());
    CHECK(committed == 50);
    CHECK(error_of(journal->append_and_wait(life_of(99))).code == Errc::kUnavailable);
    CHECK(error_of(journal->load()).code == Errc::kUnavailable);
    CHECK(journal->close().ok());
    CHECK_FALSE(fs::exists(folder.file.string() + "-wal"));
    CHECK(must(folder.open()->load()).ended.size() == 50);
  }

  TEST_CASE("a reader sees what is committed while the coordinator goes on") {
    const Folder folder;
    auto journal = folder.open();
    REQUIRE(journal->append_and_wait(life_of(1)).ok());
    REQUIRE(journal
                ->append_and_wait({EpochBegun{Epoch(4), "h", 1, "0.1.0", at(9)},
                                   Note{at(1), "worker_joined", {}, {}, "{\"worker\":\"w1\"}"},
                                   Note{at(2), "suspect", RunId(1), AttemptNo(1), "{}"}})
                .ok());
    JournalReader reader = must(JournalReader::open(folder.file));
    CHECK(must(reader.load()).ended.size() == 1);
    REQUIRE(journal->append_and_wait(life_of(2)).ok());
    CHECK(must(reader.load()).ended.size() == 2);
    const auto attempts = must(reader.attempts_of(RunId(2)));
    REQUIRE(attempts.size() == 1);
    const AttemptRecord& a = attempts[0];
    const AttemptResult expected = result_of(attempt(2));
    CHECK(a.core.usage == expected.usage);
    CHECK(a.core.worker == WorkerId("worker-2"));
    CHECK(a.rationale == expected.rationale);
    CHECK(a.facts == expected.facts);
    CHECK(a.report == expected.report);
    CHECK(a.archive == expected.archive);
    CHECK(a.archive_bytes == expected.archive_bytes);
    CHECK(a.started_ms == expected.started_ms);
    CHECK(a.finished_ms == expected.finished_ms);
    CHECK(a.cost.total() == micro(1'234'567));
    CHECK(a.intent_at == at(1));
    CHECK(a.granted_at == at(2));
    CHECK(a.result_at == at(66'010));
    CHECK(a.settled_at == at(66'020));
    CHECK(a.ended_at == WallTime(0));
    int visited = 0;
    CHECK(reader.each_attempt([&](const AttemptRecord&) { ++visited; }).ok());
    CHECK(visited == 2);
    const auto notes = must(reader.notes(0, 10));
    REQUIRE(notes.size() == 2);
    CHECK(notes[0].note.kind == "worker_joined");
    CHECK_FALSE(notes[0].note.run.has_value());
    CHECK(must(reader.notes(notes[0].seq, 10)).size() == 1);
    CHECK(must(reader.notes(0, 1)).size() == 1);
    CHECK(notes[1].note.run == RunId(1));
    CHECK(notes[1].note.attempt == AttemptNo(1));
    CHECK(must(reader.epochs()).at(0).pid == 1);
    CHECK(must(reader.meta("x")) == std::nullopt);
  }

  TEST_CASE("a shell sees the story of an attempt and the balance") {
    const Folder folder;
    auto journal = folder.open();
    REQUIRE(journal->append_and_wait(two_scopes()).ok());
    REQUIRE(journal->append_and_wait(life_of(1)).ok());
    REQUIRE(journal
                ->append_and_wait({AttemptIntent{attempt(2), 0, micro(70), at(1)},
                                   AttemptGranted{attempt(2), WorkerId("w"), BootId(7), at(2)},
                                   AttemptIntent{attempt(3), 0, micro(90), at(1)}})
                .ok());
    CHECK(shell(folder.file, "SELECT spent, reserved, overrun, cap FROM balance") ==
          "1234567|70|0|100000000\n");
    CHECK(shell(folder.file, "SELECT fact FROM attempt_story WHERE run = 1") ==
          "intent\ngranted\nresult\nsettled\n");
    CHECK(
        shell(folder.file, "SELECT detail FROM attempt_story WHERE run = 1 AND fact = 'result'") ==
        "success, completed: all checks passed\n");
  }
}
