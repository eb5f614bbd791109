// What a selftest says of what it found, and what it is worth.
#include <doctest/doctest.h>

#include "common/base/json_fields.h"
#include "worker/selftest/selftest.h"

using namespace proctor;

namespace {

using Verdict = ContainmentResult::Verdict;

KindReport kind(const char* name, std::vector<Verdict> verdicts) {
  KindReport out;
  out.kind = name;
  for (const Verdict v : verdicts) {
    ContainmentResult result;
    result.verdict = v;
    out.cases.push_back({"case" + std::to_string(out.cases.size()), "a promise", result});
  }
  return out;
}

KindReport absent(const char* name) {
  KindReport out;
  out.kind = name;
  out.missing = "no program";
  return out;
}

SelftestReport of(std::vector<KindReport> kinds) {
  SelftestReport out;
  out.kinds = std::move(kinds);
  return out;
}

}  // namespace

TEST_SUITE("selftest report") {
  TEST_CASE("every kind that is offered must contain all and one must be offered") {
    const KindReport good = kind("good", {Verdict::kContained, Verdict::kContained});
    CHECK(of({good}).untrusted_allowed());
    CHECK(of({good, absent("none")}).untrusted_allowed());
    CHECK_FALSE(of({}).untrusted_allowed());
    CHECK_FALSE(of({absent("none")}).untrusted_allowed());
    for (const Verdict bad :
         {Verdict::kEscaped, Verdict::kNotEnforced, Verdict::kNotTried, Verdict::kError}) {
      const SelftestReport report = of({good, kind("bad", {Verdict::kContained, bad})});
      CHECK_FALSE(report.untrusted_allowed());
      CHECK(report.verdict() ==
            "no: this host must not run untrusted agents under bad, which it offers; under good it "
            "could");
    }
    CHECK_FALSE(of({good, kind("bad", {})}).untrusted_allowed());
  }

  TEST_CASE("a line for each kind says what escaped and what to do") {
    CHECK(absent("oci").told() == "oci: not offered here (no program)");
    CHECK(kind("oci", {Verdict::kContained}).told() == "oci: every attack was contained");
    const std::string told =
        kind("oci", {Verdict::kEscaped, Verdict::kContained, Verdict::kNotTried}).told();
    CHECK(told.starts_with("oci: escaped: case0; not tried: case2: run no agent under it: "));
    CHECK(kind("oci", {Verdict::kNotEnforced}).told().starts_with("oci: nobody keeps: case0: "));
    CHECK(kind("oci", {Verdict::kError}).told().starts_with("oci: errors: case0: "));
    const std::string text = selftest_text(of({kind("oci", {Verdict::kNotTried})}));
    CHECK(text.find("\noci: not tried: case0: run the worker where it sees") != std::string::npos);
    CHECK(to_json(of({kind("oci", {Verdict::kNotTried})}))["kinds"][0]["cases"][0]["verdict"] ==
          "NOT TRIED");
  }

  TEST_CASE("what is not known to be harmless comes after the proof") {
    bool proof = false;
    for (const ContainmentCase& what : containment_cases()) {
      if (&what == &containment_cases().front()) {
        proof = what.proof;
        CHECK(what.harmless);
        continue;
      }
      CHECK_FALSE(what.proof);
      const std::string name = what.name;
      const bool looks = name == "network" || name == "other-processes" || name == "odd-names";
      CHECK(what.harmless == looks);
    }
    CHECK(proof);
  }
}
