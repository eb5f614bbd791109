// Recordings: what is the same request, which recorded call answers it, and where two differ.
#include <doctest/doctest.h>

#include <array>
#include <sstream>

#include "common/base/files.h"
#include "common/base/json.h"
#include "tests/support/json_tools.h"
#include "tests/support/paths.h"
#include "tests/support/programs.h"
#include "worker/gateway/cassette.h"

using namespace proctor;

namespace {

CassetteCall recorded(const std::string& request, const std::string& run = "t/m/r1",
                      const std::string& route = "chat") {
  CassetteCall c;
  c.run = run;
  c.route = route;
  c.status = 200;
  c.pieces = {request};
  c.answer = "to " + request;
  return c;
}

std::string taken(CassettePlayer& player, const std::string& body, ModelApi api = ModelApi::kChat) {
  const auto found = player.take(api, body);
  if (const auto* hit = std::get_if<CassettePlayer::Hit>(&found))
    return std::to_string(hit->number);
  return std::get<CassettePlayer::Miss>(found).text;
}

}  // namespace

TEST_SUITE("gateway cassette") {
  TEST_CASE("spelling, order and what changes from run to run do not count") {
    const std::string a =
        R"({"model":"m","messages":[{"role":"user","content":"h\u00e9 \/"}],"temperature":0.70,"user":"a"})";
    const std::string b =
        R"({ "temperature": 0.70, "metadata": {"run": 7}, "store": true, "messages": [ {"content": "hé /", "cache_control": {"type": "ephemeral"}, "role": "user"} ], "model": "m"})";
    CHECK(canonical_request(a) ==
          R"({"messages":[{"content":"hé /","role":"user"}],"model":"m","temperature":0.70})");
    CHECK(canonical_request(a) == canonical_request(b));
    CHECK_FALSE(first_difference(a, b).has_value());
    // Volatile at the top alone, but for cache_control.
    CHECK(canonical_request(R"({"a":{"user":1}})") == R"({"a":{"user":1}})");
    CHECK(canonical_request("[1]").empty());
    CHECK(canonical_request("no").empty());
  }

  TEST_CASE("the first place at which two requests differ is named") {
    const auto at = [](const std::string& ours, const std::string& theirs) {
      const auto d = first_difference(ours, theirs);
      return d ? d->pointer + " " + d->ours + " " + d->theirs : "";
    };
    CHECK(at(R"({"a":[{"t":"0.31s"}]})", R"({"a":[{"t":"0.29s"}]})") ==
          R"(/a/0/t "0.31s" "0.29s")");
    CHECK(at(R"({"a":[1]})", R"({"a":[1,{"b":2}]})") == R"(/a/1 (absent) {"b":2})");
    CHECK(at(R"({"a/b":1,"z":1})", R"({"z":1})") == "/a~1b 1 (absent)");
    CHECK(at(R"({"a":1})", R"({"a":"1"})") == R"(/a 1 "1")");
    const std::string far = std::string(1'000, 'x');
    const auto d = first_difference("{\"a\":\"" + far + "1\"}", "{\"a\":\"" + far + "2\"}");
    REQUIRE(d);
    CHECK(d->ours == "..." + std::string(40, 'x') + "1\"");
  }

  TEST_CASE("by meaning, each recorded call answers once, in whatever order they come") {
    CassettePlayer player({recorded(R"({"n":1})"), recorded(R"({"n":2})"), recorded(R"({"n":1})")},
                          "other", CassetteMatch::kCanonical);
    CHECK(taken(player, R"({"n":2})") == "2");
    CHECK(taken(player, R"({ "n": 1 })") == "1");
    CHECK(player.unused() == 1);
    CHECK(taken(player, R"({"n":2})") == "call 3 of the recording: /n differs: 2 here, 1 recorded");
    CHECK(taken(player, R"({"n":1})") == "3");
    CHECK(taken(player, R"({"n":1})") == "the recording has no further call of chat");
    CHECK(player.unused() == 0);
  }

  TEST_CASE("by bytes another spelling is another call, and by order anything is the next one") {
    CassettePlayer exact({recorded(R"({"n":1})")}, "t/m/r1", CassetteMatch::kExact);
    CHECK(taken(exact, R"({"n": 1})").starts_with("call 1 of the recording: the body differs"));
    CHECK(taken(exact, R"({"n":1})") == "1");
    CassettePlayer sequence(
        {recorded(R"({"n":1})"), recorded("{}", "t/m/r1", "messages"), recorded(R"({"n":2})")},
        "t/m/r1", CassetteMatch::kSequence);
    CHECK(taken(sequence, R"({"n":9})") == "1");
    CHECK(taken(sequence, R"({"n":9})") == "3");
    CHECK(taken(sequence, "{}", ModelApi::kMessages) == "2");
  }

  TEST_CASE("a run that was recorded is answered by its own calls alone") {
    const auto calls = [] {
      return std::vector{recorded("{}", "t/m/r1"), recorded("{}", "t/m/r2")};
    };
    CassettePlayer own(calls(), "t/m/r2", CassetteMatch::kCanonical);
    CHECK(own.unused() == 1);
    CHECK(taken(own, "{}") == "2");
    CHECK(CassettePlayer(calls(), "t/m/r3", CassetteMatch::kCanonical).unused() == 2);
  }

  TEST_CASE("texts that differ by the day alone are one, and others are not") {
    using Row = std::array<const char*, 3>;
    for (const auto& [written, first, second] : std::vector<Row>{
             {"<billing>", "x-anthropic-billing-header: cc_version=2.1.332.7e8; cch=00af1;",
              "x-anthropic-billing-header: cc_version=2.1.333.0aa; cch=77b;"},
             {" - OS Version: <kernel>\nx", " - OS Version: Linux 6.1.0-9-amd64\nx",
              " - OS Version: Linux 6.18.44-fc-v595 #1 SMP PREEMPT_DYNAMIC @0 x86_64\nx"},
             {"<id>", "msg_01a225f7-6881-7c83-9333-f51f4ea6c07e",
              "at_8537bbb1-5979-5376-8b4f-0db3f1ecc98c"},
             {"at <id>:", "at 01a225f7-6881-7c83-9333-f51f4ea6c07e:",
              "at 8537BBB1-5979-5376-8B4F-0DB3F1ECC98C:"},
             {"<id>", "toolu_01A09q90qw90lq917835lq9", "call_5CzTnIs9X3cVGyIUr2sMVTCV"},
             {"<chunk>\n", "Chunk ID: 023d34\n", "Chunk ID: 455\n"},
             {R"({"<chunk>})", R"({"chunk_id":"023d34"})", R"({"chunk_id": "ffa5c7"})"},
             {"<count>", "Original token count: 45", "Original token count: 1046"},
             {"with <count>", "with session ID 48112", "with session ID 913"},
             {R"("<duration>,)", R"("wall_time_seconds":0.0512,)", R"("duration_ms": 7,)"},
             {"Wall time: <duration>", "Wall time: 0.0000 seconds", "Wall time: 12.5 seconds"},
             {"1 passed in <duration>", "1 passed in 0.31s", "1 passed in 12.07s"},
             {"<duration> real", "0m0.052s real", "1m12.9s real"},
             {"(<duration>)", "(9.8e-05 s)", "(250 ms)"},
             {"cd <path> && ls", "cd /tmp/tmp.XW2PUyxmHY && ls", "cd /var/tmp/a/b.c && ls"},
             {"'<path>'", "'/tmp/claude-0/-workspace/9b/scratch'", "'/tmp/x'"},
             {"http://<port>/v1", "http://127.0.0.1:8710/v1", "http://localhost:40123/v1"},
             {"<process> lost", "==77== lost", "==12345== lost"},
             {"<process>", "pid 17711", "PID: 4"},
             {"<process>/fd", "/proc/8/fd", "/proc/70001/fd"},
             {"x\n<process>\n", "x\n[1] 4711\n", "x\n[2] 99\n"},
             {"line 1: <process>", "line 1: 812 Segmentation fault", "line 1: 77 Killed"},
             {"<current_date><date></current_date>", "<current_date>2026-11-29</current_date>",
              "<current_date>2026-12-01</current_date>"},
             {"Today's date is <date>.", "Today's date is 2026-11-29.",
              "Today's date is 2027/01/02."},
             {"<date>", "2026-11-29T06:27:32+00:00", "2026-11-28 18:28:15.123456 UTC"},
             {"<date>", "2026-11-29T06:27:32Z", "2026-11-29T06-27-32"},
             {"<date>", "Sun Nov 29 06:27:32 UTC 2026", "Wed Dec  2 18:28:15 UTC 2026"},
             {"18 <date> calc.sh", "18 Nov 29 06:27 calc.sh", "18 Jan  3  2025 calc.sh"},
             {"It is <date>.", "It is Sunday, November 29, 2026.", "It is 3 May 2027."},
             {"at <time>", "at 06:21:07", "at 11:59 PM"},
             {"<time> up", "06:18:21.52 UTC up", "6:18:21 up"},
             {"took <time>", "took 1795933652742832967", "took 1795933652.123"},
             {"<f at <pointer>>", "<f at 0x7f0cab70c000>", "<f at 0x55d0c1a2b3c4>"},
             {"commit <hash>\n", "commit 9c0472355aa1bb2c3d4e5f60718293a4b5c6d7e8\n",
              "commit 1111111111111111111111111111111111111ab1\n"},
             {"<hash>fix", "9c04723 fix", "5171846 fix"},
             {"<hash> fix", "[master 9c04723] fix", "[master (root-commit) 5171846] fix"},
             {"index <hash>", "index 9c04723..5171846", "index 0000000..1234567"}}) {
      CHECK(by_cassette_rules(first) == written);
      CHECK(by_cassette_rules(second) == written);
      CHECK(by_cassette_rules(written) == written);
    }
    for (const char* text : {"exit code 1",
                             "Process exited with code 0",
                             "3 passed, 1 failed",
                             "calc.cc:12:34: error",
                             "sum is 1234567 and 17",
                             "expected 0xdeadbeef",
                             "v2.1.332",
                             "src/tmp/a.c",
                             "call_tool",
                             "10.0.0.1:80",
                             "/usr/bin/python3.11",
                             "index 7",
                             "may 5",
                             "f1 and f2",
                             "",
                             "é ü",
                             "100%",
                             "[1] one",
                             "12 monkeys",
                             "1 s1",
                             "session_start_of_a_name"}) {
      CAPTURE(text);
      CHECK(by_cassette_rules(text) == text);
    }
  }

  TEST_CASE("the rules are those of docs/cassettes.md, in their order") {
    const auto page = read_file(testing::source_dir() / "docs/cassettes.md", 1 << 20);
    REQUIRE(page.ok());
    std::string here;
    for (const CassetteRule& rule : kCassetteRules) {
      here += "| " + std::string(rule.name) + " | `";
      for (const char c : rule.pattern) here += c == '|' ? "\\|" : std::string(1, c);
      here +=
          "` | " + (rule.with.empty() ? "as it is" : "`" + std::string(rule.with) + "`") + " |\n";
    }
    const std::string head = "| what | RE2 pattern | becomes |\n|---|---|---|\n";
    const std::size_t at = page->find(head);
    REQUIRE(at != std::string::npos);
    const std::size_t from = at + head.size();
    CHECK(page->substr(from, page->find("\n\n", from) + 1 - from) == here);
  }

  TEST_CASE("what Codex, Claude Code and mini-swe-agent asked on two days is the same") {
    const auto text =
        read_file(testing::source_dir() / "tests/unit/gateway/two_days.jsonl", 1 << 20);
    REQUIRE(text.ok());
    std::istringstream lines(*text);
    std::size_t pairs = 0, plain = 0;
    for (std::string first, second; std::getline(lines, first) && std::getline(lines, second);) {
      const Json a = testing::must(parse_json(first)), b = testing::must(parse_json(second));
      CAPTURE(a["client"]);
      CAPTURE(a["call"]);
      REQUIRE(a["call"] == b["call"]);
      const std::string x = a["body"].dump(), y = b["body"].dump();
      const auto differs = first_difference(x, y, RequestForm::kByRules);
      CHECK_MESSAGE(!differs, differs->pointer, ": ", differs->ours, " ", differs->theirs);
      CHECK(canonical_request(x, RequestForm::kByRules) ==
            canonical_request(y, RequestForm::kByRules));
      plain += canonical_request(x) == canonical_request(y) ? 1 : 0;
      ++pairs;
    }
    CHECK(pairs == 8);
    CHECK(plain == 1);  // the first call of mini-swe-agent
  }

  TEST_CASE("by the rules a lone part of text is its text, and JSON in a text is JSON") {
    const auto same = [](const char* a, const char* b) {
      return !first_difference(a, b, RequestForm::kByRules) &&
             canonical_request(a, RequestForm::kByRules) ==
                 canonical_request(b, RequestForm::kByRules);
    };
    CHECK(
        same(R"({"content":"hi"})",
             R"({"content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]})"));
    CHECK(same(R"({"content":"hi"})", R"({"content":[{"type":"input_text","text":"hi"}]})"));
    CHECK_FALSE(same(R"({"content":"hi"})", R"({"content":[{"type":"image","text":"hi"}]})"));
    CHECK_FALSE(same(R"({"content":"hi"})", R"({"content":["hi"]})"));
    CHECK_FALSE(canonical_request(R"({"content":"hi"})") ==
                canonical_request(R"({"content":[{"type":"text","text":"hi"}]})"));
    CHECK(same(R"({"output":"{\"at\":\"a\\n2026-11-29\",\"code\":0}"})",
               R"({"output":"{ \"code\":0, \"at\":\"a\\n2026-11-30\"}"})"));
    CHECK_FALSE(same(R"({"output":"{\"code\":0}"})", R"({"output":"{\"code\":1}"})"));
  }

  TEST_CASE("a call of another day is found by the rules, one that is the same without them") {
    CassettePlayer player({recorded(R"({"t":"2026-11-29"})"), recorded(R"({"t":"2026-11-30"})"),
                           recorded(R"({"t":"2026-11-28"})")},
                          "other", CassetteMatch::kCanonical);
    // As before there were rules: each is answered by its own.
    CHECK(taken(player, R"({"t":"2026-11-30"})") == "2");
    CHECK(taken(player, R"({"t":"2027-01-01"})") == "1");
    CHECK(taken(player, R"({"t":"2027-01-02"})") == "3");
    CassettePlayer exact({recorded(R"({"t":"2026-11-29"})")}, "other", CassetteMatch::kExact);
    CHECK(taken(exact, R"({"t":"2026-11-30"})") ==
          R"(call 1 of the recording: /t differs: "2026-11-30" here, "2026-11-29" recorded)");
  }

  TEST_CASE("a divergence is from the recorded call that begins most like it, without secrets") {
    const auto calls = [] {
      return std::vector{
          recorded(R"({"input":["of 2026-11-29","one","two"]})"),
          recorded(R"({"input":["of 2026-11-29","other","key sk-1","exit code 0 in 0.2s"]})"),
          recorded(R"({"input":["else"]})")};
    };
    CassettePlayer player(calls(), "other", CassetteMatch::kCanonical);
    const std::string body =
        R"({"input":["of 2026-11-30","other","key sk-1","exit code 1 in 0.3s"]})";
    CHECK(taken(player, body) ==
          "call 2 of the recording: /input/3 differs: \"exit code 1 in <duration>\" here, "
          "\"exit code 0 in <duration>\" recorded");
    const auto found =
        player.take(ModelApi::kChat, R"({"input":["of 2026-11-30","other","key sk-1 exit"]})",
                    [](std::string_view text) {
                      std::string out(text);
                      for (std::size_t at; (at = out.find("sk-1")) != std::string::npos;)
                        out.replace(at, 4, "[redacted]");
                      return out;
                    });
    const auto& miss = std::get<CassettePlayer::Miss>(found);
    CHECK(miss.expected == 2);
    CHECK(miss.pointer == "/input/2");
    CHECK(miss.ours == "\"key [redacted] exit\"");
    CHECK(miss.theirs == "\"key [redacted]\"");
  }
}
