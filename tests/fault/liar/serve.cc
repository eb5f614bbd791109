#include "tests/fault/liar/serve.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <thread>

#include "common/base/log.h"
#include "common/ledger/ledger_store.h"
#include "coordinator/shell/coordinator.h"
#include "coordinator/shell/status.h"
#include "tests/fault/liar/campaign.h"

namespace proctor::liar {
namespace {

fs::path endpoint_file(const fs::path& folder) {
  return folder / ".proctor/endpoint";
}

// Losses and retries in the time of a seed; the rules are the product's.
SchedulerSettings quick_settings(const Campaign& campaign) {
  SchedulerSettings s;
  s.suspect_after = Millis(5'000);
  s.lease = Millis(20'000);
  s.reassign_after = Millis(150);
  s.tick = Millis(50);
  s.infrastructure_retries = 60;
  s.retries.overload = 60;
  s.retries.backoff = s.retries.overload_backoff = std::chrono::milliseconds(2);
  s.retries.backoff_max = std::chrono::milliseconds(8);
  s.retries.quarantine = std::chrono::milliseconds(30);
  s.retries.quarantine_max = std::chrono::milliseconds(60);
  s.cost_model = campaign.cost_model;
  s.watch = campaign.watch;
  s.rates = campaign.rates;
  return s;
}

// How long the loop stood still at most by its own doing: its longest lag without what its thread
// waited for a processor in all, so that no load of the machine makes it longer.
Result<double> most_own_lag_ms(const StateFolder& folder) {
  constexpr double kNanosInMilli = 1e6;
  PROCTOR_TRY(const std::string text, read_file(folder.status(), std::size_t{1} << 20));
  PROCTOR_TRY(const StatusSnapshot status, parse_status(text));
  PROCTOR_TRY(const std::string scheduled, read_file("/proc/self/schedstat", 4096));
  double ran = 0, waited = 0;
  std::istringstream(scheduled) >> ran >> waited;
  return status.lag.max_ms - waited / kNanosInMilli;
}

Result<int> serve_it(const fs::path& folder, const std::string& endpoint) {
  PROCTOR_TRY(const Played played, read_campaign(folder));
  CoordinatorOptions options;
  options.folder = StateFolder{folder};
  options.campaign = kCampaignId;
  options.definition = &played.campaign;
  options.plan = &played.plan;
  options.scheduler = quick_settings(played.campaign);
  options.ledger = std::make_shared<JournalLedger>();
  PROCTOR_TRY(wire::KeyPair keys, wire::load_key(options.folder.keys() / "coordinator.key"));
  options.keys = std::move(keys);
  options.listen.push_back({endpoint, CoordinatorOptions::Listen::Security::kCurve});
  PROCTOR_TRY(const std::unique_ptr<Coordinator> coordinator,
              Coordinator::open(std::move(options)));
  PROCTOR_CHECK_OK(
      write_file(endpoint_file(folder), coordinator->endpoints().at(0), Durability::kLazy));
  const Coordinator::Outcome outcome = coordinator->run();
  PROCTOR_TRY(const double late, most_own_lag_ms(StateFolder{folder}));
  constexpr double kLateMs = 2'000;
  if (kLateMs < late) {
    log::error("the loop stood still for " + std::to_string(late) + " ms");
    return 5;
  }
  if (outcome.end == Coordinator::End::kComplete) return 0;
  log::error("ended: " + outcome.why);
  return outcome.end == Coordinator::End::kStopped ? 1 : 4;
}

}  // namespace

int serve(const fs::path& folder, const std::string& endpoint) {
  log::init("coordinator", log::Level::kInfo);
  const Result<int> code = serve_it(folder, endpoint);
  if (code.ok()) return *code;
  log::error(code.error().detail);
  return 3;
}

Status Server::start() {
  std::error_code ec;
  fs::remove(endpoint_file(folder_), ec);
  CommandSpec spec;
  spec.argv = {fs::read_symlink("/proc/self/exe", ec).string(), "--serve", folder_.string(),
               endpoint_};
  PROCTOR_TRY(child_, Child::start(spec, folder_.parent_path() / "coordinator.said",
                                   Child::Lifetime::kDiesWithParent));
  constexpr std::chrono::minutes kPatience(10);  // whoever else wants the machine
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until) {
    if (const Result<std::string> said = read_file(endpoint_file(folder_), 200); said.ok()) {
      endpoint_ = *said;
      return ok_status();
    }
    if (const auto code = child_->poll())
      return Error{Errc::kUnavailable,
                   "the coordinator did not start (exit " + std::to_string(*code) + "): " + said()};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Error{Errc::kUnavailable, "the coordinator did not start: " + said()};
}

void Server::kill() {
  cpu_before_ms_ = cpu_ms();
  child_->signal(SIGKILL);
  child_->wait(std::chrono::seconds(180));
}

std::string Server::said() const {
  const Result<std::string> text =
      read_file(folder_.parent_path() / "coordinator.said", std::size_t{64} << 20);
  return text.ok() ? *text : "";
}

std::int64_t Server::cpu_ms() const {
  const Result<std::string> stat =
      read_file("/proc/" + std::to_string(child_->pid()) + "/stat", 4096);
  const std::size_t name_end = stat.ok() ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return cpu_before_ms_;
  std::istringstream fields(stat->substr(name_end + 2));
  std::string word;
  for (int i = 0; i < 11; ++i) fields >> word;
  std::int64_t user = 0, system = 0;
  fields >> user >> system;
  return cpu_before_ms_ + (user + system) * 1000 / ::sysconf(_SC_CLK_TCK);
}

}  // namespace proctor::liar
