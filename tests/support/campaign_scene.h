#pragma once
// A campaign in a folder of its own: a real repository whose calc.sh subtracts instead of adding, a
// task or more about it, methods, money.  Nothing of it outlives the scene.
#include <sys/types.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "tests/support/programs.h"

namespace proctor::testing {

struct CampaignShape {
  std::vector<std::string> tasks{"add"};
  // Items of campaign.yaml's list `methods`.
  std::vector<std::string> methods{"noop", "reference"};
  int replicates = 2;
  std::string global = "50.00", task = "40.00", run = "0.50";
  int workers = 2, slots = 1;
  std::string redis;   // empty: the campaign's own
  std::string ledger;  // empty: as the default
};

// A method that writes the right calc.sh after what `before` does.
std::string solving_method(const std::string& name, const std::string& before = "");
// ... and waits for the scene's gate first.
std::string gated_method(const std::string& name);
// One task and nothing but a gated method, on one worker.
CampaignShape gated_shape(int replicates);

class CampaignScene {
 public:
  explicit CampaignScene(const CampaignShape& shape = {});
  CampaignScene(const CampaignScene&) = delete;
  CampaignScene& operator=(const CampaignScene&) = delete;
  ~CampaignScene();

  const fs::path& temp() const { return dir_.path(); }
  fs::path folder() const { return temp() / "camp"; }
  fs::path state() const { return folder() / ".proctor"; }
  fs::path repository() const { return folder() / "repo"; }
  fs::path contract(const std::string& task = "add") const {
    return folder() / "contracts" / (task + ".yaml");
  }

  // `proctor COMMAND FOLDER MORE` to its end.
  CommandOutcome run(const std::string& command, std::vector<std::string> more = {},
                     std::chrono::milliseconds timeout = std::chrono::seconds(300)) const;
  // ... beside us; its output is collected in `said(name)`.
  Child start(const std::string& command, std::vector<std::string> more = {},
              const std::string& name = "proctor") const;
  Child start_worker(std::vector<std::string> args, const std::string& name) const;
  std::string said(const std::string& name = "proctor") const;
  std::string worker_log(const std::string& name) const;

  // Lets the agents of gated methods go on.
  void open_gate() const;

  std::string read(const fs::path& file) const;
  void write(const fs::path& file, std::string_view bytes) const;
  // Replaces the only place of `from`.
  void edit(const fs::path& file, std::string_view from, std::string_view to) const;

  // The rows of a query on the journal, by the sqlite3 shell; none while there is no journal.
  Json sql(const std::string& query) const;
  std::int64_t number(const std::string& query) const;
  std::int64_t ended() const;
  std::int64_t granted() const;  // attempts that are out
  // .proctor/status.json; null while there is none.
  Json status() const;
  // Agents that run in their sandbox now; what they have started is none.
  bool agents_run(std::size_t at_least) const;

  // The local workers that live.
  std::vector<pid_t> workers() const;

  // Requires that nothing is left on the machine, within a bound.
  void require_nothing_left() const;

 private:
  TempDir dir_;
  mutable std::set<fs::path> roots_;  // of its workers that lie elsewhere
};

}  // namespace proctor::testing
