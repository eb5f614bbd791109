#include "common/base/files.h"
#include "tests/integration/cvdp/run_proctor.h"

using namespace proctor;

namespace {
constexpr const char* kGood =
    R"({"id":"cvdp_agentic_a_1","categories":["cid003","easy"],"prompt":"p","context":{},"patch":{"x":""},"harness":{"docker-compose.yml":"x"}})"
    "\n";
}

TEST_SUITE("cvdp") {
  TEST_CASE("cvdp check counts problems and ends 2 on any error") {
    const TempDir dir = must(TempDir::create());
    const fs::path file = dir.path() / "d.jsonl";
    must(write_file(file, kGood));
    const CommandOutcome good = run_proctor({"cvdp", "check", file});
    CHECK(good.exit_code == 0);
    CHECK(contains(good.out,
                   "1 problems: 0 copilot, 1 agentic (0 heavy); 0 comprehension, 1 redacted"));
    must(write_file(file, std::string(kGood) + "\n{\"id\":1}\n"));
    const CommandOutcome bad = run_proctor({"cvdp", "check", file});
    CHECK(bad.exit_code == 2);
    CHECK(contains(bad.err, "d.jsonl:2: error: a blank line"));
    CHECK(contains(bad.err, "d.jsonl:3: error: id: is a number, not text"));
    CHECK(run_proctor({"cvdp", "check", dir.path()}).exit_code == 2);
    CHECK(run_proctor({"cvdp", "check", dir.path() / "none"}).exit_code == 2);
    CHECK(run_proctor({"cvdp"}).exit_code == 2);
  }
}
