// A worker with a valid key that lies, beside honest ones: every seed is a campaign of its own.
//
//   build/release/liar --seeds 10000 [--from 1]     the long form; some hours on two cores
//   build/release/liar --seed 7 --keep              one of them, and leaves its folder
//   build/release/liar --seeds 100 --without LIE    without one of the lies, to see what others
//   find build/release/liar --connect ENDPOINT ...       the liar alone (tests/fault/lying_worker
//   starts it)
//
// Ends with one line of JSON; exit 1 if anything did not hold.  From a hundred seeds on it also
// fails where some lie was never told about some kind of attempt or in some phase.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/base/json.h"
#include "common/base/text.h"
#include "tests/fault/liar/attach.h"
#include "tests/fault/liar/scene.h"
#include "tests/fault/liar/serve.h"

namespace proctor::liar {
namespace {

struct Arguments {
  std::uint64_t from = 1, seeds = 1;
  Options options;
  Attached attached;  // with an endpoint: that
};

std::optional<Lie> lie_of(const char* name) {
  for (std::size_t i = 0; i < std::size_t(Lie::kCount); ++i)
    if (std::strcmp(to_string(static_cast<Lie>(i)), name) == 0) return static_cast<Lie>(i);
  return std::nullopt;
}

std::optional<Arguments> read_arguments(int argc, char** argv) {
  Arguments out;
  out.options.parent = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "";  // thousands of syncs
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--keep") {
      out.options.keep = true;
      continue;
    }
    if (++i == argc) return std::nullopt;
    if (word == "--seed" || word == "--from")
      out.from = std::strtoull(argv[i], nullptr, 10);
    else if (word == "--seeds")
      out.seeds = std::strtoull(argv[i], nullptr, 10);
    else if (word == "--folder")
      out.options.parent = argv[i];
    else if (word == "--without" && lie_of(argv[i]))
      out.options.without = lie_of(argv[i]);
    else if (word == "--connect")
      out.attached.endpoint = argv[i];
    else if (word == "--server-key")
      out.attached.server_key = argv[i];
    else if (word == "--key")
      out.attached.key = argv[i];
    else if (word == "--campaign")
      out.attached.campaign = argv[i];
    else if (word == "--lies")
      out.attached.lies = std::strtoull(argv[i], nullptr, 10);
    else
      return std::nullopt;
  }
  return out;
}

template <class A, class B>
Json table(const Counters::Table<A, B>& counts) {
  Json out = Json::object();
  for (std::size_t a = 0; a < counts.size(); ++a)
    for (std::size_t b = 0; b < counts[a].size(); ++b)
      out[to_string(static_cast<A>(a))][to_string(static_cast<B>(b))] = counts[a][b];
  return out;
}

template <class A, class B>
std::vector<std::string> never_met(const Counters::Table<A, B>& counts,
                                   std::optional<Lie> without) {
  std::vector<std::string> out;
  for (std::size_t a = 0; a < counts.size(); ++a)
    for (std::size_t b = 0; b < counts[a].size(); ++b)
      if (counts[a][b] == 0 && static_cast<Lie>(a) != without)
        out.push_back(std::string(to_string(static_cast<A>(a))) + "/" +
                      to_string(static_cast<B>(b)));
  return out;
}

int lie(const Arguments& args) {
  constexpr std::uint64_t kEnough = 100;  // seeds that must meet everything
  Counters counters;
  Outcome all;
  std::uint64_t violated = 0;
  Json figures = Json::object();
  for (std::uint64_t seed = args.from; seed < args.from + args.seeds; ++seed) {
    const Result<Outcome> played = play(seed, args.options, counters);
    if (!played.ok()) {
      std::printf("seed %llu: could not be played: %s\n", static_cast<unsigned long long>(seed),
                  printable(played.error().detail, 2000).c_str());
      ++violated;
      continue;
    }
    for (const std::string& v : played->violations)
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
                  printable(v, 2000).c_str());
    violated += played->violations.empty() ? 0 : 1;
    all.cpu_ms = std::max(all.cpu_ms, played->cpu_ms);
    all.lag_p99_ms = std::max(all.lag_p99_ms, played->lag_p99_ms);
    all.lag_max_ms = std::max(all.lag_max_ms, played->lag_max_ms);
    all.incoming_files = std::max(all.incoming_files, played->incoming_files);
    all.incoming_bytes = std::max(all.incoming_bytes, played->incoming_bytes);
    all.restarts += played->restarts;
    all.honest_attempts += played->honest_attempts;
    std::fflush(stdout);
  }
  std::vector<std::string> unmet;
  if (kEnough <= args.seeds) {
    unmet = never_met<Lie, Target>(counters.by_target, args.options.without);
    for (std::string& name : never_met<Lie, Phase>(counters.by_phase, args.options.without))
      unmet.push_back(std::move(name));
  }
  const Json out = {{"from", args.from},
                    {"seeds", args.seeds},
                    {"violated", violated},
                    {"restarts", all.restarts},
                    {"honest_attempts", all.honest_attempts},
                    {"most_cpu_ms", all.cpu_ms},
                    {"most_lag_p99_ms", all.lag_p99_ms},
                    {"most_lag_ms", all.lag_max_ms},
                    {"most_incoming_files", all.incoming_files},
                    {"most_incoming_bytes", all.incoming_bytes},
                    {"never_met", unmet},
                    {"by_target", table<Lie, Target>(counters.by_target)},
                    {"by_phase", table<Lie, Phase>(counters.by_phase)}};
  std::printf("%s\n", out.dump().c_str());
  return violated == 0 && unmet.empty() && 0 < all.honest_attempts ? 0 : 1;
}

int lie_alone(const Arguments& args) {
  Attached to = args.attached;
  to.seed = args.from;
  to.scratch = args.options.parent;
  const Result<Counters> told = lie_to(to);
  if (!told.ok()) {
    std::fprintf(stderr, "liar: %s\n", printable(told.error().detail, 2000).c_str());
    return 1;
  }
  Json out = Json::object();
  for (std::size_t i = 0; i < std::size_t(Lie::kCount); ++i)
    out[to_string(static_cast<Lie>(i))] = told->by_phase[i][std::size_t(Phase::kFirstLife)];
  std::printf("%s\n", out.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace proctor::liar

int main(int argc, char** argv) {
  using namespace proctor::liar;
  if (argc == 4 && std::strcmp(argv[1], "--serve") == 0) return serve(argv[2], argv[3]);
  const auto args = read_arguments(argc, argv);
  if (!args) {
    std::fputs("liar [--from N] [--seeds N] [--seed N] [--without LIE] [--folder DIR] [--keep]\n",
               stderr);
    return 2;
  }
  return args->attached.endpoint.empty() ? lie(*args) : lie_alone(*args);
}
