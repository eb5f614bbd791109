// Which of a contract's files setup sees: none that judges, for setup can leave a copy.
#include "worker/shell/sandbox_dress.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace proctor;

namespace {

Contract judged() {
  Contract c;
  for (const char* path : {"answer.patch", "answer.txt", "own.sh", "judges/two.sh",
                           "judges/data/three.sh", "serve.sh", "tools/lib.sh", "both.sh"})
    c.files.push_back({path, 0644, "x"});
  c.reference_patch = "answer.patch";
  c.single_shot = "answer.txt";
  c.acceptance_files = {{"own.sh", "tests/own.sh"}};
  c.setup.resize(1);
  c.setup[0].command = "sh $PROCTOR_CONTRACT/both.sh";
  c.checks.resize(3);
  c.checks[0].command = "sh tests/own.sh";
  c.checks[1].command = "sh \"${PROCTOR_CONTRACT}\"/judges/two.sh; $PROCTOR_CONTRACT/both.sh";
  c.checks[2].command = "ls $PROCTOR_CONTRACT/judges/data";
  c.services.resize(1);
  c.services[0].command = "sh $PROCTOR_CONTRACT/serve.sh";
  return c;
}

std::vector<std::string> shown(const Contract& c,
                               bool (*to)(const Contract&, const ReferencedFile&)) {
  std::vector<std::string> out;
  for (const ReferencedFile& file : c.files)
    if (to(c, file)) out.push_back(file.path);
  return out;
}

bool seen_by_setup(const Contract& c, const ReferencedFile& file) {
  return shown_to_setup(c).contains(file.path);
}

}  // namespace

TEST_SUITE("sandbox dress") {
  TEST_CASE("setup sees what it names and what nothing else does, and no file that judges") {
    CHECK(shown(judged(), &seen_by_setup) == std::vector<std::string>{"tools/lib.sh", "both.sh"});
    Contract named = judged();
    // An acceptance file is never setup's, whatever its command says.
    named.setup[0].command += "; cat $PROCTOR_CONTRACT/own.sh $PROCTOR_CONTRACT/serve.sh";
    CHECK(shown(named, &seen_by_setup) ==
          std::vector<std::string>{"serve.sh", "tools/lib.sh", "both.sh"});
  }

  TEST_CASE(
      "what a judge's script reads is the judge's, and what setup's script reads is setup's") {
    Contract c = judged();
    const auto put = [&](const char* path, const char* text) {
      std::ranges::find(c.files, std::string(path), &ReferencedFile::path)->bytes = text;
    };
    put("judges/two.sh", "cd \"$PROCTOR_CONTRACT\" && cmp tools/lib.sh \"$1\"");
    CHECK(shown(c, &seen_by_setup) == std::vector<std::string>{"both.sh"});
    put("both.sh", "open(root / \"tools/lib.sh\")");
    CHECK(shown(c, &seen_by_setup) == std::vector<std::string>{"tools/lib.sh", "both.sh"});
    put("both.sh", "cat xtools/lib.sh tools/lib.sh2");
    CHECK(shown(c, &seen_by_setup) == std::vector<std::string>{"both.sh"});
    c.files.push_back({"expected.txt", 0644, "2"});
    CHECK(shown(c, &seen_by_setup) == std::vector<std::string>{"both.sh", "expected.txt"});
    c.checks[0].command = "cd $PROCTOR_CONTRACT && cmp expected.txt $OLDPWD/out";
    CHECK(shown(c, &seen_by_setup) == std::vector<std::string>{"both.sh"});
  }

  TEST_CASE("git looks closely in checks, behind what the contract sets in the same way") {
    std::map<std::string, std::string> env;
    have_git_look_closely(env);
    CHECK(env == std::map<std::string, std::string>{{"GIT_CONFIG_COUNT", "2"},
                                                    {"GIT_CONFIG_KEY_0", "core.checkStat"},
                                                    {"GIT_CONFIG_VALUE_0", "default"},
                                                    {"GIT_CONFIG_KEY_1", "core.trustctime"},
                                                    {"GIT_CONFIG_VALUE_1", "true"}});
    env = {
        {"GIT_CONFIG_COUNT", "1"}, {"GIT_CONFIG_KEY_0", "user.name"}, {"GIT_CONFIG_VALUE_0", "me"}};
    have_git_look_closely(env);
    CHECK(env.at("GIT_CONFIG_COUNT") == "3");
    CHECK(env.at("GIT_CONFIG_KEY_0") == "user.name");
    CHECK(env.at("GIT_CONFIG_KEY_2") == "core.trustctime");
    for (const char* wrong : {"", "x", "1x", "-1", "4000000000"}) {
      env = {{"GIT_CONFIG_COUNT", wrong}};
      have_git_look_closely(env);
      CHECK(env.size() == 1);
    }
  }

  TEST_CASE("checks see all but the answers, and setup sees none of these either") {
    CHECK(shown(judged(), &shown_to_commands) ==
          std::vector<std::string>{"own.sh", "judges/two.sh", "judges/data/three.sh", "serve.sh",
                                   "tools/lib.sh", "both.sh"});
  }
}
