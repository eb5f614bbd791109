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

}  // namespace

TEST_SUITE("sandbox dress") {
  TEST_CASE("setup sees what it names and what nothing else does, and no file that judges") {
    CHECK(shown(judged(), &shown_to_setup) == std::vector<std::string>{"tools/lib.sh", "both.sh"});
    Contract named = judged();
    // An acceptance file is never setup's, whatever its command says.
    named.setup[0].command += "; cat $PROCTOR_CONTRACT/own.sh $PROCTOR_CONTRACT/serve.sh";
    CHECK(shown(named, &shown_to_setup) ==
          std::vector<std::string>{"serve.sh", "tools/lib.sh", "both.sh"});
  }

  TEST_CASE("checks see all but the answers, and setup sees none of these either") {
    CHECK(shown(judged(), &shown_to_commands) ==
          std::vector<std::string>{"own.sh", "judges/two.sh", "judges/data/three.sh", "serve.sh",
                                   "tools/lib.sh", "both.sh"});
  }
}
