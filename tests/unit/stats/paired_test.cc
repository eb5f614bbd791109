#include "common/stats/paired.h"

#include <cmath>
#include <vector>

#include "common/stats/resample.h"
#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

// Figures by NumPy, SciPy and statsmodels.
TEST_SUITE("stats") {
  TEST_CASE("a ratio has the cluster-robust errors and the degrees of the second") {
    const auto b = ratio_rate(side_of(unequal_pairs(), &PairedTask::a));
    REQUIRE(b.has_value());
    CHECK(b->ratio == near(0.6111111111));
    CHECK(*b->cr1 == near(0.1689825385));
    CHECK(*b->cr2 == near(0.1714286255));
    CHECK(*b->df == near(4.237029502));
    check_interval(b->interval, 0.1454682108, 1.076754011);
    const auto a = ratio_rate(side_of(equal_pairs(), &PairedTask::a));
    CHECK(*a->cr1 == near(*a->cr2));
    CHECK(*a->df == near(7));
    CHECK_FALSE(ratio_rate(std::vector<Cluster>{{5, 2}, {0, 0}})->cr2.has_value());
  }

  TEST_CASE("near 0 and 1 the tasks' spread says what the runs are worth") {
    const auto a = near_ends(side_of(equal_pairs(), &PairedTask::a));
    REQUIRE(a.has_value());
    CHECK(*a->effective_n == near(11.82119205));
    check_interval(a->wilson, 0.276330983, 0.7708401191);
    check_interval(a->korn_graubard, 0.191220444, 0.8505599036);
    const std::vector<Cluster> scripted = {{2, 0}, {2, 0}, {2, 0}, {2, 1}, {2, 2}, {1, 1}, {2, 0}};
    const auto q = near_ends(scripted);
    CHECK(*q->effective_n == near(7.105263158));
    check_interval(q->wilson, 0.1190347219, 0.6955147668);
    check_interval(q->korn_graubard, 0.04707541201, 0.8056755697);
    const auto ones = near_ends(std::vector<Cluster>(7, Cluster{2, 2}));
    CHECK_FALSE(ones->effective_n.has_value());
    check_interval(ones->korn_graubard, 0.6456695649, 1);
    CHECK_FALSE(near_ends(std::vector<Cluster>{{0, 0}}).has_value());
  }

  TEST_CASE("a paired difference is Student's t over tasks") {
    const Difference d = paired_difference(equal_pairs());
    CHECK(*d.estimate.value == near(0.1875));
    CHECK(*d.estimate.standard_error == near(0.09149063184));
    CHECK(*d.p == near(0.07960201246));
    check_interval(d.estimate.interval, -0.02884096679, 0.4038409668);
    CHECK(*d.estimate.value / *d.estimate.standard_error == near(2.049390153));
  }

  TEST_CASE("a difference that cannot be estimated says why") {
    CHECK(mean_difference({}).estimate.why == Why::kNotPaired);
    CHECK(mean_difference(std::vector<double>{0.5}).estimate.why == Why::kOneTask);
    const Difference same = mean_difference(std::vector<double>{0.1, 0.1, 0.1});
    CHECK(same.estimate.why == Why::kNoVariance);
    CHECK(*same.estimate.value == 0.1);
    CHECK_FALSE(same.estimate.interval.has_value());
    CHECK_FALSE(same.p.has_value());
  }

  TEST_CASE("with unequal runs the ratio's difference and that of task means are two estimands") {
    const Difference r = paired_difference(unequal_pairs(), 0.05, Weighing::kRuns);
    CHECK(*r.estimate.value == near(0.2222222222));
    CHECK(*r.estimate.standard_error == near(0.1391561215));
    check_interval(r.estimate.interval, -0.1354899761, 0.5799344205);
    const Difference m = paired_difference(unequal_pairs());
    CHECK(*m.estimate.value == near(0.25));
    CHECK(*m.estimate.standard_error == near(0.1875771446));
  }

  TEST_CASE("equivalence within a margin is the interval lying inside it") {
    std::vector<double> d;
    for (const PairedTask& t : equal_pairs())
      d.push_back(static_cast<double>(t.a.successes) / 4 - static_cast<double>(t.b.successes) / 4);
    CHECK(equivalence(d, 0.5)->p_equivalent == near(0.005600716277));
    CHECK(equivalence(d, 0.35)->p_equivalent == near(0.05948228555));
    CHECK(equivalence(d, 0.05)->p_non_inferior == near(0.01781878000));
    check_interval(equivalence(d, 0.5)->interval, 0.01416380635, 0.3608361936);
    for (const double margin : {0.1, 0.3, 0.36, 0.361, 0.5}) {
      const auto e = equivalence(d, margin);
      CHECK((e->p_equivalent <= 0.05) == (-margin < e->interval.low && e->interval.high < margin));
    }
  }

  TEST_CASE("the sign-flip test enumerates all signs") {
    const std::vector<std::int64_t> small = {1, 2, 0, 0, 1, 1, -1, 2};
    CHECK(sign_flip(small).p == near(40.0 / 256));
    CHECK(sign_flip(small).exact);
    const std::vector<std::int64_t> twelve = {3, -1, 2, 0, 1, -2, 4, 1, 0, 2, -1, 3};
    CHECK(sign_flip(twelve).p == near(504.0 / 4096));
    const std::vector<std::int64_t> quickstart = {2, 2, 2, 1, 0, 0, 2};
    CHECK(sign_flip(quickstart).p == near(8.0 / 128));
    CHECK(sign_flip({}).p == 1);
    CHECK(sign_flip(std::vector<std::int64_t>{0, 0}).p == 1);
  }

  TEST_CASE("signs that are flipped in parts come to what they come to together") {
    PhiloxWords words(7, Stream::kExamples, 0);
    std::size_t exact = 0, seen_p = 0;
    for (std::size_t round = 0; round < 300; ++round) {
      std::vector<std::int64_t> all, some;
      SignFlips flips;
      const std::size_t parts = words.next() % 4, reach = 1 + words.next() % 7;
      const auto drawn = [&](std::size_t n) {
        std::vector<std::int64_t> out;
        // More of the one sign than of the other, so that small p come up too.
        for (std::size_t i = 0; i < n; ++i)
          out.push_back(static_cast<std::int64_t>(words.next() % (2 * reach)) -
                        static_cast<std::int64_t>(reach / 2));
        all.insert(all.end(), out.begin(), out.end());
        return out;
      };
      for (std::size_t part = 0; part < parts; ++part) flips.add(drawn(words.next() % 20));
      some = drawn(words.next() % 20);
      const Significance together = sign_flip(all), apart = flips.with(some);
      CAPTURE(round);
      CHECK(apart.statistic == together.statistic);
      CHECK(apart.exact == together.exact);
      CHECK(apart.p == near(together.p, 1e-12));
      exact += together.exact ? 1 : 0;
      seen_p += together.p < 0.01 ? 1 : 0;
    }
    CHECK(exact == 300);
    CHECK(50 < seen_p);
    // Too many for all sums: the normal law, as of all together.
    const std::vector<std::int64_t> many(20'000, 5'000), few = {1, -3, 2};
    SignFlips large;
    large.add(many);
    CHECK_FALSE(large.with(few).exact);
    std::vector<std::int64_t> all = many;
    all.insert(all.end(), few.begin(), few.end());
    CHECK(large.with(few).p == near(sign_flip(all).p, 1e-12));
    CHECK(SignFlips().with({}).p == 1);
    SignFlips none;
    none.add(std::vector<std::int64_t>{0, 0});
    CHECK(none.with(std::vector<std::int64_t>{2, -2}).p == 1);
  }

  TEST_CASE("a sign-flip test that would take too long is the normal approximation, and says so") {
    const std::vector<std::int64_t> large(20'000, 5'000);
    const Significance r = sign_flip(large);
    CHECK_FALSE(r.exact);
    CHECK(r.p < 1e-12);
  }

  TEST_CASE("one run a task: McNemar's exact test") {
    CHECK(mcnemar_exact({0, 9, 2, 0}) == near(0.0654296875));
    CHECK(mcnemar_exact({0, 12, 5, 0}) == near(0.1434631348));
    CHECK(mcnemar_exact({0, 1, 0, 0}) == 1);
    CHECK(mcnemar_exact({0, 5, 5, 0}) == 1);
    CHECK(mcnemar_exact({3, 0, 0, 3}) == 1);
  }
}
