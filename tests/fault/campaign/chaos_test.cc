// Chaos: coordinator, workers and Redis are killed at random moments while a campaign goes on.
// PROCTOR_CHAOS_SEED repeats a run's choices, PROCTOR_CHAOS_SECONDS makes it longer.
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/support/books.h"
#include "tests/support/leftovers.h"
#include "tests/support/redis_server.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

std::uint32_t number_from(const char* variable, std::uint32_t otherwise) {
  const char* set = std::getenv(variable);
  return set == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(set, nullptr, 10));
}

// The campaign's processes that live and whose command line has both words.
std::vector<pid_t> those_with(const CampaignScene& scene, std::string_view a, std::string_view b) {
  std::vector<pid_t> out;
  for (const pid_t pid : processes_of(scene.temp())) {
    const Result<std::string> line =
        read_file("/proc/" + std::to_string(pid) + "/cmdline", std::size_t{1} << 20);
    if (line.ok() && contains(*line, std::string(a)) && contains(*line, std::string(b)))
      out.push_back(pid);
  }
  return out;
}

class Chaos {
 public:
  // Without a server: the campaign has its private one.
  Chaos(const CampaignScene& scene, RedisServer* redis, std::uint32_t seed)
      : scene_(scene), redis_(redis), random_(seed), run_(scene.start("run")) {}

  bool over() { return run_.poll() == 0; }

  void strike() {
    switch (pick(4)) {
      case 0:
        run_.signal(SIGKILL);
        REQUIRE(run_.wait(180s).has_value());
        run_ = scene_.start(verb());
        break;
      case 1:
      case 2:
        kill_one_of(those_with(scene_, "proctor-worker", "--connect"));
        break;
      case 3:
        if (redis_ == nullptr) {
          kill_one_of(those_with(scene_, "redis-server", "redis.sock"));
          break;
        }
        redis_->kill();
        redis_->start();
        break;
      default:
        break;
    }
    // One that ended by itself - Redis was away when it began - is started again.
    if (const std::optional<int> code = run_.poll(); code && *code != 0)
      run_ = scene_.start(verb());
  }

  std::chrono::milliseconds pause() { return std::chrono::milliseconds(300 + pick(1'200)); }

  // Calm: it has to end by itself now.
  void finish() {
    const bool ended = eventually(
        [&] {
          const std::optional<int> code = run_.poll();
          if (code && *code != 0) run_ = scene_.start(verb());
          return code == 0;
        },
        600s);
    REQUIRE_MESSAGE(ended, scene_.said());
  }

 private:
  // Killed before its first attempt it has nothing to resume, and says so.
  const char* verb() const {
    return scene_.sql("SELECT 1 FROM attempts LIMIT 1").empty() ? "run" : "resume";
  }
  std::size_t pick(std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
  }
  void kill_one_of(const std::vector<pid_t>& all) {
    if (!all.empty()) ::kill(all[pick(all.size())], SIGKILL);
  }
  const CampaignScene& scene_;
  RedisServer* redis_;
  std::mt19937 random_;
  Child run_;
};

}  // namespace

namespace {

void survive(RedisServer* redis, std::chrono::seconds length, std::uint32_t replicates) {
  const std::uint32_t seed = number_from("PROCTOR_CHAOS_SEED", std::random_device{}());
  MESSAGE("PROCTOR_CHAOS_SEED=" << seed);
  CampaignShape shape;
  shape.tasks = {"add", "sum", "plus"};
  shape.methods = {"noop", "reference", solving_method("solver", "sleep 0.2; ")};
  shape.replicates = replicates;
  if (redis != nullptr) shape.redis = redis->address();
  shape.slots = 2;
  shape.global = shape.task = "100.00";
  CampaignScene scene(shape);
  // What is lost is tried again as often as chaos wants.
  scene.edit(scene.folder() / "campaign.yaml", "workers: 2",
             "infrastructure_retries: 100\nworkers: 2");
  Chaos chaos(scene, redis, seed);
  const auto until = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < until && !chaos.over()) {
    std::this_thread::sleep_for(chaos.pause());  // the moment is what is random here
    chaos.strike();
  }
  chaos.finish();
  check_books(scene, {.runs = 9 * replicates, .attempts = Expected::Attempts::kAny});
  scene.require_nothing_left();
}

}  // namespace

TEST_SUITE("chaos") {
  TEST_CASE("nothing is lost or repeated or overspent whoever is killed" *
            doctest::test_suite("full")) {
    RedisServer redis;
    survive(&redis, std::chrono::seconds(number_from("PROCTOR_CHAOS_SECONDS", 20)), 7);
  }

  TEST_CASE("nor when the campaign's own redis-server is among them" *
            doctest::test_suite("full")) {
    survive(nullptr, std::chrono::seconds(number_from("PROCTOR_CHAOS_SECONDS", 20)) / 2, 4);
  }
}
