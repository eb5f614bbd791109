#include <doctest/doctest.h>

#include <stdexcept>

#include "worker/tools/tool_list.h"

namespace proctor {
namespace {

using std::chrono::milliseconds;

const ToolKind& kind_of(Tool tool) {
  for (const Json& told : tool_list_json())
    if (const ToolKind* kind = find_tool(told.at("name").get<std::string>()); kind->tool == tool)
      return *kind;
  throw std::logic_error("no such tool");
}

bool may(const ToolStages& stages, Tool tool, milliseconds now = milliseconds(0)) {
  return stages.lack_of(kind_of(tool), now).empty();
}

}  // namespace

TEST_SUITE("tool stages") {
  TEST_CASE("each stage allows what the ones before did, and a command writes in the last alone") {
    ToolStages stages;
    CHECK(may(stages, Tool::kReadFile));
    CHECK(may(stages, Tool::kShell));
    CHECK(may(stages, Tool::kSubmit));
    CHECK_FALSE(may(stages, Tool::kWriteFile));
    CHECK_FALSE(may(stages, Tool::kRunTests));
    CHECK_FALSE(stages.shell_writes());

    const auto to_write = stages.advance(ToolStage::kWrite, "understood", milliseconds(1));
    REQUIRE(to_write.ok());
    CHECK(stage_json(*to_write) ==
          Json{{"from", "read"}, {"to", "write"}, {"by", "agent"}, {"reason", "understood"}});
    CHECK(may(stages, Tool::kReadFile));
    CHECK(may(stages, Tool::kApplyPatch));
    CHECK_FALSE(may(stages, Tool::kRunTests));
    CHECK_FALSE(stages.shell_writes());

    REQUIRE(stages.advance(ToolStage::kTest, "written", milliseconds(2)).ok());
    CHECK(may(stages, Tool::kRunTests));
    CHECK(stages.shell_writes());
    // Going on to where it is, or back, is no change and no event.
    for (const ToolStage stage : {ToolStage::kRead, ToolStage::kWrite, ToolStage::kTest})
      CHECK_FALSE(stages.advance(stage, "again", milliseconds(3)).ok());
    CHECK(stages.stage() == ToolStage::kTest);
  }

  TEST_CASE("a refusal names the stage and how to get there") {
    ToolStages stages;
    const std::string lack = stages.lack_of(kind_of(Tool::kEditFile), milliseconds(0));
    CHECK(lack.find("edit_file needs the stage \"write\"") != std::string::npos);
    CHECK(lack.find("in \"read\"") != std::string::npos);
    CHECK(lack.find("advance_stage") != std::string::npos);
  }

  TEST_CASE("a run goes no further than it may") {
    ToolStages stages({.last = ToolStage::kWrite});
    CHECK_FALSE(may(stages, Tool::kRunTests));
    CHECK_FALSE(stages.advance(ToolStage::kTest, "please", milliseconds(0)).ok());
    CHECK(stages.stage() == ToolStage::kRead);
    CHECK(stages.advance(ToolStage::kWrite, "please", milliseconds(0)).ok());
    CHECK(may(stages, Tool::kWriteFile));
  }

  TEST_CASE("suspended writing is earned back by three reads and ten seconds, both") {
    ToolStages stages;
    REQUIRE(stages.advance(ToolStage::kTest, "r", milliseconds(0)).ok());
    const auto change = stages.suspend("5 edits did not apply", milliseconds(1'000));
    REQUIRE(change);
    CHECK(stage_json(*change).at("by") == "breaker");
    CHECK(stages.stage() == ToolStage::kRead);
    CHECK_FALSE(stages.shell_writes());
    CHECK_FALSE(may(stages, Tool::kWriteFile, milliseconds(60'000)));
    for (int i = 0; i < 2; ++i) stages.has_read();
    CHECK_FALSE(stages.advance(ToolStage::kWrite, "r", milliseconds(60'000)).ok());
    stages.has_read();
    CHECK_FALSE(stages.advance(ToolStage::kWrite, "r", milliseconds(10'999)).ok());
    CHECK_FALSE(may(stages, Tool::kWriteFile, milliseconds(10'999)));
    CHECK(stages.advance(ToolStage::kWrite, "r", milliseconds(11'000)).ok());
    CHECK(may(stages, Tool::kWriteFile, milliseconds(11'000)));
    ToolStages reading;
    CHECK_FALSE(reading.suspend("r", milliseconds(0)));
    CHECK_FALSE(reading.advance(ToolStage::kWrite, "r", milliseconds(60'000)).ok());
  }
}

}  // namespace proctor
