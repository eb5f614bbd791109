#include "common/ledger/ledger.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {

MicroUsd micro(std::int64_t n) {
  return MicroUsd::from_micros(n);
}
AskId ask_id(std::uint32_t run, std::uint32_t attempt = 1, std::uint32_t seq = 0) {
  return {{RunId(run), AttemptNo(attempt)}, seq};
}
Ledger three_scopes() {
  return Ledger({{"global", micro(100)}, {"stage:pilot", micro(60)}, {"task:a", micro(30)}});
}
const std::vector<ScopeId> kAll{ScopeId(0), ScopeId(1), ScopeId(2)};

// All that can be seen of a ledger, to prove that a refusal changed nothing.
std::vector<std::int64_t> picture(const Ledger& l) {
  std::vector<std::int64_t> out{static_cast<std::int64_t>(l.open_reservations())};
  for (std::uint32_t i = 0; i < l.scopes().size(); ++i) {
    const ScopeBalance b = l.balance(ScopeId(i));
    out.insert(out.end(), {b.cap.micros(), b.spent.micros(), b.reserved.micros()});
  }
  return out;
}

}  // namespace

TEST_SUITE("ledger") {
  TEST_CASE("money reserved and settled moves through every envelope") {
    Ledger l = three_scopes();
    auto granted = l.reserve({ask_id(1), micro(20), kAll});
    REQUIRE(granted.ok());
    CHECK(granted->kind == ReserveAnswer::Kind::kGranted);
    CHECK_FALSE(granted->replayed);
    CHECK(picture(l) == std::vector<std::int64_t>{1, 100, 0, 20, 60, 0, 20, 30, 0, 20});
    auto settled = l.settle({ask_id(1), micro(15)});
    REQUIRE(settled.ok());
    CHECK(*settled == SettleAnswer{micro(15), micro(0), false});
    CHECK(picture(l) == std::vector<std::int64_t>{0, 100, 15, 0, 60, 15, 0, 30, 15, 0});
  }

  TEST_CASE("a denial names the outermost short scope and by how much") {
    Ledger l = three_scopes();
    struct Row {
      const char* what;
      std::int64_t ask;
      std::uint32_t scope;
      std::int64_t short_by;
    };
    const Row rows[] = {{"only the task is short", 31, 2, 1},
                        {"task and stage are short", 61, 1, 1},
                        {"all three are short", 103, 0, 3}};
    std::uint32_t run = 0;
    for (const Row& row : rows) {
      CAPTURE(row.what);
      auto a = l.reserve({ask_id(++run), micro(row.ask), kAll});
      REQUIRE(a.ok());
      CHECK(*a == ReserveAnswer{ReserveAnswer::Kind::kDenied, ScopeId(row.scope),
                                micro(row.short_by), false});
    }
    CHECK(picture(l) == std::vector<std::int64_t>{0, 100, 0, 0, 60, 0, 0, 30, 0, 0});
  }

  TEST_CASE("an ask of exactly what is left is granted and one micro more is not") {
    Ledger l = three_scopes();
    CHECK(l.reserve({ask_id(1), micro(30), kAll})->kind == ReserveAnswer::Kind::kGranted);
    CHECK(l.reserve({ask_id(2), micro(0), kAll})->kind == ReserveAnswer::Kind::kGranted);
    CHECK(l.reserve({ask_id(3), micro(1), kAll})->kind == ReserveAnswer::Kind::kDenied);
  }

  TEST_CASE("a denial sticks to its id although money came back") {
    Ledger l = three_scopes();
    REQUIRE(l.reserve({ask_id(1), micro(30), kAll}).ok());
    const auto first = l.reserve({ask_id(2), micro(10), kAll});
    REQUIRE(first->kind == ReserveAnswer::Kind::kDenied);
    REQUIRE(l.cancel({ask_id(1)}).ok());
    const auto again = l.reserve({ask_id(2), micro(10), kAll});
    CHECK(again->kind == ReserveAnswer::Kind::kDenied);
    CHECK(again->short_by == first->short_by);
    CHECK(again->replayed);
    CHECK(l.reserve({ask_id(2, 1, 1), micro(10), kAll})->kind == ReserveAnswer::Kind::kGranted);
  }

  TEST_CASE("a replayed reserve gives the stored grant even after it was settled") {
    Ledger l = three_scopes();
    REQUIRE(l.reserve({ask_id(1), micro(20), kAll}).ok());
    for (int i = 0; i < 2; ++i) {
      const auto again = l.reserve({ask_id(1), micro(20), kAll});
      REQUIRE(again.ok());
      CHECK(again->kind == ReserveAnswer::Kind::kGranted);
      CHECK(again->replayed);
      REQUIRE(l.settle({ask_id(1), micro(5)}).ok());
    }
    CHECK(l.balance(ScopeId(0)).spent == micro(5));
    CHECK(l.open_reservations() == 0);
  }

  TEST_CASE("a settle above the ask charges the ask and reports the rest") {
    Ledger l = three_scopes();
    REQUIRE(l.reserve({ask_id(1), micro(20), kAll}).ok());
    CHECK(*l.settle({ask_id(1), micro(27)}) == SettleAnswer{micro(20), micro(7), false});
    CHECK(*l.settle({ask_id(1), micro(27)}) == SettleAnswer{micro(20), micro(7), true});
    CHECK(l.balance(ScopeId(2)).spent == micro(20));
    // The same charge but another metered amount is another settlement.
    CHECK(l.settle({ask_id(1), micro(26)}).error().code == Errc::kConflict);
  }

  TEST_CASE("a refusal leaves the ledger as it was") {
    Ledger l = three_scopes();
    REQUIRE(l.reserve({ask_id(1), micro(10), kAll}).ok());
    REQUIRE(l.reserve({ask_id(2), micro(10), kAll}).ok());
    REQUIRE(l.settle({ask_id(2), micro(4)}).ok());
    REQUIRE(l.reserve({ask_id(3), micro(10), kAll}).ok());
    REQUIRE(l.cancel({ask_id(3)}).ok());
    REQUIRE(l.reserve({ask_id(4), micro(1000), kAll}).ok());
    const auto before = picture(l);
    const std::vector<ScopeId> nine(9, ScopeId(0));
    struct Row {
      const char* what;
      LedgerOp op;
      Errc code;
    };
    const Row rows[] = {
        {"negative ask", ReserveOp{ask_id(9), micro(-1), kAll}, Errc::kInvalid},
        {"ask above 2^53 - 1", ReserveOp{ask_id(9), kLedgerMax + micro(1), kAll}, Errc::kInvalid},
        {"no scope", ReserveOp{ask_id(9), micro(1), {}}, Errc::kInvalid},
        {"nine scopes", ReserveOp{ask_id(9), micro(1), nine}, Errc::kInvalid},
        {"scope twice", ReserveOp{ask_id(9), micro(1), {ScopeId(1), ScopeId(1)}}, Errc::kInvalid},
        {"unknown scope", ReserveOp{ask_id(9), micro(1), {ScopeId(3)}}, Errc::kInvalid},
        {"other ask", ReserveOp{ask_id(1), micro(11), kAll}, Errc::kConflict},
        {"other scopes", ReserveOp{ask_id(1), micro(10), {ScopeId(0)}}, Errc::kConflict},
        {"other ask of a settled one", ReserveOp{ask_id(2), micro(4), kAll}, Errc::kConflict},
        {"other ask of a denied one", ReserveOp{ask_id(4), micro(1), kAll}, Errc::kConflict},
        {"settle of nothing", SettleOp{ask_id(9), micro(1)}, Errc::kNotFound},
        {"settle of a later ask", SettleOp{ask_id(1, 1, 1), micro(1)}, Errc::kNotFound},
        {"negative settle", SettleOp{ask_id(1), micro(-1)}, Errc::kInvalid},
        {"settle with another amount", SettleOp{ask_id(2), micro(5)}, Errc::kConflict},
        {"settle after void", SettleOp{ask_id(3), micro(1)}, Errc::kConflict},
        {"settle of a denial", SettleOp{ask_id(4), micro(1)}, Errc::kConflict},
        {"void of nothing", VoidOp{ask_id(9)}, Errc::kNotFound},
        {"void after settle", VoidOp{ask_id(2)}, Errc::kConflict},
        {"void of a denial", VoidOp{ask_id(4)}, Errc::kConflict},
        {"forget of a pending one", ForgetOp{ask_id(1)}, Errc::kConflict},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      const LedgerAnswer answer = l.apply(row.op);
      const auto* error = std::get_if<Error>(&answer);
      REQUIRE(error != nullptr);
      CHECK(error->code == row.code);
      CHECK(picture(l) == before);
    }
  }

  TEST_CASE("voiding twice frees the money once") {
    Ledger l = three_scopes();
    REQUIRE(l.reserve({ask_id(1), micro(10), kAll}).ok());
    REQUIRE(l.reserve({ask_id(2), micro(10), kAll}).ok());
    CHECK(l.cancel({ask_id(1)}).ok());
    CHECK(l.cancel({ask_id(1)}).ok());
    CHECK(l.balance(ScopeId(0)).reserved == micro(10));
    CHECK(l.open_reservations() == 1);
  }

  TEST_CASE("forgetting drops the answer and keeps the money") {
    Ledger l = three_scopes();
    REQUIRE(l.reserve({ask_id(1), micro(10), kAll}).ok());
    REQUIRE(l.settle({ask_id(1), micro(10)}).ok());
    l.forget(ask_id(1));
    l.forget(ask_id(1));
    CHECK(l.balance(ScopeId(0)).spent == micro(10));
    CHECK(l.settle({ask_id(1), micro(10)}).error().code == Errc::kNotFound);
  }

  TEST_CASE("amounts are exact up to the largest one") {
    Ledger l({{"global", kLedgerMax}});
    const std::vector<ScopeId> global{ScopeId(0)};
    REQUIRE(l.reserve({ask_id(1), kLedgerMax - micro(1), global}).ok());
    CHECK(l.reserve({ask_id(2), kLedgerMax, global})->short_by == kLedgerMax - micro(1));
    CHECK(l.reserve({ask_id(3), micro(1), global})->kind == ReserveAnswer::Kind::kGranted);
    CHECK(l.balance(ScopeId(0)).free() == micro(0));
    CHECK(l.settle({ask_id(1), kLedgerMax})->overrun == micro(1));
  }

  TEST_CASE("an ask is named by run and attempt and sequence") {
    CHECK(to_string(ask_id(17, 2, 3)) == "17.2.3");
  }
}
