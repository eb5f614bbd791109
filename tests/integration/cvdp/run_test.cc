// `proctor cvdp run` and `selfcheck` on problems of our own: the image is this machine's shell.
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "tests/integration/cvdp/run_cases.h"
#include "tests/support/leftovers.h"

using namespace proctor;
using namespace proctor::testing;
using Runner = ImagesOf::Runner;

TEST_SUITE("cvdp run") {
  TEST_CASE("a harness sees what upstream shows it, by the OCI runtime") {
    if (have_oci("what a harness sees")) sees_what_upstream_shows(Runner::kOci);
  }

  TEST_CASE("each service has its result, and limits have words, by the OCI runtime") {
    if (have_oci("each service has its result")) tells_services_apart(Runner::kOci);
  }

  TEST_CASE("an agent's image sees what upstream shows it and its change counts, by OCI") {
    if (have_oci("an agent's image")) agent_sees_what_upstream_shows(Runner::kOci);
  }

  TEST_CASE("an agent's image beyond its disk limit ends as in every sandbox, by OCI") {
    if (have_oci("an agent's disk")) agent_is_stopped_at_its_disk_limit(Runner::kOci);
  }

  TEST_CASE("an agent's image is given the key and the network it was asked for, by OCI") {
    if (have_oci("an agent's key")) agent_is_given_its_key_and_a_network(Runner::kOci);
  }

  TEST_CASE("an agent that is a method has its own setup, key, places and meter") {
    if (!have_oci("an agent's method")) return;
    const RunScene scene(Runner::kOci);
    const fs::path folder = scene.dir.path() / "mini";
    REQUIRE(make_dirs(folder / "lib").ok());
    must(write_file(folder / "lib/word", "#!/bin/sh\necho y\n", Durability::kLazy, 0755));
    must(write_file(folder / "fix.sh",
                    "echo \"key $CVDP_AGENT_KEY\"; ls; \"$PROCTOR_AGENT/bin/word\" > rtl/a.sv; "
                    "test -S \"$PROCTOR_METER\" "
                    "&& echo metered; echo \"$PROCTOR_BRIEFING\" | grep network:\n"));
    const std::string environment =
        "environment:\n  secrets: [CVDP_AGENT_KEY]\n  network: {allow: [\"api.example:443\"]}\n"
        "  setup: ['mkdir bin && cp \"$PROCTOR_METHOD/lib/word\" bin/']\n";
    must(write_file(folder / "agent.yaml",
                    "name: mini\nscript: fix.sh\nfiles: [lib/word]\n" + environment));
    ::setenv("CVDP_AGENT_KEY", "letmein", 1);
    ShellProblem p;
    p.compose = service(kImage, kIsY);
    const std::vector<std::string> by_it = {"--agent-method", (folder / "agent.yaml").string(),
                                            "-n", "2"};
    const CommandOutcome done = scene.run(line_of(p), by_it);
    INFO(done.err);
    CHECK(done.exit_code == 0);
    for (const std::string sample : {"sample_1/", "sample_2/"}) {
      CHECK(scene.raw(sample)["cvdp_agentic_a_0001"]["errors"] == 0);
      const std::string said = scene.text(sample + "cvdp_agentic_a/reports/1_agent.txt");
      CHECK_MESSAGE(contains(said, "key letmein\n"), said);
      CHECK(contains(said, "prompt.json\nrtl\n"));
      CHECK(contains(said, "metered\n"));
      CHECK_MESSAGE(contains(said, "network: only api.example:443, through the proxy"), said);
      CHECK(contains(scene.text(sample + "cvdp_agentic_a/harness/1/agent_changes.patch"), "+y"));
      CHECK(contains(scene.text(sample + "report.txt"), "Model/Agent: mini"));
    }
    // Another method is another question; one that is none is named with its place.
    must(write_file(folder / "agent.yaml", "name: mini\nscript: fix.sh\n"));
    CHECK(contains(scene.run(line_of(p), by_it).err, "another question (modes)"));
    must(write_file(folder / "agent.yaml", "name: mini\nscrip: fix.sh\n"));
    const CommandOutcome wrong = scene.run(line_of(p), by_it);
    CHECK(wrong.exit_code == 2);
    CHECK_MESSAGE(contains(wrong.err, "(did you mean \"script\"?)"), wrong.err);
    ::unsetenv("CVDP_AGENT_KEY");
    // Where no worker has the key nothing begins.
    must(write_file(folder / "agent.yaml",
                    "name: mini\nscript: fix.sh\nfiles: [lib/word]\n" + environment));
    const CommandOutcome none = run_proctor({"cvdp", "run", scene.dataset(line_of(p)).string(),
                                             "--agent-method", (folder / "agent.yaml").string(),
                                             "--prefix", (scene.dir.path() / "other").string()});
    CHECK(none.exit_code == 2);
    CHECK_MESSAGE(contains(none.err, "CVDP_AGENT_KEY"), none.err);
  }

  TEST_CASE("a tree that could not be read is no empty patch: no answer, and nothing to replay") {
    if (!have_oci("an unreadable tree")) return;
    const RunScene scene(Runner::kOci);
    const fs::path folder = scene.dir.path() / "deep";
    must(make_dirs(folder));
    must(write_file(folder / "deep.sh",
                    "i=0; while [ $i -lt 300 ]; do i=$((i+1)); mkdir d && cd d || break; done\n"));
    must(write_file(folder / "agent.yaml", "name: deep\nscript: deep.sh\n"));
    ShellProblem p;
    p.compose = service(kImage, kIsY);
    const CommandOutcome done =
        scene.run(line_of(p), {"--agent-method", (folder / "agent.yaml").string()});
    CHECK_MESSAGE(contains(done.err, "no agent_changes.patch: what its agent left"), done.err);
    CHECK(scene.raw()["cvdp_agentic_a_0001"]["errors"] == 1);
    const CommandOutcome again = run_proctor(
        {"cvdp", "run", (scene.dir.path() / "problems.jsonl").string(), "--answers",
         (scene.dir.path() / "work").string(), "-p", (scene.dir.path() / "again").string()},
        std::chrono::minutes(2));
    CHECK_MESSAGE(contains(again.out + again.err, "could not be read: workspace: nested"),
                  (again.out + again.err));
  }

  TEST_CASE("a link that a candidate puts where a folder is shown leads nowhere") {
    if (!have_oci("a link for a folder")) return;
    const RunScene scene(Runner::kOci);
    ShellProblem p;
    p.compose = service(kImage, "ls /code/verif; cat /code/verif/passwd && exit 1; exit 0");
    Json record = must(parse_json(line_of(p)));
    // A patch of a copilot or agentic record cannot make one; a method's can.
    const fs::path campaign = scene.dir.path() / "campaign";
    REQUIRE(run_proctor({"cvdp", "import", scene.dataset(record.dump() + "\n").string(), "--into",
                         campaign.string()})
                .exit_code == 0);
    const fs::path yaml = campaign / "campaign.yaml";
    std::string text = must(read_file(yaml, 10'000));
    text.replace(text.find("[noop, reference]"), 17,
                 "[{name: linker, kind: command, command: 'ln -s /etc verif'}]");
    must(write_file(yaml, text));
    const CommandOutcome done = run_proctor({"run", campaign.string()}, std::chrono::minutes(2));
    INFO(done.err);
    CHECK(done.exit_code == 0);
    CHECK(contains(must(read_file(campaign / "reports/runs.csv", 10'000)), "ended,success"));
  }

  TEST_CASE("samples are runs of one campaign, and a prefix answers one question") {
    if (!have_oci("samples and prefixes")) return;
    const RunScene scene(Runner::kOci);
    ShellProblem p;
    p.compose = service(kImage, kIsY);
    const std::string lines = line_of(p);
    CHECK(scene.run(lines, {"-n", "3", "-k", "2", "--workers", "2"}).exit_code == 0);
    for (const char* sample : {"sample_1/", "sample_2/", "sample_3/"})
      CHECK(scene.raw(sample)["cvdp_agentic_a_0001"]["errors"] == 0);
    CHECK(contains(scene.text("composite_report.txt"), "Pass@2, n=3"));
    CHECK(contains(scene.text("pass_at_k.txt"), "unbiased"));
    // Again: nothing runs, the reports are those of the evidence.
    const std::string before = scene.text("sample_1/raw_result.json");
    must(write_file(scene.dir.path() / "work/sample_1/raw_result.json", "{}"));
    CHECK(scene.run(lines, {"-n", "3", "-k", "2"}).exit_code == 0);
    CHECK(scene.text("sample_1/raw_result.json") == before);
    CHECK(scene.run(lines, {"-n", "3", "-r"}).exit_code == 0);
    const CommandOutcome other = scene.run(lines, {"-n", "3", "--no-patch"});
    CHECK(other.exit_code == 2);
    CHECK(contains(other.err, "another question (modes)"));
  }

  TEST_CASE("a prefix grows by another --id, by the rest of the dataset and by more samples" *
            doctest::test_suite("full")) {
    if (!have_oci("a prefix that grows")) return;
    const RunScene scene(Runner::kOci);
    std::string lines;
    for (const char* id : {"cvdp_agentic_a_0001", "cvdp_agentic_b_0002", "cvdp_agentic_c_0003"}) {
      ShellProblem p;
      p.id = id;
      p.compose = service(kImage, kIsY);
      lines += line_of(p);
    }
    const auto problems = [&](const std::string& sample = "") {
      std::string out;
      const Json raw = scene.raw(sample);
      for (const auto& [id, item] : raw.items()) out += id.substr(13, 1) + item["errors"].dump();
      return out;
    };
    const auto attempts = [&] {
      std::size_t out = 0;
      for (const auto& entry : fs::recursive_directory_iterator(scene.dir.path() / "work"))
        out += entry.path().filename() == "report.json" &&
                       entry.path().parent_path().filename() == "attempt-1"
                   ? 1U
                   : 0U;
      return out;
    };
    const auto responses = [&](const std::string& sample = "") {
      const std::string text = scene.text(sample + "prompt_response.jsonl");
      return std::ranges::count(text, '\n');
    };
    const auto run = [&](const std::vector<std::string>& more) {
      const CommandOutcome done = scene.run(lines, more);
      INFO(done.err);
      CHECK(done.exit_code == 0);
    };
    run({"-i", "cvdp_agentic_b_0002"});
    CHECK(problems() == "b0");
    run({"-i", "cvdp_agentic_a_0001"});
    CHECK(problems() == "a0b0");
    CHECK(responses() == 2);
    CHECK(contains(scene.text("raw_result.json"), "{\n  \"cvdp_agentic_"));  // as upstream's -i
    CHECK(contains(scene.text("report.txt"), "cvdp_agentic_b_0002"));
    CHECK(attempts() == 2);
    CHECK(contains(scene.text("run.log"), "golden: 1 of 1 problems passed\n"));
    CHECK(contains(scene.text("run.log"), "golden: 2 of 2 problems passed\n"));
    run({});  // the one that is missing
    CHECK(problems() == "a0b0c0");
    CHECK(attempts() == 3);
    run({"-n", "2"});  // one more of each
    CHECK(problems("sample_1/") == "a0b0c0");
    CHECK(problems("sample_2/") == "a0b0c0");
    CHECK(attempts() == 6);
    run({"-n", "3"});
    CHECK(problems("sample_3/") == "a0b0c0");
    CHECK(attempts() == 9);
    CHECK(scene.text("sample_3/cvdp_agentic_c/harness/3/rtl/a.sv") == "y\n");
    CHECK(responses("sample_3/") == 3);
    CHECK(contains(scene.text("composite_report.txt"), "Pass@1, n=3"));
    run({"-n", "3", "-r"});
    CHECK(attempts() == 9);
    run({"-n", "2"});  // fewer than there are: those
    CHECK(attempts() == 9);
    CHECK(contains(scene.text("composite_report.txt"), "Pass@1, n=2"));
    const CommandOutcome other = scene.run(lines, {"-i", "cvdp_agentic_a_0001", "-d"});
    CHECK(other.exit_code == 2);
    CHECK(contains(other.err, "another question (modes)"));
    // What all of it handed in replays, sample by sample.
    const fs::path again = scene.dir.path() / "again";
    CHECK(run_proctor({"cvdp", "run", (scene.dir.path() / "problems.jsonl").string(), "--answers",
                       (scene.dir.path() / "work").string(), "-n", "3", "-p", again.string()},
                      std::chrono::minutes(2))
              .exit_code == 0);
    const Json replay =
        must(parse_json(must(read_file(again / "sample_3/raw_result.json", 1 << 20))));
    CHECK(replay["cvdp_agentic_b_0002"]["errors"] == 0);
  }

  TEST_CASE("a killed coordinator loses nothing: the same command goes on to the same reports") {
    if (!have_oci("a killed coordinator")) return;
    const RunScene scene(Runner::kOci);
    ShellProblem slow, wrong;
    slow.compose = service(kImage, std::string("sleep 1; ") + kIsY);
    wrong.id = "cvdp_agentic_wrong_0002";
    wrong.compose = service(kImage, "sleep 1; exit 5");
    const fs::path file = scene.dataset(line_of(slow) + line_of(wrong));
    const auto command = [&](const char* prefix) {
      return std::vector<std::string>{
          "cvdp", "run", file.string(), "-p", (scene.dir.path() / prefix).string(),
          "-n",   "3",   "-t",          "1"};
    };
    CommandSpec spec;
    spec.argv = command("work");
    spec.argv.insert(spec.argv.begin(), proctor_program().string());
    const fs::path runs = scene.dir.path() / "work/campaign/runs";
    {
      Child child =
          must(Child::start(spec, scene.dir.path() / "said", Child::Lifetime::kDiesWithParent));
      REQUIRE(eventually([&] {  // one has ended, others have not
        std::error_code ec;
        return fs::exists(runs / "cvdp_agentic_a_0001/reference/r1/attempt-1/report.json", ec) ||
               fs::exists(runs / "cvdp_agentic_wrong_0002/reference/r1/attempt-1/report.json",
                          ec) ||
               fs::exists(runs / "cvdp_agentic_a_0001/reference/r2/attempt-1/report.json", ec);
      }));
      child.signal(SIGKILL);
      CHECK(child.wait(std::chrono::seconds(180)));
    }
    CHECK_FALSE(fs::exists(scene.dir.path() / "work/raw_result.json"));
    CHECK(run_proctor(command("work"), std::chrono::minutes(2)).exit_code == 0);
    CHECK(run_proctor(command("quiet"), std::chrono::minutes(2)).exit_code == 0);
    const auto results = [&](const std::string& prefix, int sample) {
      Json raw = must(parse_json(must(read_file(
          scene.dir.path() / prefix / ("sample_" + std::to_string(sample)) / "raw_result.json",
          1 << 20))));
      for (Json& item : raw)
        for (Json& test : item["tests"]) {
          test.erase("execution");
          test.erase("log");
        }
      return raw;
    };
    for (int sample = 1; sample <= 3; ++sample)
      CHECK(results("work", sample) == results("quiet", sample));
    CHECK(results("work", 1)["cvdp_agentic_wrong_0002"]["errors"] == 5);
    CHECK(eventually([&] {
      return leftovers_of(scene.dir.path(), scene.dir.path() / "work/campaign/.proctor/workers")
          .empty();
    }));
  }

  TEST_CASE("selfcheck names what passes without a change and what its reference fails") {
    if (!have_oci("selfcheck")) return;
    const RunScene scene(Runner::kOci);
    ShellProblem sound, weak, wrong;
    sound.compose = service(kImage, kIsY);
    weak.id = "cvdp_agentic_weak_0002";
    weak.compose = service(kImage, "true");
    wrong.id = "cvdp_agentic_wrong_0003";
    wrong.compose = service(kImage, "false");
    const CommandOutcome done =
        scene.run(line_of(sound) + line_of(weak) + line_of(wrong), {"-n", "2"}, "selfcheck");
    CHECK(done.exit_code == 1);
    CHECK(contains(done.out, "cvdp_agentic_weak_0002: without any change 2 of 2 passed\n"));
    CHECK(contains(done.out, "cvdp_agentic_wrong_0003: the reference passed 0 of 2\n"));
    CHECK(contains(done.out, "1 of 3 problems are sound"));
    CHECK(contains(scene.text("golden/sample_2/report.txt"), "cvdp_agentic_weak_0002"));
    TempDir other = must(TempDir::create());
    CHECK(run_proctor({"cvdp", "selfcheck", scene.dataset(line_of(sound)).string(), "-n", "1", "-p",
                       (other.path() / "w").string()})
              .exit_code == 0);
  }

  TEST_CASE("upstream's options are taken or explained") {
    const TempDir dir = must(TempDir::create());
    const fs::path file = dir.path() / "d.jsonl";
    must(write_file(file, ""));
    const auto says = [&](std::vector<std::string> args, const char* part) {
      args.insert(args.begin(), {"cvdp", "run", "-p", (dir.path() / "w").string()});
      const CommandOutcome done = run_proctor(args);
      CAPTURE(part);
      CHECK(done.exit_code == 2);
      CHECK_MESSAGE(contains(done.err, part), done.err);
    };
    says({file.string(), "-q", "5"}, "--queue-timeout: it does nothing upstream");
    says({file.string(), "-c", "f.py"}, "a Python class");
    says({file.string(), "--network-name", "n"}, "no network in common");
    says({}, "FILE or -f FILE");
    says({file.string(), "-d", "--golden"}, "exclude each other");
    says({file.string(), "-r"}, "nothing has run here yet");
    // They are taken, and the run comes to its end: of a file without a problem.
    const CommandOutcome taken =
        run_proctor({"cvdp", "run", "-f", "'" + file.string() + "'", "-p",
                     (dir.path() / "empty").string(), "--no-llm", "-t", "2", "-e"});
    CHECK(taken.exit_code == 2);
    CHECK_MESSAGE(contains(taken.err, "in no count of this run: proctor cvdp check"), taken.err);
    // What was cut is in no count, and the counts are no dataset's.
    const fs::path cut = dir.path() / "cut.jsonl";
    must(write_file(cut, "{\"id\": \"cvdp_cop"));
    const CommandOutcome part =
        run_proctor({"cvdp", "run", cut.string(), "-d", "-p", (dir.path() / "cut").string()});
    CHECK(part.exit_code == 2);
    CHECK_MESSAGE(contains(part.err, "1 record is wrong of " + cut.string()), part.err);
  }
}
