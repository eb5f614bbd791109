#include "tests/fault/liar/attach.h"

namespace proctor::liar {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

Result<Counters> lie_to(const Attached& to) {
  constexpr milliseconds kBetween(10), kGone(3'000);
  PROCTOR_TRY(const Played played, read_campaign(to.campaign));
  PROCTOR_TRY(const wire::KeyPair key, wire::load_key(to.key));
  Network network;
  network.endpoint = to.endpoint;
  PROCTOR_TRY(network.server_key, wire::load_public_key(to.server_key));
  Liar::Workers others;  // a name and a boot to guess from; it never connects
  others.push_back(std::make_unique<Honest>(network, "h1", key, played, to.scratch, to.seed + 1));
  Counters counters;
  Liar liar(network, key, played, others, to.scratch, to.seed, std::nullopt, counters);
  PROCTOR_CHECK_OK(liar.connect());
  auto next = Clock::now(), seen = Clock::now();
  for (std::uint64_t told = 0; Clock::now() < seen + kGone;) {
    network.io.restart();
    network.io.run_for(milliseconds(2));
    if (liar.is_up()) seen = Clock::now();
    if (told == to.lies) {
      PROCTOR_CHECK_OK(liar.give_up());
    } else if (liar.is_up() && next <= Clock::now()) {
      next = Clock::now() + kBetween;
      PROCTOR_CHECK_OK(liar.lie(Phase::kFirstLife));
      ++told;
    }
  }
  return counters;
}

}  // namespace proctor::liar
