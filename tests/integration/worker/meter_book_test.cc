// What a killed worker knew of its attempts, on disk: half-written pages, forged ones, other boots.
#include "worker/shell/meter_book.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "common/base/digest.h"
#include "common/base/system_clock.h"

using namespace proctor;

namespace {

wire::ResultMessage so_far(std::uint32_t run) {
  wire::ResultMessage r;
  r.epoch = Epoch(4);
  r.attempt = {RunId(run), AttemptNo(2)};
  r.started_ms = r.finished_ms = 1000;
  return r;
}

Usage used(std::uint64_t micros) {
  Usage u;
  u.model_calls = 1;
  u.priced_micros = micros;
  u.agent_ms = 7;
  return u;
}

struct Shelf {
  TempDir temp = TempDir::create("books").value();
  fs::path root = temp.path() / "meters";
  std::unique_ptr<MeterBook> book(std::uint32_t run) {
    auto made = MeterBook::create(root, "camp1", so_far(run));
    REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().detail));
    return std::move(*made);
  }
  fs::path file(std::uint32_t run) const {
    return root / "camp1" / (std::to_string(run) + ".2.meter");
  }
  void change(std::uint32_t run, const std::string& from, const std::string& to) const {
    std::string bytes = read_file(file(run), 1 << 20).value();
    for (std::size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + 1))
      bytes.replace(at, from.size(), to);
    REQUIRE(write_file(file(run), bytes).ok());
  }
};

// A page as another boot of the kernel would have written it.
std::string of_boot(const std::string& page, const std::string& boot) {
  std::istringstream words(page);
  std::array<std::string, 11> w;
  for (std::string& word : w) words >> word;
  w[2] = boot;
  std::string head;
  for (const std::string& word : w) head += word + " ";
  const std::string body = page.substr(page.find('\n') + 1, std::stoul(w[9]));
  head.resize(head.size() - w[10].size() - 1);  // the digest
  std::string out = head + sha256(head + body).hex() + "\n" + body;
  out.resize(4096);
  return out;
}

// All pages of a book.
std::string book_of_boot(const fs::path& file, const std::string& boot) {
  const std::string bytes = read_file(file, 1 << 20).value();
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 4096)
    out += bytes[at] == '\0' ? bytes.substr(at, 4096) : of_boot(bytes.substr(at, 4096), boot);
  return out;
}

const Instant kNow(Millis(100'000));

}  // namespace

TEST_SUITE("meter book") {
  TEST_CASE("the last page counts and the attempt becomes a result of its own") {
    Shelf shelf;
    const auto book = shelf.book(3);
    const auto untouched = shelf.book(1);
    for (std::uint64_t n = 1; n <= 101; ++n) book->write(used(n), std::nullopt);
    const auto left =
        end_of_left_attempts(MeterBook::read_all(shelf.root), true, kNow, WallTime(5000));
    REQUIRE(left.size() == 2);
    CHECK(left[0].so_far.attempt == so_far(1).attempt);
    CHECK(left[0].so_far.usage == Usage{});
    const wire::ResultMessage& r = left[1].so_far;
    CHECK(left[1].campaign == "camp1");
    CHECK(r.attempt == so_far(3).attempt);
    CHECK(r.epoch == Epoch(4));
    CHECK(r.usage == used(101));
    CHECK(r.infrastructure);
    CHECK(r.outcome == RunOutcome::kInvalid);
    CHECK(r.termination == Termination::kInfrastructure);
    CHECK(r.archive_bytes == 0);
    CHECK(r.started_ms == 1000);
    CHECK(r.finished_ms == 5000);
  }

  TEST_CASE("a command under way is charged until now and never beyond its limit") {
    Shelf shelf;
    const auto agent_ms = [&](Instant since, bool docker, bool clean) {
      const auto book = shelf.book(1);
      book->write(used(1), MeterBook::Command{MeterPhase::kAgent, since, Millis(60'000), docker});
      return end_of_left_attempts(MeterBook::read_all(shelf.root), clean, kNow, WallTime(0))
          .at(0)
          .so_far.usage.agent_ms;
    };
    CHECK(agent_ms(kNow - Millis(40), false, true) == 7 + 40);
    CHECK(agent_ms(kNow - Millis(90'000), false, true) == 7 + 60'000);
    CHECK(agent_ms(kNow + Millis(5), false, true) == 7);
    CHECK(agent_ms(kNow - Millis(40), true, true) == 7 + 40);
    CHECK(agent_ms(kNow - Millis(40), true, false) == 7 + 60'000);  // it may still run there
    const auto book = shelf.book(1);
    book->write({}, MeterBook::Command{MeterPhase::kSetup, kNow - Millis(9), Millis(10), false});
    CHECK(end_of_left_attempts(MeterBook::read_all(shelf.root), true, kNow, WallTime(0))
              .at(0)
              .so_far.usage.setup_ms == 9);
    book->write({}, MeterBook::Command{MeterPhase::kAcceptance, kNow, Millis(10), false});
    CHECK(end_of_left_attempts(MeterBook::read_all(shelf.root), true, kNow + Millis(4), WallTime(0))
              .at(0)
              .so_far.usage.acceptance_ms == 4);
  }

  TEST_CASE("a page that was half written leaves the one before it") {
    Shelf shelf;
    const auto book = shelf.book(1);
    book->write(used(10), std::nullopt);
    book->write(used(20), std::nullopt);
    constexpr std::size_t kPage = 4096, kTorn = 60;
    std::string bytes = read_file(shelf.file(1), 1 << 20).value();
    REQUIRE(bytes.size() == 4 * kPage);
    const std::size_t last = bytes.find("proctor-meter-2 3 ");
    REQUIRE(last != std::string::npos);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(last + kTorn), kPage - kTorn, '\0');
    REQUIRE(write_file(shelf.file(1), bytes).ok());
    const auto left = MeterBook::read_all(shelf.root);
    REQUIRE(left.size() == 1);
    CHECK(left[0].so_far.usage == used(10));
  }

  TEST_CASE("a book that cannot be believed is no claim at all") {
    Shelf shelf;
    for (const std::uint32_t run : {1U, 2U, 3U, 4U, 5U, 6U, 7U})
      shelf.book(run)->write(used(1), {});
    const std::string page = read_file(shelf.file(1), 1 << 20).value();
    const std::size_t word = page.find(' ', page.find(' ') + 1) + 1;
    const std::string boot = page.substr(word, page.find(' ', word) - word);
    REQUIRE(20 < boot.size());
    shelf.change(1, boot, std::string(boot.size(), '0'));  // changed, not hashed anew
    shelf.change(6, "proctor-meter-2 1", "proctor-meter-2 8");
    shelf.change(6, "proctor-meter-2 2", "proctor-meter-2 9");
    shelf.change(6, "proctor-meter-claim-2 1", "proctor-meter-claim-2 8");
    REQUIRE(write_file(shelf.file(7), book_of_boot(shelf.file(7), "unknown")).ok());
    REQUIRE(write_file(shelf.file(2), "").ok());                         // empty
    REQUIRE(write_file(shelf.file(3), std::string(1 << 20, 'x')).ok());  // too large
    fs::rename(shelf.file(4), shelf.file(9));                            // another attempt's
    const auto left = MeterBook::read_all(shelf.root);
    REQUIRE(left.size() == 1);
    CHECK(left[0].so_far.attempt == so_far(5).attempt);
    CHECK_FALSE(fs::exists(shelf.file(1)));  // and is not looked at again
    CHECK_FALSE(fs::exists(shelf.file(9)));
  }

  TEST_CASE(
      "when the power was lost the most that any page grants is charged, and the time since") {
    Shelf shelf;
    const std::string other(36, '0');
    const auto after = [&](const std::optional<MeterBook::Command>& command, Millis away) {
      const auto book = shelf.book(1);
      book->write(used(5), command);
      REQUIRE(write_file(shelf.file(1), book_of_boot(shelf.file(1), other)).ok());
      auto left = MeterBook::read_all(shelf.root);
      REQUIRE(left.size() == 1);
      REQUIRE(left[0].before.has_value());
      const WallTime wall(left[0].before->wall.raw() + away.count());
      // The steady clock of this boot says nothing of that one's.
      return end_of_left_attempts(std::move(left), false, Instant(Millis(1)), wall).at(0).so_far;
    };
    const auto begun = [](Millis ago) {
      return MeterBook::Command{MeterPhase::kAgent, mono_now() - ago, Millis(60'000), true};
    };
    const wire::ResultMessage r = after(begun(Millis(30'000)), Millis(10'000));
    CHECK(r.usage.priced_micros == 5);
    CHECK(r.usage.model_calls == 1);
    CHECK(7 + 40'000 <= r.usage.agent_ms);
    CHECK(r.usage.agent_ms < 7 + 50'000);
    CHECK(r.infrastructure);
    CHECK(r.rationale.find("its host went down") == 0);
    CHECK(after(begun(Millis(30'000)), Millis(86'400'000)).usage.agent_ms == 7 + 60'000);
    CHECK(after(begun(Millis(0)), Millis(-1)).usage.agent_ms == 7 + 60'000);  // a clock set back
    CHECK(after(std::nullopt, Millis(86'400'000)).usage.agent_ms == 7 + 2'000);
    CHECK(after(std::nullopt, Millis(0)).usage.agent_ms == 7);
  }

  TEST_CASE("the page that is on the disk claims calls to come and is not written over") {
    Shelf shelf;
    const auto book = shelf.book(1);
    const auto page_of = [&](const char* magic) {
      const std::string bytes = read_file(shelf.file(1), 1 << 20).value();
      const std::size_t at = bytes.rfind(magic);
      return at == std::string::npos ? std::string() : bytes.substr(at, 4096);
    };
    const auto after_power_loss = [&](const std::string& page) {
      const fs::path root = shelf.temp.path() / "afterwards";
      REQUIRE(make_dirs(root / "camp1").ok());
      REQUIRE(write_file(root / "camp1/1.2.meter", of_boot(page, std::string(36, '0'))).ok());
      return MeterBook::read_all(root).at(0).so_far.usage;
    };
    const auto grant = [&](std::uint64_t micros, std::int64_t free) {
      book->write(used(micros), std::nullopt, MicroUsd::from_micros(free));
      book->cover();
    };
    grant(100, 1'000);
    const std::string claim = page_of("proctor-meter-claim-2 2 ");
    REQUIRE_FALSE(claim.empty());
    CHECK(after_power_loss(claim).priced_micros == 100 + 8 * 100);
    CHECK(after_power_loss(claim).model_calls == 1 + 128);
    CHECK(MeterBook::read_all(shelf.root).at(0).so_far.usage == used(100));
    // ... but where nothing else is left.
    const fs::path alone = shelf.temp.path() / "alone";
    REQUIRE(make_dirs(alone / "camp1").ok());
    REQUIRE(write_file(alone / "camp1/1.2.meter", claim).ok());
    CHECK(MeterBook::read_all(alone).at(0).so_far.usage.priced_micros == 100 + 8 * 100);
    // Within half of the claim, and whatever comes to less: no other one is written.
    for (std::uint64_t n = 1; n < 500; ++n) grant(n, 1'000);
    CHECK(page_of("proctor-meter-claim-2 2 ") == claim);
    CHECK(MeterBook::read_all(shelf.root).at(0).so_far.usage == used(499));
    // Before it is used up the next one is there.
    grant(500, 1'000);
    CHECK(after_power_loss(page_of("proctor-meter-claim-2 502 ")).priced_micros == 500 + 8 * 100);
    // A claim has no more than can be spent, and a claim of all there is suffices.
    grant(1'400, 100);
    CHECK(after_power_loss(page_of("proctor-meter-claim-2 503 ")).priced_micros == 1'500);
    grant(1'500, 0);
    CHECK(page_of("proctor-meter-claim-2 504 ").empty());
    // A claim is of calls of models alone.
    Usage tool = used(1'500);
    tool.tool_calls = 1;
    book->write(tool, std::nullopt);
    book->cover();
    CHECK(after_power_loss(page_of("proctor-meter-claim-2 505 ")).tool_calls == 1);
    // Time is synced when it is asked for.
    book->write(tool, MeterBook::Command{MeterPhase::kAgent, kNow, Millis(60'000), false});
    book->sync();
    CHECK_FALSE(page_of("proctor-meter-claim-2 506 ").empty());
  }

  TEST_CASE("an attempt whose result is safe has no book any more") {
    Shelf shelf;
    const auto book = shelf.book(1);
    book->close();
    book->write(used(1), std::nullopt);
    CHECK(MeterBook::read_all(shelf.root).empty());
    CHECK(MeterBook::read_all(shelf.temp.path() / "nowhere").empty());
    CHECK_FALSE(MeterBook::create(shelf.root, "../escape", so_far(1)).ok());
  }

  TEST_CASE("lives are told while their books are whole") {
    Shelf shelf;
    CHECK(lives_with_books(shelf.root).empty());
    for (std::uint64_t life = 1; life <= 10; ++life)
      REQUIRE(begin_life(shelf.root, BootId(life)).ok());
    CHECK(lives_with_books(shelf.root).size() == 8);
    CHECK(lives_with_books(shelf.root).back() == BootId(10));
    shelf.book(1)->write(used(1), {});
    CHECK(MeterBook::read_all(shelf.root).size() == 1);
    CHECK(lives_with_books(shelf.root).size() == 8);
    // A book that cannot be believed may be of anything.
    REQUIRE(write_file(shelf.file(2), "x").ok());
    CHECK(MeterBook::read_all(shelf.root).size() == 1);
    CHECK(lives_with_books(shelf.root).empty());
    // A release that synced neither books nor list began with the boot of its kernel.
    REQUIRE(begin_life(shelf.root, BootId(11)).ok());
    const std::string text = read_file(shelf.root / "lives", 4096).value();
    REQUIRE(text == "synced 11\n");
    REQUIRE(write_file(shelf.root / "lives", "0f3c" + text.substr(text.find(' '))).ok());
    CHECK(lives_with_books(shelf.root).empty());
  }

  TEST_CASE("an attempt whose first page never reached the disk never began") {
    Shelf shelf;
    REQUIRE(begin_life(shelf.root, BootId(1)).ok());
    shelf.book(1)->write(used(1), {});
    // As the power leaves a file whose pages were not synced: without its bytes, or not yet long.
    REQUIRE(write_file(shelf.file(2), std::string(4 * 4096, '\0')).ok());
    REQUIRE(write_file(shelf.file(3), "").ok());
    const auto left = MeterBook::read_all(shelf.root);
    REQUIRE(left.size() == 1);
    CHECK(left[0].so_far.attempt == so_far(1).attempt);
    CHECK_FALSE(fs::exists(shelf.file(2)));
    CHECK_FALSE(fs::exists(shelf.file(3)));
    CHECK(lives_with_books(shelf.root) == std::vector<BootId>{BootId(1)});
  }
}
