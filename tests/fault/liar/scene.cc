#include "tests/fault/liar/scene.h"

#include <algorithm>

#include "coordinator/shell/status.h"
#include "tests/fault/liar/oracles.h"
#include "tests/fault/liar/serve.h"

namespace proctor::liar {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Hard bounds, far above what was ever seen: what passes them stands still.
constexpr std::chrono::seconds kPatience(90);
constexpr std::int64_t kCpuMs = 20'000;
// Two honest attempts and what the liar may hold: a piece and a folder of each.
constexpr std::uint64_t kIncomingFiles = 12;
constexpr std::uint64_t kIncomingBytes = std::uint64_t{64} << 20;

class Scene {
 public:
  Scene(std::uint64_t seed, const Options& options, Counters& counters, fs::path folder)
      : options_(options),
        counters_(counters),
        random_(seed),
        folder_(std::move(folder)),
        server_(folder_ / "camp") {}

  Result<Outcome> play() {
    PROCTOR_CHECK_OK(set_up());
    PROCTOR_CHECK_OK(play_campaign());
    if (out_.violations.empty() && !ended_) PROCTOR_CHECK_OK(play_end());
    out_.cpu_ms = server_.cpu_ms();
    for (auto& h : honest_) {
      h->close();
      out_.honest_attempts += h->works().size();
      for (const std::string& c : h->complaints()) out_.violations.push_back(c);
    }
    liar_->close();
    if (kCpuMs < out_.cpu_ms)
      wrong("the coordinator worked for " + std::to_string(out_.cpu_ms) + " ms");
    if (const auto text = read_file(StateFolder{folder_ / "camp"}.status(), 1 << 20); text.ok())
      if (const auto status = parse_status(*text); status.ok()) {
        out_.lag_p99_ms = status->lag.p99_ms;
        out_.lag_max_ms = status->lag.max_ms;
      }
    // One that did not come to its end is not judged by what it left.
    if (ended_)
      for (std::string& w : judge(folder_, *played_, honest_, liar_->begun()))
        out_.violations.push_back(std::move(w));
    return std::move(out_);
  }

 private:
  void wrong(std::string text) { out_.violations.push_back(std::move(text)); }

  Status stop(std::string text) {
    wrong(std::move(text));
    return ok_status();
  }

  Status set_up() {
    const StateFolder state{folder_ / "camp"};
    PROCTOR_CHECK_OK(write_campaign(state.campaign, random_.one_in(4)));
    PROCTOR_CHECK_OK(make_dirs(state.keys()));
    PROCTOR_CHECK_OK(make_dirs(folder_ / "scratch"));
    PROCTOR_TRY(Played played, read_campaign(state.campaign));
    played_.emplace(std::move(played));
    PROCTOR_TRY(const wire::KeyPair own, wire::generate_key());
    PROCTOR_CHECK_OK(wire::save_key(own, state.keys() / "coordinator.key"));
    std::string allow;
    std::vector<wire::KeyPair> pairs;
    for (const char* name : {"h1", "h2", kLiarName}) {
      PROCTOR_TRY(wire::KeyPair pair, wire::generate_key());
      allow += pair.public_z85 + " " + name + "\n";
      pairs.push_back(std::move(pair));
    }
    PROCTOR_CHECK_OK(write_file(state.allow_list(), allow, Durability::kLazy));
    PROCTOR_CHECK_OK(server_.start());
    network_.endpoint = server_.endpoint();
    network_.server_key = own.public_z85;
    for (std::size_t i = 0; i < 2; ++i)
      honest_.push_back(std::make_unique<Honest>(network_, "h" + std::to_string(i + 1), pairs[i],
                                                 *played_, folder_ / "scratch", random_.any()));
    liar_ = std::make_unique<Liar>(network_, pairs[2], *played_, honest_, folder_ / "scratch",
                                   random_.any(), options_.without, counters_);
    for (auto& h : honest_) PROCTOR_CHECK_OK(h->connect());
    return liar_->connect();
  }

  bool over() const {
    return std::ranges::all_of(honest_, [](const auto& h) { return h->drained(); });
  }

  void turn() {
    network_.io.restart();
    network_.io.run_for(milliseconds(1));
  }

  Status play_campaign() {
    std::uint64_t lies = 20 + random_.below(50);
    // When a coordinator is killed: with so many lies left.
    std::set<std::uint64_t> kills;
    for (std::uint64_t n = random_.below(3); 0 < n; --n) kills.insert(1 + random_.below(lies - 1));
    const auto until = Clock::now() + kPatience;
    auto next_lie = Clock::now(), late_until = Clock::now();
    bool late = false;
    while (!over()) {
      turn();
      look_at_incoming();
      if (!out_.violations.empty()) return ok_status();
      const auto code = server_.poll();
      // All was done before these came back to hear of it.
      if (code == 0) {
        ended_ = true;
        return ok_status();
      }
      if (code)
        return stop("the coordinator ended by itself, exit " + std::to_string(*code) + ": " +
                    last_words());
      if (until < Clock::now()) return stop("the campaign did not end: " + last_words());
      if (late && late_until <= Clock::now()) {
        for (auto& h : honest_) PROCTOR_CHECK_OK(h->connect());
        late = false;
      }
      for (auto& h : honest_) PROCTOR_CHECK_OK(h->tick());
      if (lies == 0) {
        PROCTOR_CHECK_OK(liar_->give_up());
        continue;
      }
      if (kills.erase(lies) == 1) {
        for (auto& h : honest_) h->close();
        liar_->close();
        server_.kill();
        ++out_.restarts;
        PROCTOR_CHECK_OK(server_.start());
        PROCTOR_CHECK_OK(liar_->connect());
        late = true;
        late_until = Clock::now() + milliseconds(random_.below(60));
      }
      if (Clock::now() < next_lie || !liar_->is_up()) continue;
      next_lie = Clock::now() + milliseconds(random_.below(8));
      const bool alone = std::ranges::none_of(honest_, [](const auto& h) { return h->is_up(); });
      for (std::uint64_t n = 1 + random_.below(3); 0 < n && 0 < lies && !kills.contains(lies);
           --n, --lies)
        PROCTOR_CHECK_OK(liar_->lie(out_.restarts == 0 ? Phase::kFirstLife
                                    : alone            ? Phase::kBeforeOthers
                                                       : Phase::kLaterLife));
    }
    return ok_status();
  }

  // It has said that all is over, and bears what is said then.
  Status play_end() {
    if (!liar_->is_up()) PROCTOR_CHECK_OK(liar_->connect());
    const auto until = Clock::now() + milliseconds(60);
    while (!liar_->is_up() && Clock::now() < until) turn();
    for (int n = 0; n < 3; ++n) PROCTOR_CHECK_OK(liar_->lie(Phase::kOver));
    turn();
    for (auto& h : honest_) h->leave();
    liar_->leave();
    for (int n = 0; n < 5; ++n) turn();
    auto code = server_.wait(milliseconds(50));
    if (!code) {
      server_.let_go();
      code = server_.wait(kPatience);
    }
    // It may have been leaving when it was told to: then the signal ended it.
    constexpr int kTerminated = 128 + 15;
    if (!code) wrong("the coordinator did not leave: " + last_words());
    ended_ = code == 0 || code == kTerminated;
    for (const AttemptId& id : early_)
      if (!was_granted(folder_ / "camp", id))
        wrong("a piece of attempt " + to_string(id) + " was kept, which nobody was granted");
    if (code && !ended_)
      wrong("the coordinator ended with exit " + std::to_string(*code) + ": " + last_words());
    return ok_status();
  }

  void look_at_incoming() {
    const Incoming now = incoming_of(folder_ / "camp");
    out_.incoming_files = std::max(out_.incoming_files, now.files);
    out_.incoming_bytes = std::max(out_.incoming_bytes, now.bytes);
    for (const AttemptId& id : now.attempts) {
      const bool honest =
          std::ranges::any_of(honest_, [&](const auto& h) { return h->works().contains(id); });
      if (honest || granted_.contains(id)) continue;
      // Its grant may be on its way to the journal: judged when all is over.
      if (was_granted(folder_ / "camp", id))
        granted_.insert(id);
      else
        early_.insert(id);
    }
    if (kIncomingFiles < now.files)
      wrong(std::to_string(now.files) + " pieces of archives wait that nobody can need");
    if (kIncomingBytes < now.bytes)
      wrong("pieces of archives take " + std::to_string(now.bytes) + " bytes");
  }

  std::string last_words() const {
    const std::string said = server_.said();
    constexpr std::size_t kShown = 600;
    return said.size() <= kShown ? said : said.substr(said.size() - kShown);
  }

  const Options& options_;
  Counters& counters_;
  Random random_;
  fs::path folder_;
  Network network_;
  Server server_;
  std::optional<Played> played_;
  Liar::Workers honest_;
  std::unique_ptr<Liar> liar_;
  std::set<AttemptId> granted_, early_;  // known to be; kept before that was known
  bool ended_ = false;
  Outcome out_;
};

}  // namespace

Result<Outcome> play(std::uint64_t seed, const Options& options, Counters& counters) {
  PROCTOR_TRY(TempDir dir, TempDir::create("liar", options.parent));
  Result<Outcome> out = Scene(seed, options, counters, dir.path()).play();
  if (options.keep) (void)dir.release();
  return out;
}

}  // namespace proctor::liar
