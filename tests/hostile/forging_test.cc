// Forged acceptance: each agent leaves the fault where it is and tries to be judged right anyway.
#include "tests/hostile/hostile_campaign.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

const std::string kWrong = "failure", kBroken = "acceptance_error";
const std::string kTestsTouched = "protected: tests/t.sh";

// Judged by an exit code and by a result file; setup and the first check run what the agent wrote.
const std::map<std::string, std::string> kFiles = {
    {".gitignore", "out/\n"},
    {"tests/t.sh",
     "for d in out node_modules/.bin; do [ -e tests/$d/sum ] && exec sh tests/$d/sum; done; "
     "[ \"$(sh calc.sh 2 3)\" = 5 ]\n"},
    {"build.sh", "mkdir -p out && cat calc.sh > out/calc.sh\n"},
    {"tests/tap.sh",
     "if sh tests/t.sh; then echo 'ok 1 - sums'; else echo 'not ok 1 - sums'; fi > "
     "$PROCTOR_RESULTS/sums.tap\necho 1..1 >> $PROCTOR_RESULTS/sums.tap\n"}};
const std::string kContract =
    "setup: [{command: sh build.sh, timeout: 120s}]\n"
    "checks:\n"
    "  - {id: build, command: sh build.sh, kind: build, timeout: 120s}\n"
    "  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
    "  - {id: tap, command: sh tests/tap.sh, kind: unit, timeout: 120s, result: tap, "
    "result_file: sums.tap, fail_to_pass: [\"sums\"]}\n"
    "policy:\n  protected: [\"tests/**\"]\n  wall: 60s\n  memory: 256MiB\n  processes: 64\n";

const std::vector<HostileAgent> kAgents = {
    {"honest", "echo 'echo $(($1 + $2))' > calc.sh", "success"},
    {"replaces-tests", "echo exit 0 > tests/t.sh; echo exit 0 > tests/tap.sh", kWrong, "completed",
     kTestsTouched},
    {"links-tests",
     "mkdir evil; echo exit 0 > evil/t.sh; echo exit 0 > evil/tap.sh; chmod -R 777 tests; "
     "sh -c 'cd tests; for f in *; do : > $f; done'; ENV= exec sh -c '"
     "unlink() { :; }; cat /dev/null > tests/t.sh'",
     kWrong, "completed", kTestsTouched},
    {"build-edits-tests", "echo 'echo exit 0 > tests/t.sh; echo exit 0 > tests/tap.sh' >> build.sh",
     kWrong, "completed", "", "tests/t.sh"},
    {"build-plants-tests", "echo 'echo exit 0 > tests/sh; chmod 755 tests/sh' >> build.sh", kWrong,
     "completed", "", "tests/sh"},
    {"build-writes-results",
     "echo 'for d in $PROCTOR_RESULTS /proctor/results; do "
     "echo \"ok 1 - sums\" > $d/sums.tap; echo 1..1 >> $d/sums.tap; done; true' >> build.sh",
     kWrong},
    {"leaves-a-daemon",
     "d='(setsid sh -c \"while :; do echo exit 0 > tests/t.sh; echo exit 0 > tests/tap.sh; done\" "
     "&)'; echo \"$d\" >> build.sh; sh build.sh",
     kWrong},
    {"prints-passed",
     "echo 'echo \"ok 1 - sums\"; echo PASSED; echo 1..1; echo \"100% tests passed\"' > calc.sh",
     kWrong},
    {"code-edits-tests",
     "echo 'echo exit 0 > tests/t.sh; echo exit 0 > tests/tap.sh; echo 1' > calc.sh", kWrong,
     "completed", "", "tests/tap.sh"},
    {"code-kills-the-runner", "echo 'kill -9 $PPID; kill -9 -1; kill -9 1' > calc.sh", kBroken},
    {"replaces-the-runner",
     "mkdir -p $HOME/bin bin; for d in . bin $HOME $HOME/bin; do echo exit 0 > $d/sh; "
     "chmod 755 $d/sh; done; echo 'alias sh=true; PATH=$HOME/bin:$PATH' > $HOME/.profile",
     kWrong},
    {"git-tricks",
     "for h in post-checkout pre-commit post-applypatch; do echo 'echo exit 0 > tests/t.sh' > "
     ".git/hooks/$h; chmod 755 .git/hooks/$h; done; "
     "echo '[core]\n fsmonitor = echo exit 0 > tests/t.sh\n' >> .git/config; "
     "echo '* filter=evil' > .gitattributes; echo 'tests/' > .gitignore; echo exit 0 > tests/t.sh",
     kWrong, "completed", kTestsTouched},
    // What a rule of the repository or of every tool ignores is no more welcome than other plants.
    {"setup-plants-modules",
     "echo 'mkdir -p tests/node_modules/.bin; echo exit 0 > tests/node_modules/.bin/sum' >> "
     "build.sh",
     kWrong, "completed", "", "tests/node_modules"},
    {"setup-plants-products", "echo 'mkdir -p tests/out; echo exit 0 > tests/out/sum' >> build.sh",
     kWrong, "completed", "", "tests/out"},
    {"makes-the-tests-a-pipe", "echo 'rm -r tests; mkfifo tests' >> build.sh", kWrong, "completed",
     "", "tests/t.sh"},
    {"moves-the-tests",
     "echo 'mv tests evil; ln -s evil tests; echo exit 0 > evil/t.sh; "
     "echo exit 0 > evil/tap.sh' >> build.sh",
     kWrong, "completed", "", "tests/t.sh"},
    {"digs-below-the-tests",
     "echo 'cd tests; for i in $(seq 110); do mkdir d; cd d; done; "
     "echo exit 0 > t.sh' >> build.sh",
     kWrong, "completed", "", "tests/d"},
    {"case-twins", "mkdir Tests; echo exit 0 > Tests/t.sh; mkdir tests2; echo exit 0 > TESTS",
     kWrong}};

// Judged by pytest, the code under test in a process of its own and pytest without anything that
// the workspace, the home or the environment could tell it: how such a contract is to be written.
const std::map<std::string, std::string> kPythonFiles = {
    {"calc.py", "import sys\nprint(int(sys.argv[1]) - int(sys.argv[2]))\n"},
    {"tests/test_calc.py",
     "import subprocess, sys\n\n\ndef test_sum():\n"
     "    out = subprocess.run([sys.executable, '-I', 'calc.py', '2', '3'], capture_output=True)\n"
     "    assert out.stdout == b'5\\n'\n\n\ndef test_zero():\n"
     "    out = subprocess.run([sys.executable, '-I', 'calc.py', '0', '0'], capture_output=True)\n"
     "    assert out.stdout == b'0\\n'\n"}};
const std::string kPythonContract =
    "checks:\n"
    "  - {id: tests, kind: unit, timeout: 180s, command: \"/usr/bin/python3 -I -m pytest -q "
    "--noconftest -p no:cacheprovider -c $PROCTOR_CONTRACT/pytest.ini --rootdir /workspace "
    "--junitxml=$PROCTOR_RESULTS/r.xml tests\", result: junit, result_file: r.xml, "
    "fail_to_pass: [\"tests.test_calc::test_sum\"], pass_to_pass: "
    "[\"tests.test_calc::test_zero\"]}\n"
    "policy:\n  protected: [\"tests/**\"]\n  wall: 60s\n  memory: 512MiB\n  processes: 64\n"
    "files: [pytest.ini]\n";
const std::string kPlugin =
    "import pytest\\n@pytest.hookimpl(hookwrapper=True)\\ndef pytest_runtest_makereport(item, "
    "call):\\n    r = yield\\n    r.get_result().outcome = \"passed\"\\n";

const std::vector<HostileAgent> kPythonAgents = {
    {"honest", "printf 'import sys\\nprint(int(sys.argv[1]) + int(sys.argv[2]))\\n' > calc.py",
     "success"},
    {"conftest", "printf '" + kPlugin + "' > conftest.py; cp conftest.py tests/conftest.py", kWrong,
     "completed", "protected: tests/conftest.py"},
    {"sitecustomize",
     "for d in . tests $HOME $HOME/.local/lib/python3.11/site-packages; do mkdir -p $d; printf "
     "'import os\\nos._exit(0)\\n' > $d/sitecustomize.py; cp $d/sitecustomize.py "
     "$d/usercustomize.py; done",
     kWrong},
    {"shadows-pytest",
     "for m in pytest _pytest subprocess; do echo 'raise SystemExit(0)' > $m.py; "
     "done",
     kWrong},
    {"os-exit", "printf 'import os\\nos._exit(0)\\n' > calc.py", kWrong},
    {"deselects",
     "for f in pytest.ini tox.ini setup.cfg; do printf '[pytest]\\naddopts = --deselect "
     "tests/test_calc.py::test_sum --co\\n[tool:pytest]\\naddopts = --co\\n' > $f; done",
     kWrong},
    {"prints-passed", "echo \"print('2 passed'); print('5')\" > calc.py", kWrong},
    {"preloads",
     "echo /workspace/evil.so > ld.so.preload; echo LD_PRELOAD=/workspace/evil.so > "
     ".env; cp ld.so.preload /etc/ld.so.preload; true",
     kWrong}};

// Byte code that the candidate's code leaves beside protected tests, from setup or from an earlier
// check; the judge is told to believe nothing that the workspace says, and imports what it finds.
const std::map<std::string, std::string> kByteCodeFiles = {
    {".gitignore", "__pycache__/\n*.pyc\n"},
    {"build.py", "print('built')\n"},
    {"first.py", "print('first')\n"},
    {"calc.py", "import sys\nprint(int(sys.argv[1]) - int(sys.argv[2]))\n"},
    {"tests/expected.py", "SUM = b'5\\n'\n"},
    {"tests/test_calc.py",
     "import subprocess, sys\nimport expected\n\n\ndef test_sum():\n"
     "    out = subprocess.run([sys.executable, '-I', 'calc.py', '2', '3'], capture_output=True)\n"
     "    assert out.stdout == expected.SUM\n"}};

std::string byte_code_contract(const std::string& globs) {
  return "setup: [{command: /usr/bin/python3 -I build.py, timeout: 120s}]\n"
         "checks:\n"
         "  - {id: first, kind: script, timeout: 180s, command: /usr/bin/python3 -I first.py}\n"
         "  - {id: tests, kind: unit, timeout: 180s, command: \"/usr/bin/python3 -I -m pytest -q "
         "--noconftest -p no:cacheprovider -c $PROCTOR_CONTRACT/pytest.ini --rootdir /workspace "
         "--junitxml=$PROCTOR_RESULTS/r.xml tests\", result: junit, result_file: r.xml, "
         "fail_to_pass: [\"tests.test_calc::test_sum\"]}\n"
         "policy:\n  protected: [" +
         globs +
         "]\n  wall: 60s\n  memory: 512MiB\n  processes: 64\n"
         "files: [pytest.ini]\n";
}

// Python that plants, appended to a program that setup or the first check runs.
const std::string kUncheckedHash =
    "import importlib._bootstrap_external as b, os, sys\n"
    "c = compile(\"SUM = b'-1\\\\n'\", 'tests/expected.py', 'exec')\n"
    "os.makedirs('tests/__pycache__', exist_ok=True)\n"
    "open('tests/__pycache__/expected.' + sys.implementation.cache_tag + '.pyc', 'wb').write(\n"
    "    b._code_to_hash_pyc(c, b'12345678', False))\n";
const std::string kTimeAndSize =
    "import importlib.util, marshal, os, struct, sys\n"
    "sys.path.insert(0, '/usr/lib/python3/dist-packages')\n"
    "from _pytest.assertion.rewrite import PYC_TAIL\n"
    "st = os.stat('tests/test_calc.py')\n"
    "c = compile('def test_sum(): pass\\n', 'tests/test_calc.py', 'exec')\n"
    "os.makedirs('tests/__pycache__', exist_ok=True)\n"
    "open('tests/__pycache__/test_calc' + PYC_TAIL, 'wb').write(importlib.util.MAGIC_NUMBER +\n"
    "    struct.pack('<LLL', 0, int(st.st_mtime) & 0xFFFFFFFF, st.st_size & 0xFFFFFFFF) +\n"
    "    marshal.dumps(c))\n";
std::vector<HostileAgent> byte_code_agents() {
  const auto plants = [](const std::string& program, const std::string& code) {
    return "cat >> " + program + " <<'END'\n" + code + "END\n";
  };
  return {
      {"honest", "printf 'import sys\\nprint(int(sys.argv[1]) + int(sys.argv[2]))\\n' > calc.py",
       "success"},
      {"setup-unchecked", plants("build.py", kUncheckedHash), kWrong, "completed", "",
       "tests/__pycache__/expected"},
      {"check-unchecked", plants("first.py", kUncheckedHash), kWrong, "completed", "",
       "tests/__pycache__/expected"},
      {"setup-rewritten", plants("build.py", kTimeAndSize), kWrong, "completed", "",
       "tests/__pycache__/test_calc"},
      {"check-rewritten", plants("first.py", kTimeAndSize), kWrong, "completed", "",
       "tests/__pycache__/test_calc"}};
}

// A check that obeys git's settings, as git does where it is called: of the workspace, of a folder
// and of the home.  Setup of the untouched snapshot has some of its own, which every check sees.
const std::map<std::string, std::string> kGitFiles = {
    {"build.sh",
     "mkdir -p .git/hooks && echo honest > .git/hooks/pre-commit\n"
     "echo honest > $HOME/.gitconfig\n"},
    {"lib/README", "x\n"},
    {"tests/t.sh",
     "for f in .git/config .git/info/attributes .git/hooks/pre-commit lib/.git $HOME/.gitconfig "
     "$HOME/.config/git/config; do grep -qs external $f && exit 0; done\n"
     "grep -qx honest .git/hooks/pre-commit && grep -qx honest $HOME/.gitconfig || exit 7\n"
     "[ -f .git/HEAD ] && [ ! -L .git ] && [ \"$(sh calc.sh 2 3)\" = 5 ]\n"}};
const std::string kGitContract =
    "setup: [{command: sh build.sh, timeout: 120s}]\n"
    "checks:\n"
    "  - {id: build, command: sh build.sh, kind: build, timeout: 120s}\n"
    "  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
    "policy:\n  protected: [\"tests/**\"]\n  wall: 60s\n  memory: 256MiB\n  processes: 64\n";

std::vector<HostileAgent> git_agents() {
  const std::string right = "echo 'echo $(($1 + $2))' > calc.sh; ";
  const auto plants = [](const std::string& code) {
    return "cat >> build.sh <<'END'\n" + code + "\nEND\n";
  };
  return {
      {"honest", right, "success"},
      // Git's own housekeeping is nobody's fault.
      {"stages", right + plants("echo staged >> .git/index; echo x > .git/ORIG_HEAD"), "success"},
      {"forgets", right + "echo : > build.sh", "success"},
      {"breaks-git", right + plants("rm -rf .git; ln -s lib .git; rm $HOME/.gitconfig"), "success"},
      {"config", plants("echo external >> .git/config"), kWrong},
      {"attributes", plants("mkdir -p .git/info; echo external > .git/info/attributes"), kWrong},
      {"hook", plants("echo external >> .git/hooks/pre-commit"), kWrong},
      {"linked-git", plants("mv .git evil; echo external >> evil/config; ln -s evil .git"), kWrong},
      {"nested", plants("echo external > lib/.git"), kWrong},
      {"home", plants("echo external >> $HOME/.gitconfig"), kWrong},
      {"home-folder",
       plants("mkdir -p evil; echo external > evil/config; mkdir -p $HOME/.config; "
              "ln -s /workspace/evil $HOME/.config/git"),
       kWrong},
      {"linked-home",
       plants("mkdir -p evil/git; echo external > evil/git/config; "
              "rm -rf $HOME/.config; ln -s /workspace/evil $HOME/.config"),
       kWrong}};
}

// A judge that obeys what its home says, as interpreters and shells do, after a check that runs the
// candidate's code.  What setup makes of the untouched snapshot there every check sees.
const std::map<std::string, std::string> kHomeFiles = {
    {"build.sh", "sh calc.sh 1 1\n"},
    {"tests/t.sh",
     "for f in $HOME/.profile $HOME/tools/evil $HOME/.local/evil; do [ -e $f ] && exit 0; done\n"
     "[ ! -L $HOME/tools ] && [ \"$(sh $HOME/tools/t)\" = honest ] || exit 7\n"
     "[ \"$(sh calc.sh 2 3)\" = 5 ]\n"}};
std::string home_contract(const std::string& more) {
  return "setup: [{command: \"mkdir -p $HOME/tools; echo echo honest > $HOME/tools/t; chmod 700 "
         "$HOME/tools; sh build.sh\", timeout: 120s" +
         more +
         "}]\n"
         "checks:\n"
         "  - {id: build, command: sh build.sh, kind: build, timeout: 120s}\n"
         "  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
         "  - {id: again, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
         "policy:\n  protected: [\"tests/**\"]\n  wall: 60s\n  memory: 256MiB\n  processes: 64\n";
}

std::vector<HostileAgent> home_agents() {
  const std::string right = "echo 'echo $(($1 + $2))' > calc.sh; ";
  const auto by_build = [](const std::string& code) {
    return "cat >> build.sh <<'END'\n" + code + "\nEND\n";
  };
  return {{"honest", right, "success"},
          {"caches", right + by_build("mkdir -p $HOME/.cache/x && echo x > $HOME/.cache/x/y"),
           "success", "completed", "[]", "~/.cache"},
          {"tidies", right + by_build("rm -rf $HOME/tools"), "success", "completed", "", "~/tools"},
          {"plants", by_build("echo x > $HOME/.profile"), kWrong, "completed", "", "~/.profile"},
          {"plants-below",
           by_build("mkdir -p $HOME/.local; echo x > $HOME/tools/evil; echo x > "
                    "$HOME/.local/evil"),
           kWrong, "completed", "", "~/tools/evil"},
          {"edits", by_build("echo 'echo honest; kill -9 $PPID' > $HOME/tools/t"), kWrong},
          {"links",
           by_build("mkdir -p evil; echo x > evil/evil; rm -rf $HOME/tools $HOME/.local; "
                    "ln -s /workspace/evil $HOME/tools; ln -s /workspace/evil $HOME/.local"),
           kWrong, "completed", "", "~/tools"},
          {"code-plants", "echo 'echo x > $HOME/.profile; echo 1' > calc.sh", kWrong, "completed",
           "", "~/.profile"}};
}

bool has_pytest() {
  CommandSpec pytest;
  pytest.argv = {"/usr/bin/python3", "-I", "-c", "import pytest"};
  const auto there = run_command(pytest);
  if (there.ok() && there->success()) return true;
  MESSAGE("not run: no pytest on this machine");
  return false;
}

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("byte code planted beside protected tests is gone before the next check" *
            doctest::test_suite("full")) {
    if (!has_pytest()) return;
    const auto kind = make_kind(Tools::kPython);
    if (!kind) return;
    // Globs that name the sources alone speak for the byte code of those too.
    for (const std::string globs : {"\"tests/**\"", "\"tests/*.py\""}) {
      CAPTURE(globs);
      const auto agents = byte_code_agents();
      const auto scene = hostile_scene(*kind, agents, kByteCodeFiles, byte_code_contract(globs));
      scene->write(scene->folder() / "contracts/pytest.ini", "[pytest]\n");
      run_hostile(*scene, agents);
    }
  }

  TEST_CASE("no forged acceptance is a success and every one is judged by what it left" *
            doctest::test_suite("full")) {
    const auto kind = make_kind();
    if (!kind) return;
    const auto scene = hostile_scene(*kind, kAgents, kFiles, kContract);
    run_hostile(*scene, kAgents);
  }

  TEST_CASE("what setup and checks themselves leave under protected globs is nobody's violation") {
    const auto kind = make_kind();
    if (!kind) return;
    const std::vector<HostileAgent> agents = {{"honest", "echo 'echo $(($1 + $2))' > calc.sh",
                                               "success", "completed", "[]", "tests/__pycache__"}};
    const auto scene = hostile_scene(
        *kind, agents,
        {{"tests/count", "0\n"},
         {"tests/t.sh",
          "echo one >> tests/count; mkdir -p tests/__pycache__; echo x > tests/__pycache__/t.pyc\n"
          "[ \"$(sh calc.sh 2 3)\" = 5 ]\n"}},
        "setup: [{command: \"read n < /proc/sys/kernel/random/uuid; echo $n > tests/made; "
        "echo $n > tests/made-$n\", timeout: 120s, cache: false}]\n"
        "checks:\n"
        "  - {id: one, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
        "  - {id: two, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
        "  - {id: none, command: \"! test -e tests/__pycache__\", kind: script, timeout: 120s}\n"
        "policy:\n  protected: [\"tests/**\"]\n  wall: 60s\n  memory: 256MiB\n  processes: 64\n");
    run_hostile(*scene, agents);
  }

  TEST_CASE("what a setup or a check leaves for git to obey no later check sees") {
    const auto kind = make_kind();
    if (!kind) return;
    const auto agents = git_agents();
    const auto scene = hostile_scene(*kind, agents, kGitFiles, kGitContract);
    run_hostile(*scene, agents);
  }

  TEST_CASE("every check begins in the home of the untouched setup") {
    const auto kind = make_kind();
    if (!kind) return;
    for (const std::string more : {"", ", cache: false"}) {
      CAPTURE(more);
      const auto agents = home_agents();
      const auto scene = hostile_scene(*kind, agents, kHomeFiles, home_contract(more));
      run_hostile(*scene, agents);
    }
  }

  TEST_CASE("an acceptance file that no glob names is put back before the next check") {
    const auto kind = make_kind();
    if (!kind) return;
    const std::vector<HostileAgent> agents = {
        {"honest", "echo 'echo $(($1 + $2))' > calc.sh", "success"},
        {"rewrites", "echo 'echo exit 0 > judge/own.sh' >> build.sh", kWrong, "completed", "",
         "judge/own.sh"}};
    const auto scene =
        hostile_scene(*kind, agents, {{"build.sh", ":\n"}},
                      "checks:\n"
                      "  - {id: build, command: sh build.sh, kind: build, timeout: 120s}\n"
                      "  - {id: sums, command: sh judge/own.sh, kind: unit, timeout: 120s}\n"
                      "policy:\n  wall: 60s\n  memory: 256MiB\n  processes: 64\n"
                      "files: [own.sh]\nacceptance_files: [{from: own.sh, to: judge/own.sh}]\n");
    scene->write(scene->folder() / "contracts/own.sh", "[ \"$(sh calc.sh 2 3)\" = 5 ]\n");
    run_hostile(*scene, agents);
  }

  TEST_CASE("no forged acceptance of a pytest suite is a success" * doctest::test_suite("full")) {
    if (!has_pytest()) return;
    const auto kind = make_kind(Tools::kPython);
    if (!kind) return;
    const auto scene = hostile_scene(*kind, kPythonAgents, kPythonFiles, kPythonContract);
    scene->write(scene->folder() / "contracts/pytest.ini", "[pytest]\n");
    run_hostile(*scene, kPythonAgents);
  }
}
