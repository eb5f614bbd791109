#include "common/base/files.h"
#include "tests/integration/cvdp/run_proctor.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;

namespace {
constexpr const char* kCopilotLine =
    R"({"id": "cvdp_copilot_a_1", "categories": ["cid003", "easy"], "input": {"prompt": "p", "context": {}}, )"
    R"("output": {"context": {"rtl/a.sv": "x"}}, "harness": {"files": {}}})";
}

TEST_SUITE("cvdp") {
  TEST_CASE("cvdp transform leaves bad lines out and lists what is lost") {
    const TempDir dir = must(TempDir::create());
    const fs::path file = dir.path() / "d.jsonl";
    must(write_file(file, std::string(kCopilotLine) + "\n\n{\n"));
    const CommandOutcome done =
        run_proctor({"cvdp", "transform", "--to", "agentic", "--report-losses", file});
    CHECK(done.exit_code == 2);
    CHECK(
        done.out ==
        R"({"id": "cvdp_copilot_a_1", "categories": ["cid003", "easy"], "harness": {}, "context": {}, )"
        R"("prompt": "p", "patch": {"rtl/a.sv": "--- /dev/null\n+++ rtl/a.sv\n@@ -0,0 +1,1 @@\n+x"}})"
        "\n");
    CHECK(contains(done.err, "d.jsonl:1: loss: output.context.rtl/a.sv: a final newline is added"));
    CHECK(contains(done.err, "d.jsonl:2: error: "));
    CHECK(contains(done.err, "d.jsonl:3: error: "));
    CHECK(run_proctor({"cvdp", "transform", "--to", "other", file}).exit_code == 2);
    CHECK(
        run_proctor({"cvdp", "transform", "--to", "agentic", file, "-o", "/nowhere/x"}).exit_code ==
        2);
  }

  TEST_CASE("an output that is a link or a device stays one") {
    const TempDir dir = must(TempDir::create());
    const fs::path file = dir.path() / "d.jsonl", kept = dir.path() / "kept";
    const fs::path link = dir.path() / "link", full = dir.path() / "full";
    must(write_file(file, std::string(kCopilotLine) + "\n"));
    must(write_file(kept, "old"));
    fs::create_symlink(kept, link);
    fs::create_symlink("/dev/full", full);
    const auto transform = [&](const fs::path& to) {
      return run_proctor({"cvdp", "transform", "--to", "agentic", file, "-o", to}).exit_code;
    };
    CHECK(transform(link) == 0);
    CHECK(fs::is_symlink(link));
    CHECK(must(read_file(kept, 4096)).starts_with(R"({"id": "cvdp_copilot_a_1")"));
    CHECK(transform(full) == 4);
    CHECK(fs::is_symlink(full));
    CHECK(fs::is_character_file(full));
  }

  TEST_CASE("cvdp transform writes upstream's files under upstream's names") {
    if (!::proctor::cvdp::testing::have_shared_data(
            "cvdp transform writes upstream's files under upstream's names"))
      return;
    const TempDir dir = must(TempDir::create());
    const fs::path data = ::proctor::cvdp::testing::shared_data();
    for (const auto& entry : fs::directory_iterator(data / "datasets")) {
      const bool agentic = contains(entry.path().string(), "example_agentic");
      CHECK(run_proctor({"cvdp", "transform", "--to", agentic ? "copilot" : "agentic", entry.path(),
                         "-o", dir.path()})
                .exit_code == 0);
    }
    std::size_t files = 0;
    for (const auto& made : fs::directory_iterator(dir.path())) {
      CHECK(::proctor::cvdp::testing::bytes_of(made.path()) ==
            ::proctor::cvdp::testing::bytes_of(data / "transformed" / made.path().filename()));
      ++files;
    }
    CHECK(files == 4);
  }
}
