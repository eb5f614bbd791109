#pragma once
// The reference agent in an image, whoever runs it: what its commands may write, and that commands
// and the worker's own tools read and change each other's files.
#include "tests/integration/tools/loop_scene.h"

namespace proctor::testing {

struct ImageLoopScene : LoopScene {
  ImageLoopScene()
      : LoopScene(in_order(
            {chat_asks({{"shell", {{"command", "echo no > calc.sh; echo home > ~/kept; pwd"}}},
                        go_on_to("write"),
                        kFix,
                        {"write_file", {{"path", "by/tool.txt"}, {"content", "one\n"}}},
                        go_on_to("test")}),
             chat_asks({{"shell",
                         {{"command",
                           "sh calc.sh 20 3; cat ~/kept; echo two >> by/tool.txt; umask 077; "
                           "mkdir own; echo three > own/file.txt; sleep 600 & ls /proctor"}}},
                        {"read_file", {{"path", "by/tool.txt"}}},
                        {"edit_file",
                         {{"path", "own/file.txt"}, {"old_text", "three"}, {"new_text", "four"}}},
                        {"shell", {{"command", "cat own/file.txt; rm -r own by"}}}}),
             chat_asks({{"submit"}})})) {}

  void is_solved_in(const std::string& image, const std::string& kind) {
    contract.environment.image = image;
    contract.environment.variables["PATH"] = "/usr/bin:/bin";
    const Ended e = run(loop());
    CAPTURE(e.result.rationale);
    CAPTURE(e.complained);
    CAPTURE(log());
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.result.usage.model_calls == 3);
    REQUIRE(provider.heard().size() == 3);
    const std::vector<std::string> t = told();
    REQUIRE(t.size() == 9);
    CHECK_MESSAGE(holds(t[0], "Read-only file system"), t[0]);
    CHECK_MESSAGE(holds(t[0], "\n/workspace\n"), t[0]);
    CHECK_MESSAGE(holds(t[5], "exit code 0\n[stdout]\n23\nhome\n"), t[5]);
    CHECK_FALSE(holds(t[5], "gateway"));
    CHECK_MESSAGE(t[6] == "1\tone\n2\ttwo\n", t[6]);
    CHECK_MESSAGE(holds(t[8], "exit code 0\n[stdout]\nfour\n"), t[8]);
    CHECK(holds(e.patch, "+echo $(($1 + $2))"));
    CHECK_FALSE(holds(e.patch, "by/tool.txt"));
    const Json manifest = parse_json(read_file(got() / "manifest.json", 1 << 20).value()).value();
    CHECK(manifest["environment"]["sandbox"] == kind);
    is_verified();
  }
};

}  // namespace proctor::testing
