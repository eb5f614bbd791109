#include "coordinator/cvdp/dataset/record.h"

#include <doctest/doctest.h>

#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::cvdp;
using proctor::cvdp::testing::json_of;

namespace {
std::string judged(std::string_view json) {
  std::vector<Finding> findings;
  check_record(json_of(json), 7, findings);
  std::string out;
  for (const Finding& f : findings) out += (out.empty() ? "" : "\n") + to_string(f);
  return out;
}
bool says(std::string_view json, std::string_view part) {
  const std::string all = judged(json);
  INFO(all);
  return all.find(part) != std::string::npos;
}
std::string why(std::string_view id) {
  const auto parsed = parse_id(id);
  return parsed.ok() ? parsed->repository + "/" + std::to_string(parsed->issue)
                     : "! " + parsed.error().detail;
}
// A sound record; `changed` replaces members.
std::string copilot(std::string_view input = R"({"prompt":"p","context":{}})",
                    std::string_view output = R"({"context":{"rtl/a.sv":"x"}})",
                    std::string_view harness = R"({"files":{"docker-compose.yml":"s"}})") {
  return R"({"id":"cvdp_copilot_a_0001","categories":["cid003","easy"],"input":)" +
         std::string(input) + ",\"output\":" + std::string(output) +
         ",\"harness\":" + std::string(harness) + "}";
}
std::string agentic(std::string_view context = "{}", std::string_view patch = "{}",
                    std::string_view harness = R"({"docker-compose.yml":"s"})") {
  return R"({"id":"cvdp_agentic_a_0001","categories":["cid003","easy"],"prompt":"p","context":)" +
         std::string(context) + ",\"patch\":" + std::string(patch) +
         ",\"harness\":" + std::string(harness) + "}";
}
}  // namespace

TEST_SUITE("cvdp") {
  TEST_CASE("an id gives the folder and the number") {
    CHECK(why("cvdp_copilot_lfsr_0001") == "cvdp_copilot_lfsr/1");
    CHECK(why("cvdp_copilot_H.264_x-y_0100") == "cvdp_copilot_H.264_x-y/100");
    CHECK(why("a_1") == "cvdp_/1");
    CHECK(parse_id("cvdp_agentic_heavy_x_0003")->heavy);
    CHECK(parse_id("cvdp_agentic_x_1")->shape == Shape::kAgentic);
    CHECK(why("nothing") == "! \"nothing\" has no \"_\" (upstream aborts the whole run)");
    CHECK(why("cvdp_x_y").starts_with("! \"cvdp_x_y\" does not end"));
    CHECK(why("cvdp_x_").starts_with("! \"cvdp_x_\" does not end"));
    CHECK(why("cvdp_../../x_1").starts_with("! \"cvdp_../../x_1\" has characters"));
    CHECK(why(std::string(300, '_')).find("longer than 200") != std::string::npos);
    CHECK(why("cvdp_x_99999999999999999999").starts_with("! "));
  }

  TEST_CASE("a category has a number by its digits") {
    CHECK(category_number("cid003") == 3);
    CHECK(category_number("6") == 6);
    CHECK(category_number("weird12") == 12);
    CHECK(category_number("cid") == -1);
    CHECK(category_number("") == -1);
    CHECK(category_number("cid99999999999999999999") == -1);
  }

  TEST_CASE("sound records of both shapes have nothing said about them") {
    CHECK(judged(copilot()) == "");
    CHECK(judged(agentic()) == "");
    CHECK(judged(R"({"id":"cvdp_agentic_heavy_a_0001","categories":["cid016","hard"],"prompt":"p",
      "context":{"repo":"r","commit":"c"},"patch":{},"harness":{"docker-compose.yml":""},"extra":1})") ==
          "");
  }

  TEST_CASE("a harness is flat, under files, or folders in folders, in records of either shape") {
    const auto flat = [](const std::string& json) {
      std::vector<Finding> findings;
      const Record record = check_record(json_of(json), 7, findings);
      std::string out;
      for (const Finding& f : findings)
        if (f.weight == Finding::Weight::kError) out += to_string(f) + "\n";
      if (const Object* files = harness_files(record))
        for (const Member& m : *files) out += m.key + "=" + *m.value.string() + " ";
      return out;
    };
    const std::string paths = R"({"docker-compose.yml":"s","src/t.py":"t","src/a/b":"u"})";
    const std::string folders = R"({"docker-compose.yml":"s","src":{"t.py":"t","a":{"b":"u"}}})";
    const std::string due = "docker-compose.yml=s src/t.py=t src/a/b=u ";
    for (const std::string& harness : {paths, folders}) {
      const std::string under = "{\"files\":" + harness + "}";
      CHECK(flat(agentic("{}", "{}", harness)) == due);
      CHECK(flat(agentic("{}", "{}", under)) == due);
      CHECK(flat(copilot("{\"prompt\":\"p\",\"context\":{}}", R"({"context":{}})", harness)) ==
            due);
      CHECK(flat(copilot("{\"prompt\":\"p\",\"context\":{}}", R"({"context":{}})", under)) == due);
    }
    CHECK(says(agentic("{}", "{}", "{\"files\":" + paths + "}"),
               "warning: harness.files: upstream finds no docker-compose.yml"));
    CHECK(says(agentic("{}", "{}", folders), "warning: harness: holds mappings: taken as folders"));
    CHECK(says(agentic("{}", "{}", R"({"src":{"..":"x"}})"),
               "error: harness.src/..: is no path inside"));
    CHECK(says(agentic("{}", "{}", R"({"a/b":"x","a":{"b":"y"}})"), "harness.a/b: comes twice"));
    CHECK(flat(agentic("{}", "{}", R"({"files":"text"})")) == "files=text ");
  }

  TEST_CASE("what is wrong is told with line and field") {
    CHECK(judged("[]") == "7: error: a record is a mapping, found a list");
    CHECK(says("{}", "7: error: id: is missing"));
    CHECK(says("{}", "categories: is missing (upstream waits for ever)"));
    CHECK(says(R"({"id":5})", "id: is a number, not text"));
    CHECK(says(R"({"id":"a_1","categories":["cid003"]})", "has 1 elements"));
    CHECK(says(R"({"id":"a_1","categories":["x","simple"]})", "categories[0]: a category"));
    CHECK(says(R"({"id":"a_1","categories":["x","simple"]})", "categories[1]: easy, medium"));
    CHECK(says(R"({"id":"a_1","input":null})", "input: is null, not a mapping"));
    CHECK(says(copilot("{}"), "input.context: is missing"));
    CHECK(says(copilot(R"({"context":{}})"), "error: input.prompt: is missing"));
    CHECK(says(copilot(R"({"prompt":"","context":{}})", "null"), "error: output: is null"));
    CHECK(
        says(copilot(R"({"prompt":"","context":{}})", "{}"), "error: output.context: is missing"));
    CHECK(says(copilot(R"({"prompt":"","context":{"a":5}})"), "input.context.a: is a number"));
    CHECK(
        says(copilot(R"({"prompt":"","context":{"../x":""}})"), "input.context.../x: is no path"));
    CHECK(says(agentic(R"({"/etc/x":""})"), "error: context./etc/x: is no path"));
    CHECK(says(agentic("{}", R"({"a\u0000b":""})"), "error: patch.a\\x00b: is no path"));
    CHECK(says(agentic("{}", "null"), "error: patch: is null, not a mapping"));
  }

  TEST_CASE("what upstream tolerates is a warning that says what upstream does") {
    CHECK(judged(copilot(R"({"prompt":"","context":{"a":null}})")) ==
          "7: warning: input.context.a: is null: upstream leaves an empty file");
    CHECK(judged(agentic("{}", R"({"a":null})")) ==
          "7: warning: patch.a: is null: upstream cannot apply it in golden mode");
    CHECK(says(agentic(R"({"a":"x\u0000y"})"), "warning: context.a: holds NUL bytes"));
    CHECK(says(agentic("{}", "{}", "{}"), "warning: harness: has no docker-compose.yml"));
    CHECK(says(R"({"id":"cvdp_copilot_a_1","categories":["cid003","easy"],"prompt":"",
      "context":{},"patch":{},"harness":{"docker-compose.yml":""}})",
               "warning: id: says copilot, the record is agentic in shape"));
  }

  TEST_CASE("empty solutions are a redacted record and none asked for are not") {
    std::vector<Finding> f;
    CHECK(check_record(json_of(agentic("{}", R"({"a":"","b":null})")), 1, f).redacted);
    CHECK_FALSE(check_record(json_of(agentic("{}", R"({"a":"","b":"@@"})")), 1, f).redacted);
    CHECK_FALSE(check_record(json_of(agentic()), 1, f).redacted);
  }
}
