#include "coordinator/cvdp/dataset/transform.h"

#include <doctest/doctest.h>

#include "coordinator/cvdp/pycompat/python_text.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::cvdp;
using namespace proctor::cvdp::testing;

namespace {
std::string made(std::string_view json, Shape to) {
  auto t = transform(json_of(json), to);
  return t.ok() ? write_json(t->value) : "! " + t.error().detail;
}
std::string lost(std::string_view json, Shape to) {
  const auto losses = losses_of(json_of(json), to);
  REQUIRE(losses.ok());
  std::string out;
  for (const Loss& l : *losses) out += l.field + ": " + l.text + "\n";
  return out;
}
constexpr const char* kCopilot =
    R"({"id": "cvdp_copilot_a_1", "categories": ["cid004", "easy"], "input": {"prompt": "p", )"
    R"("context": {"rtl/a.sv": "x\ny\n"}}, "output": {"response": "", "context": {"rtl/a.sv": )"
    R"("x\nz\n", "rtl/b.sv": "new\n"}}, "harness": {"files": {"docker-compose.yml": "s"}}})";
constexpr const char* kAgentic =
    R"({"id": "cvdp_copilot_a_1", "categories": ["cid004", "easy"], "harness": )"
    R"({"docker-compose.yml": "s"}, "context": {"rtl/a.sv": "x\ny\n"}, "prompt": "p", "patch": )"
    R"({"rtl/a.sv": "--- a/rtl/a.sv\n+++ b/rtl/a.sv\n@@ -1,2 +1,2 @@\n x\n-y\n+z", )"
    R"("rtl/b.sv": "--- /dev/null\n+++ rtl/b.sv\n@@ -0,0 +1,1 @@\n+new"}})";
}  // namespace

TEST_SUITE("cvdp") {
  TEST_CASE("a copilot record becomes an agentic one") {
    CHECK(made(kCopilot, Shape::kAgentic) == kAgentic);
    CHECK(made(kAgentic, Shape::kAgentic) == kAgentic);
    CHECK(made(R"({"id": "a_1"})", Shape::kAgentic) == R"({"id": "a_1"})");
    CHECK(made(R"({"id":"a_1","input":{"context":{}}})", Shape::kAgentic) ==
          R"({"id": "a_1", "context": {}, "patch": {}, "harness": {}, )"
          R"("categories": ["cat_0", "medium"]})");
  }

  TEST_CASE("an answer in words travels as a file and comes back") {
    const std::string there =
        made(R"({"id":"a_1","categories":[],"input":{"prompt":"q","context":{}},)"
             R"("output":{"response":"yes\nno","context":{}},"harness":{}})",
             Shape::kAgentic);
    CHECK(there ==
          R"({"id": "a_1", "categories": [], "harness": {}, "context": {}, "prompt": "q", )"
          R"("subjective_reference": "yes\nno", "patch": {"docs/subjective.txt": )"
          R"("--- /dev/null\n+++ docs/subjective.txt\n@@ -0,0 +1,2 @@\n+yes\n+no"}})");
    const Value back = json_of(made(there, Shape::kCopilot));
    CHECK(write_json(in(back, "output")) == R"({"response": "yes\nno", "context": {}})");
  }

  TEST_CASE("an agentic record becomes a copilot one") {
    const Value back = json_of(made(kAgentic, Shape::kCopilot));
    CHECK(write_json(in(in(back, "output"), "context")) ==
          R"({"rtl/a.sv": "x\nz\n", "rtl/b.sv": "new\n"})");
    CHECK(write_json(in(back, "harness")) == R"({"files": {"docker-compose.yml": "s"}})");
    CHECK(back.object()->find("patch") == nullptr);
    CHECK(made(kCopilot, Shape::kCopilot) == kCopilot);
  }

  TEST_CASE("a patch on one line has its newlines expanded and a wrong one keeps the file") {
    const auto t =
        transform(json_of(R"({"context":{"a":"x\n","b":"y"},"patch":{"a":"@@ -1 +1 @@\\n-x\\n+z",)"
                          R"("b":"@@ what","c":null}})"),
                  Shape::kCopilot);
    REQUIRE(t.ok());
    CHECK(write_json(in(in(t->value, "output"), "context")) ==
          R"({"a": "z\n", "b": "y", "c": ""})");
    CHECK(t->warnings.size() == 2);
  }

  TEST_CASE("what the other shape cannot hold is named") {
    CHECK(lost(kCopilot, Shape::kAgentic) == "output.response: is lost\n");
    CHECK(lost(kAgentic, Shape::kCopilot) == "");
    CHECK(lost(R"({"id":"a_1","categories":[],"input":{"prompt":"q","context":{"c":"x\ny\n"}},
      "output":{"context":{"a":"no end","b":"x\r\ny\r\n","c":"x\ny"}},"harness":{}})",
               Shape::kAgentic) ==
          "output.context.a: a final newline is added\n"
          "output.context.b: line ends other than \\n become \\n\n"
          "output.context.c: a final newline is added\n"
          "harness.files: is added\n");
    CHECK(lost(R"({"id":"a_1","categories":[],"context":{},"prompt":"","patch":{"a":""},
      "harness":{}})",
               Shape::kCopilot) == "patch.a: an empty text comes back as 35 bytes\n");
  }

  TEST_CASE("the file is named as upstream names it") {
    CHECK(transformed_name("a.b.jsonl", Shape::kAgentic) == "a.b.agentic_transformed.jsonl");
    CHECK(transformed_name("plain", Shape::kCopilot) == "plain.copilot_transformed");
  }

  TEST_CASE("upstream's own transformed files byte for byte") {
    if (!have_shared_data("upstream's own transformed files byte for byte")) return;
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(shared_data() / "transformed")) {
      const std::string name = entry.path().filename().string();
      CAPTURE(name);
      const std::string stem = name.substr(0, name.rfind("_transformed.jsonl"));
      const Shape to = stem.ends_with(".agentic") ? Shape::kAgentic : Shape::kCopilot;
      const std::string from = stem.substr(0, stem.rfind('.')) + ".jsonl";
      const bool second = from.find("_transformed") != std::string::npos;
      const fs::path source = shared_data() / (second ? "transformed" : "datasets") / from;
      CHECK(made(bytes_of(source), to) + "\n" == bytes_of(entry.path()));
      ++files;
    }
    CHECK(files == 8);
  }
}
