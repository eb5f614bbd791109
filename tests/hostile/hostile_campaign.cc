#include "tests/hostile/hostile_campaign.h"

#include <algorithm>

#include "tests/support/books.h"

namespace proctor::testing {
namespace {

bool clean(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && byte != '\n') || byte == 0x7f;
  });
}

const HostileAgent* honest_of(const std::vector<HostileAgent>& agents) {
  const auto it = std::ranges::find(agents, "honest", &HostileAgent::name);
  return it == agents.end() ? nullptr : &*it;
}

// R174: a judge that has something against these two says nothing of the others.
void check_baseline(const Json& run) {
  const bool reference = run["method"] == "reference";
  CHECK(run["outcome"] == (reference ? "success" : "failure"));
  CHECK(run["satisfied"] == reference);
  CHECK(run["violations"] == 0);
}

}  // namespace

std::unique_ptr<CampaignScene> hostile_scene(const Kind& kind,
                                             const std::vector<HostileAgent>& agents,
                                             const std::map<std::string, std::string>& files,
                                             const std::string& contract) {
  CampaignShape shape;
  shape.methods.clear();
  if (honest_of(agents) != nullptr) shape.methods = {"noop", "reference"};
  for (const HostileAgent& agent : agents)
    shape.methods.push_back("{name: " + agent.name + ", kind: command, script: agents/" +
                            agent.name + ".sh}");
  shape.replicates = 1;
  auto scene = std::make_unique<CampaignScene>(shape);
  must(make_dirs(scene->folder() / "agents"));
  for (const HostileAgent& agent : agents)
    scene->write(scene->folder() / "agents" / (agent.name + ".sh"), agent.script);
  const auto git = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"git", "-c", "user.name=t", "-c", "user.email=t@localhost"});
    return output_of(std::move(args), scene->repository());
  };
  for (const auto& [path, bytes] : files) {
    must(make_dirs((scene->repository() / path).parent_path()));
    scene->write(scene->repository() / path, bytes);
  }
  git({"add", "-A"});
  git({"commit", "-qm", "more", "--allow-empty"});
  const std::string commit = git({"rev-parse", "HEAD"});
  std::string reference;
  if (const HostileAgent* honest = honest_of(agents); honest != nullptr) {
    output_of({"sh", "-c", honest->script}, scene->repository());
    git({"add", "-A"});
    scene->write(scene->folder() / "contracts/honest.patch",
                 git({"diff", "--cached", "--binary"}) + "\n");
    git({"reset", "-q", "--hard"});
    reference = "reference_patch: honest.patch\n";
  }
  const std::string environment = kind.image().empty()
                                      ? "environment: {}\n"
                                      : "environment:\n  image: \"" + kind.image() + "\"\n";
  scene->write(scene->contract(),
               "id: add\ntitle: Addition subtracts\ntype: bug_fix\n"
               "strata: {language: shell}\nbriefing: calc.sh A B must print the "
               "sum.\nrepository:\n  source: ../repo\n  commit: \"" +
                   commit + "\"\ngates: {build: none}\n" + environment + reference + contract);
  return scene;
}

void run_hostile(const CampaignScene& scene, const std::vector<HostileAgent>& agents) {
  const CommandOutcome ran = scene.run("run", {}, std::chrono::seconds(600));
  const bool measured = std::ranges::any_of(agents, [](const HostileAgent& a) {
    return a.outcome != "invalid" && a.outcome != "acceptance_error";
  });
  REQUIRE_MESSAGE(ran.exit_code == (measured ? 0 : 1), ran.err << ran.out);
  CHECK(clean(ran.out));
  CHECK(clean(ran.err));
  const Json report = must(parse_json(scene.run("report", {"--json"}).out));
  const std::size_t baselines = honest_of(agents) != nullptr ? 2 : 0;
  REQUIRE(report["runs"].size() == agents.size() + baselines);
  for (const Json& run : report["runs"]) {
    const std::string name = run["method"].string();
    CAPTURE(name);
    if (baselines != 0 && (name == "noop" || name == "reference")) {
      check_baseline(run);
      continue;
    }
    const auto agent =
        std::ranges::find_if(agents, [&](const HostileAgent& a) { return a.name == name; });
    REQUIRE(agent != agents.end());
    const std::string text = scene.read(scene.folder() / "runs" / run["run"].get<std::string>() /
                                        "attempt-1/report.json");
    CAPTURE(text);
    const Json own = must(parse_json(text));
    if (agent->outcome.empty())
      CHECK(own["status"] == "scorable");
    else
      CHECK(run["outcome"] == agent->outcome);
    if (!agent->termination.empty()) CHECK(own["termination"]["code"] == agent->termination);
    if (!agent->violation.empty()) CHECK(contains(own["violations"].dump(), agent->violation));
    if (!agent->restored.empty())
      CHECK(was_put_back(scene.read(scene.folder() / "runs" / run["run"].get<std::string>() /
                                    "attempt-1/events.jsonl"),
                         agent->restored));
    if (name == "honest") CHECK(run["satisfied"] == true);
  }
  const CommandOutcome verified = scene.run("verify");
  CHECK_MESSAGE(verified.exit_code == 0, verified.out << verified.err);
  const CommandOutcome printed = scene.run("report");
  CHECK(clean(printed.out));
  scene.require_nothing_left();
}

}  // namespace proctor::testing
