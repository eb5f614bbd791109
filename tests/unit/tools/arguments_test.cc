#include <doctest/doctest.h>

#include <set>

#include "worker/tools/tool_list.h"

namespace proctor {
namespace {

Result<ToolArguments> read(std::string_view tool, const Json& arguments) {
  const ToolKind* kind = find_tool(tool);
  REQUIRE(kind != nullptr);
  return read_tool_arguments(*kind, arguments);
}

}  // namespace

TEST_SUITE("tool arguments") {
  TEST_CASE("the list is the same for everybody, and each schema says what is read") {
    const Json list = tool_list_json();
    REQUIRE(list.size() == 11);
    CHECK(list == tool_list_json());
    CHECK(list.at(0).at("name") == "list_dir");
    CHECK(list.at(10).at("name") == "submit");
    std::set<Tool> kinds;
    for (const Json& tool : list) {
      CAPTURE(tool.dump());
      const Json& schema = tool.at("inputSchema");
      CHECK(schema.at("type") == "object");
      CHECK(schema.at("additionalProperties") == false);
      CHECK_FALSE(tool.at("description").get<std::string>().empty());
      const ToolKind* kind = find_tool(tool.at("name").get<std::string>());
      REQUIRE(kind != nullptr);
      CHECK(kinds.insert(kind->tool).second);
      // Without what is required nothing is read.
      CHECK(read_tool_arguments(*kind, Json::object()).ok() == !schema.contains("required"));
      CHECK_FALSE(read_tool_arguments(*kind, {{"surprise", 1U}}).ok());
      CHECK_FALSE(read_tool_arguments(*kind, Json::array()).ok());
    }
  }

  TEST_CASE("what is absent has its default, what is there is taken") {
    const auto list = read("list_dir", Json::object());
    REQUIRE(list.ok());
    CHECK(std::get<ListDir>(*list).path.empty());
    CHECK(std::get<ListDir>(*list).depth == 1);
    const auto file = read("read_file", {{"path", "./src//a.py"}, {"offset", 5U}, {"limit", 10U}});
    REQUIRE(file.ok());
    CHECK(std::get<ReadFile>(*file).path == "src/a.py");
    CHECK(std::get<ReadFile>(*file).offset == 5);
    CHECK(std::get<ReadFile>(*file).limit == 10);
    const auto search = read("search", {{"pattern", "x"}, {"literal", true}, {"glob", "*.py"}});
    REQUIRE(search.ok());
    CHECK(std::get<Search>(*search).literal);
    CHECK(std::get<Search>(*search).glob == "*.py");
    CHECK(std::get<Search>(*search).limit == 200);
    const auto shell = read("shell", {{"command", "make"}, {"timeout_ms", 1'000U}});
    REQUIRE(shell.ok());
    CHECK(std::get<ShellCommand>(*shell).timeout_ms == 1'000U);
    const auto stage = read("advance_stage", {{"to", "write"}, {"reason", "I know enough"}});
    REQUIRE(stage.ok());
    CHECK(std::get<AdvanceStage>(*stage).to == ToolStage::kWrite);
    const auto edit = read("edit_file", {{"path", "a"}, {"old_text", "x"}, {"new_text", ""}});
    REQUIRE(edit.ok());
    CHECK(std::get<EditFile>(*edit).count == 1);
    const auto tests = read("run_tests", Json::object());
    REQUIRE(tests.ok());
    CHECK_FALSE(std::get<RunTests>(*tests).name);
    CHECK(read("write_file", {{"path", "a"}, {"content", ""}}).ok());
    CHECK(read("status", Json::object()).ok());
    CHECK(read("submit", {{"note", "done"}}).ok());
  }

  TEST_CASE("what is of another kind or size is refused by name") {
    const std::string large((1U << 20) + 1, 'x');
    struct Row {
      const char* tool;
      Json arguments;
      std::string_view why;
    };
    const Row rows[] = {
        {"read_file", Json::object(), "\"path\" is missing"},
        {"read_file", {{"path", 1U}}, "\"path\" is not a text"},
        {"read_file", {{"path", "."}}, "\"path\" is the workspace itself"},
        {"read_file", {{"path", ""}}, "\"path\" is empty"},
        {"read_file", {{"path", "a"}, {"offset", 0U}}, "\"offset\" is not between 1 and"},
        {"read_file", {{"path", "a"}, {"offset", -1}}, "\"offset\" is not a whole number"},
        {"read_file", {{"path", "a"}, {"offset", 1.0}}, "\"offset\" is not a whole number"},
        {"read_file", {{"path", "a"}, {"offset", "1"}}, "\"offset\" is not a whole number"},
        {"read_file", {{"path", "a"}, {"limit", 2'001U}}, "\"limit\" is not between 1 and 2000"},
        {"list_dir", {{"depth", 4U}}, "\"depth\" is not between 1 and 3"},
        {"list_dir", {{"pfad", "a"}}, "it takes path, depth, limit"},
        {"status", {{"all", true}}, "it takes nothing"},
        {"shell",
         {{"command", "x"}, {"timeout_ms", 5U}, {"bogus", 1U}},
         "shell takes no \"bogus\"; it takes command, timeout_ms"},
        {"run_tests",
         {{"name", "x"}, {"bogus", 1U}},
         "run_tests takes no \"bogus\"; it takes name"},
        {"search", {{"pattern", ""}}, "\"pattern\" is empty"},
        {"search", {{"pattern", "a"}, {"literal", 1U}}, "\"literal\" is neither true nor false"},
        {"advance_stage", {{"to", "root"}, {"reason", "r"}}, "none of read, write, test"},
        {"write_file", {{"path", "a"}, {"content", large}}, "more than 1048576 bytes"},
        {"apply_patch", {{"patch", nullptr}}, "\"patch\" is not a text"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.why);
      const auto out = read(row.tool, row.arguments);
      REQUIRE_FALSE(out.ok());
      CAPTURE(out.error().detail);
      CHECK(out.error().detail.find(row.why) != std::string::npos);
      if (row.why.find("it takes") != std::string::npos)
        CHECK(out.error().detail.ends_with(row.why));
      CHECK(out.error().detail.size() < 300);
    }
  }

  TEST_CASE("a path stays in the workspace and out of .git") {
    CHECK(tool_path("a/b").value() == "a/b");
    CHECK(tool_path("./a//b/").value() == "a/b");
    CHECK(tool_path(".").value().empty());
    CHECK(tool_path("a/.github/x").value() == "a/.github/x");
    CHECK(tool_path("...").value() == "...");
    for (const std::string& bad :
         {std::string("/etc/passwd"), std::string("../x"), std::string("a/../../x"),
          std::string("a/.."), std::string(".git"), std::string(".git/hooks/pre-commit"),
          std::string("sub/.git/config"), std::string("a\0b", 3), std::string("a\xff")}) {
      CAPTURE(bad);
      CHECK_FALSE(tool_path(bad).ok());
    }
  }
}

}  // namespace proctor
