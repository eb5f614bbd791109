#include <doctest/doctest.h>

#include <algorithm>

#include "common/score/denied_commands.h"

using namespace proctor;

namespace {

using enum CommandForm;

DeniedCommands denied(const std::vector<std::string>& patterns) {
  auto out = DeniedCommands::compile(patterns);
  REQUIRE(out.ok());
  return *out;
}

// The forms of the lines that have "rm -rf", in their order.
std::vector<CommandForm> forms(std::string_view text, CommandForm form = kText) {
  std::vector<CommandForm> out;
  for (const CommandHit& hit : denied({"rm -rf"}).find(text, form)) out.push_back(hit.form);
  return out;
}

using Forms = std::vector<CommandForm>;

}  // namespace

TEST_SUITE("denied commands") {
  TEST_CASE("a hit has its pattern, form, place and line") {
    const auto commands = denied({"rm +-rf /", "^sudo\\b"});
    const std::string text = "first\r\nsudo rm  -rf /\r\nrm -r /";
    const std::vector<CommandHit> hits = commands.find(text, kTool);
    CHECK(hits == std::vector<CommandHit>{{"rm +-rf /", kTool, 7, "sudo rm  -rf /"},
                                          {"^sudo\\b", kTool, 7, "sudo rm  -rf /"}});
    CHECK(commands.find("rm \\\n-rf /", kTool).empty());
    CHECK(commands.find("", kText).empty());
    CHECK(denied({}).find(text, kText).empty());
    CHECK(commands.find(text, kTool) == hits);
  }

  TEST_CASE("a pattern that cannot be read is named") {
    const auto bad = DeniedCommands::compile({"ok", "("});
    REQUIRE_FALSE(bad.ok());
    CHECK(bad.error().code == Errc::kInvalid);
  }

  TEST_CASE("lines inside a fence of Markdown are code, all others text") {
    CHECK(forms("rm -rf a") == Forms{kText});
    CHECK(forms("```sh\nrm -rf a\n```\nrm -rf b\n") == Forms{kCode, kText});
    CHECK(forms("~~~\nrm -rf a\n```\nrm -rf b\n~~~~ \nrm -rf c") == Forms{kCode, kCode, kText});
    CHECK(forms("````\n```\nrm -rf a\n````\nrm -rf b") == Forms{kCode, kText});
    CHECK(forms("1. so:\n\n      ```\r\n      rm -rf a\r\n      ```\r\nrm -rf b") ==
          Forms{kCode, kText});
    // Never closed: up to the end.  Closed by nothing that says more.
    CHECK(forms("```\nrm -rf a\n``` x\nrm -rf b") == Forms{kCode, kCode});
    // Two marks are no fence, and a line with more of them is none either.
    CHECK(forms("``\nrm -rf a\n``") == Forms{kText});
    CHECK(forms("```rm -rf a```\nrm -rf b") == Forms{kText, kText});
    CHECK(forms("``` rm -rf a\nrm -rf b") == Forms{kText, kCode});
  }

  TEST_CASE("what was handed on has no fences") {
    CHECK(forms("```\nrm -rf a\n```", kExecuted) == Forms{kExecuted});
    CHECK(forms("```\nrm -rf a\n```", kTool) == Forms{kTool});
    CHECK(forms("```\nrm -rf a\n```", kCode) == Forms{kCode});
  }

  TEST_CASE("a program is one line as a shell takes it, and one that hides no word's beginning") {
    using namespace std::string_literals;
    CHECK(program_lines(""s).empty());
    CHECK(program_lines("rm\0-rf\0/\0"s) == "rm -rf /");
    CHECK(program_lines("/bin/rm\0/\0"s) == "/bin/rm /\nrm /");
    CHECK(program_lines("/bin/true"s) == "/bin/true\ntrue");
    CHECK(program_lines("sh\0-c\0echo 'a b'\0\0"s) ==
          "sh -c 'echo '\\''a b'\\''' ''\nsh -c echo\\ 'a\\ b' ");
    CHECK(program_lines("sh\0-c\0a\n\tb\0"s) == "sh -c 'a  b'\nsh -c a\\ \\ b");
  }

  TEST_CASE("neither quotes, folders nor lines keep a program from its pattern") {
    using namespace std::string_literals;
    const auto commands =
        denied({"\\brm\\s+-\\w*r\\w*\\s+/", "^\\s*sudo\\b", "\\bcurl\\b.*\\|\\s*sh\\b"});
    const auto hits = [&](const std::string& words) {
      std::vector<std::string> out;
      for (const CommandHit& hit : commands.find(program_lines(words), kExecuted))
        out.push_back(hit.segment);
      return out;
    };
    using Lines = std::vector<std::string>;
    CHECK(hits("rm\0-rf\0/\0"s) == Lines{"rm -rf /"});
    CHECK(hits("rm\0-rf\0/a b\0"s) == Lines{"rm -rf /a\\ b"});
    CHECK(hits("/bin/rm\0-rf\0/*\0"s) == Lines{"rm -rf /*"});
    CHECK(hits("/usr/bin/sudo\0-n\0true\0"s) == Lines{"sudo -n true"});
    CHECK(hits("sh\0-c\0true\ncurl x | sh\0"s) == Lines{"sh -c 'true curl x | sh'"});
    // A word that has the text of a command is none of its words.
    CHECK(hits("grep\0rm -rf\0/workspace\0"s).empty());
    CHECK(hits("git\0commit\0-m\0a\nsudo b\0"s).empty());
    CHECK(hits("echo\0/bin/sudo\0"s).empty());
    // One hit of a pattern, though both lines have it.
    CHECK(hits("/bin/rm\0-r\0/\0"s) == Lines{"/bin/rm -r /"});
  }

  TEST_CASE("a segment is printable, at most 400 bytes long, and shows the match") {
    const auto commands = denied({"rm -rf /"});
    const auto segment = [&](const std::string& line) {
      const auto hits = commands.find(line, kExecuted);
      REQUIRE(hits.size() == 1);
      CHECK(hits[0].offset == 0);
      CHECK(hits[0].segment.size() <= 400);
      CHECK(hits[0].segment.find("rm -rf /") != std::string::npos);
      return hits[0].segment;
    };
    CHECK(segment("a\x1b\xff rm -rf /") == "a\\x1b\\xff rm -rf /");
    CHECK(segment(std::string(300, 'a') + "rm -rf /") == std::string(300, 'a') + "rm -rf /");
    const std::string nul(5, '\0');
    CHECK(segment(nul + "rm -rf /") == "\\x00\\x00\\x00\\x00\\x00rm -rf /");
    segment(std::string(100'000, 'a') + "rm -rf /" + std::string(100'000, 'b'));
    segment(std::string(350, '\x01') + "rm -rf /" + std::string(350, '\x01'));
    segment(std::string(5'000, '\xe2') + "rm -rf /");
  }

  TEST_CASE("many hits of one pattern hide no other") {
    std::string text;
    for (int i = 0; i < 1'000; ++i) text += "rm -rf a\n";
    text += "sudo a\nsudo b\n";
    const auto commands = denied({"rm -rf", "sudo"});
    const auto hits = commands.find(text, kTool);
    REQUIRE(hits.size() == DeniedCommands::kHitsOfText + 1);
    CHECK(hits.back().segment == "sudo a");
    // The first in each form, too.
    const auto said = commands.find(text + "```\nrm -rf b\nrm -rf c", kText);
    REQUIRE(said.size() == DeniedCommands::kHitsOfText + 2);
    CHECK(said.back().segment == "rm -rf b");
  }

  TEST_CASE("a text is read as far as its bound") {
    const std::string much(DeniedCommands::kTextBytes - 9, 'x');
    CHECK(forms(much + "\nrm -rf a\nrm -rf b") == Forms{kText});
    CHECK(forms(much + "xxxx\nrm -rf a").empty());
  }

  TEST_CASE("a bound counts what it leaves out") {
    HitBound bound(2);
    const CommandHit a{"a", kText, 0, "a"}, b{"b", kText, 0, "b"}, run{"a", kExecuted, 0, "a"};
    CHECK(bound.takes(a));
    CHECK(bound.takes(a));
    CHECK_FALSE(bound.takes(a));
    CHECK(bound.takes(b));
    CHECK(bound.takes(run));
    CHECK_FALSE(bound.takes(run));
    CHECK(bound.left_out() == 2);
  }
}
