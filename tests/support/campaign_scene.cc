#include "tests/support/campaign_scene.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "common/base/limits.h"
#include "tests/support/leftovers.h"

namespace proctor::testing {

using namespace std::chrono_literals;
namespace {

constexpr const char* kPatch =
    "diff --git a/calc.sh b/calc.sh\n--- a/calc.sh\n+++ b/calc.sh\n@@ -1 +1 @@\n"
    "-echo $(($1 - $2))\n+echo $(($1 + $2))\n";

std::string campaign_text(const CampaignShape& shape) {
  std::string text = "name: camp\nmethods:\n";
  for (const std::string& m : shape.methods) text += "  - " + m + "\n";
  text += "replicates: " + std::to_string(shape.replicates) + "\nbudget:\n  global: \"" +
          shape.global + "\"\n  task: \"" + shape.task + "\"\n  run: \"" + shape.run + "\"\n" +
          (shape.ledger.empty() ? "" : "  ledger: " + shape.ledger + "\n") +
          "strata: [language, type]\nworkers: " + std::to_string(shape.workers) +
          "\nslots: " + std::to_string(shape.slots) + "\n";
  if (!shape.redis.empty()) text += "redis: \"" + shape.redis + "\"\n";
  return text;
}

// Says in a sandbox whose it is: what it is shown has no path of the host in it.
constexpr const char* kSceneVariable = "CAMPAIGN_SCENE";

// Agents wait at the gate for as long as the test needs, on whatever machine.
const char* wall_of(const CampaignShape& shape) {
  const auto waits = [](const std::string& method) { return contains(method, "/opt/gate/"); };
  return std::ranges::any_of(shape.methods, waits) ? "1800s" : "60s";
}

std::string contract_text(const CampaignShape& shape, const std::string& id,
                          const std::string& commit, const fs::path& gate) {
  return "id: " + id +
         "\ntitle: Addition subtracts\ntype: bug_fix\nstrata: {language: shell}\n"
         "briefing: calc.sh A B must print the sum.\n"
         "repository:\n  source: ../repo\n  commit: \"" +
         commit + "\"\nenvironment:\n  variables: {" + kSceneVariable + ": " +
         gate.parent_path().string() + "}\n  toolchains: [{path: " + gate.string() +
         ", at: /opt/gate}]\n"
         "checks:\n  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
         "policy:\n  protected: [\"tests/**\"]\n  wall: " +
         wall_of(shape) +
         "\n  memory: 256MiB\n  processes: 64\n"
         "reference_patch: fix.patch\ngates: {build: none}\n";
}

// A campaign of two million files is not what we test: whatever a test reads fits.
constexpr std::size_t kFileMost = std::size_t{64} << 20;

}  // namespace

std::string solving_method(const std::string& name, const std::string& before) {
  return "{name: " + name + ", kind: command, command: '" + before +
         "echo \"echo \\$((\\$1 + \\$2))\" > calc.sh'}";
}
std::string gated_method(const std::string& name) {
  return solving_method(name, "until [ -s /opt/gate/open ]; do sleep 0.05; done; ");
}

CampaignShape gated_shape(int replicates) {
  CampaignShape shape;
  shape.methods = {gated_method("gated")};
  shape.replicates = replicates;
  shape.workers = 1;
  return shape;
}

CampaignScene::CampaignScene(const CampaignShape& shape) : dir_(must(TempDir::create("scene"))) {
  REQUIRE(make_dirs(repository() / "tests").ok());
  REQUIRE(make_dirs(folder() / "contracts").ok());
  REQUIRE(make_dirs(temp() / "gate").ok());
  write(temp() / "gate/open", "");
  write(repository() / "calc.sh", "echo $(($1 - $2))\n");
  write(repository() / "tests/t.sh", "test \"$(sh calc.sh 2 3)\" = 5\n");
  const auto git = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c",
                               "init.defaultBranch=main"});
    return output_of(std::move(args), repository());
  };
  git({"init", "-q"});
  git({"add", "-A"});
  git({"commit", "-qm", "broken"});
  const std::string commit = git({"rev-parse", "HEAD"});
  write(folder() / "campaign.yaml", campaign_text(shape));
  write(folder() / "contracts/fix.patch", kPatch);
  for (const std::string& task : shape.tasks)
    write(contract(task), contract_text(shape, task, commit, temp() / "gate"));
}

CampaignScene::~CampaignScene() {
  clear_away(temp());
  for (const fs::path& root : roots_) clear_away(root);
}

CommandOutcome CampaignScene::run(const std::string& command, std::vector<std::string> more,
                                  std::chrono::milliseconds timeout) const {
  more.insert(more.begin(), {command, folder().string()});
  return proctor(std::move(more), timeout);
}

Child CampaignScene::start(const std::string& command, std::vector<std::string> more,
                           const std::string& name) const {
  CommandSpec spec;
  spec.argv = {proctor_program().string(), command, folder().string()};
  spec.argv.insert(spec.argv.end(), more.begin(), more.end());
  return must(Child::start(spec, temp() / (name + ".said"), Child::Lifetime::kDiesWithParent));
}

Child CampaignScene::start_worker(std::vector<std::string> args, const std::string& name) const {
  CommandSpec spec;
  spec.argv = {worker_program().string(), "--name", name, "--docker-socket",
               (temp() / "no-engine").string()};
  const auto root = std::ranges::find(args, "--root");
  if (root == args.end())
    args.insert(args.end(), {"--root", (temp() / "roots" / name).string()});
  else
    roots_.insert(*std::next(root));
  spec.argv.insert(spec.argv.end(), args.begin(), args.end());
  return must(Child::start(spec, temp() / (name + ".said"), Child::Lifetime::kDiesWithParent));
}

std::string CampaignScene::said(const std::string& name) const {
  const Result<std::string> text = read_file(temp() / (name + ".said"), kFileMost);
  return text.ok() ? *text : "";
}

std::string CampaignScene::worker_log(const std::string& name) const {
  const Result<std::string> text = read_file(state() / "log" / (name + ".log"), kFileMost);
  return text.ok() ? *text : "";
}

// In place: what a command saw was not there it may not see come.
void CampaignScene::open_gate() const {
  std::ofstream gate(temp() / "gate/open", std::ios::app);
  gate << "open\n" << std::flush;
  REQUIRE(gate.good());
}

std::string CampaignScene::read(const fs::path& file) const {
  return must(read_file(file, kFileMost));
}
void CampaignScene::write(const fs::path& file, std::string_view bytes) const {
  // As an editor does: what is there keeps its mode.
  struct stat st {};
  const unsigned mode = ::stat(file.c_str(), &st) == 0 ? st.st_mode & 0777U : kOpenFile;
  must(write_file(file, bytes, Durability::kLazy, mode));
}
void CampaignScene::edit(const fs::path& file, std::string_view from, std::string_view to) const {
  std::string text = read(file);
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, file.string() << " has no " << from);
  REQUIRE(text.find(from, at + 1) == std::string::npos);
  write(file, text.replace(at, from.size(), to));
}

Json CampaignScene::sql(const std::string& query) const {
  const fs::path journal = state() / "journal.sqlite";
  std::error_code ec;
  if (!fs::exists(journal, ec)) return Json::array();
  CommandSpec spec;
  spec.argv = {"sqlite3", "-json", "-cmd", ".timeout 60000", journal.string(), query};
  spec.output_max = kFileMost;
  const CommandOutcome out = must(run_command(spec));
  // A journal that is being made has no tables yet.
  if (contains(out.err, "no such table")) return Json::array();
  REQUIRE_MESSAGE(out.success(), query << ": " << out.describe());
  return out.out.empty() ? Json::array() : must(parse_json(out.out, {.bytes_max = kFileMost}));
}

std::int64_t CampaignScene::number(const std::string& query) const {
  const Json rows = sql(query);
  if (rows.empty() || rows[0].begin().value().is_null()) return 0;
  return rows[0].begin().value().get<std::int64_t>();
}
std::int64_t CampaignScene::ended() const {
  return number("SELECT count(*) FROM runs WHERE state = 'ended'");
}
std::int64_t CampaignScene::granted() const {
  return number("SELECT count(*) FROM attempts WHERE state = 'granted'");
}

Json CampaignScene::status() const {
  const Result<std::string> text = read_file(state() / "status.json", kFileMost);
  return text.ok() ? must(parse_json(*text)) : Json();
}

bool CampaignScene::agents_run(std::size_t at_least) const {
  const std::string ours = kSceneVariable + ("=" + temp().string());
  return at_least <= programs_with({ours, "PROCTOR_BRIEFING_FILE="});
}

std::vector<pid_t> CampaignScene::workers() const {
  return workers_of(temp());
}

void CampaignScene::require_nothing_left() const {
  const fs::path root = state() / "workers";
  (void)eventually([&] { return leftovers_of(temp(), root).empty(); });
  REQUIRE(leftovers_of(temp(), root) == "");
}

}  // namespace proctor::testing
