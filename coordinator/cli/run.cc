// proctor run, serve and resume: three ways into the same loop.

#include "common/base/limits.h"
#include "coordinator/cli/campaign_run.h"
#include "coordinator/cli/command.h"

namespace proctor::cli {
namespace {

struct Flags {
  RunOptions options;
  std::uint32_t workers = 0, slots = 0;
};

void add_common(Command command, const std::shared_ptr<Flags>& flags) {
  command.add_option("CAMPAIGN", flags->options.folder, "the campaign's folder").required();
  command
      .add_option("--workers", flags->workers, "local worker processes (default: the campaign's)")
      .in_range(std::size_t{0}, limits::kLocalWorkersMax);
  command.add_option("--slots", flags->slots, "runs at a time on each of them")
      .in_range(std::size_t{1}, limits::kWorkerSlotsMax);
  command.add_option("--listen", flags->options.listen, "also let workers join at tcp://HOST:PORT");
  command
      .add_option("--models", flags->options.models,
                  "file that says how local workers reach single-shot models")
      .envname("PROCTOR_MODELS");
  command.add_flag("--insecure-loopback", flags->options.insecure_loopback,
                   "plain TCP without keys, on this machine only");
}

void go(Command command, const std::shared_ptr<Flags>& flags, int& exit_code) {
  if (command.count("--workers") != 0) flags->options.workers = flags->workers;
  if (command.count("--slots") != 0) flags->options.slots = flags->slots;
  exit_code = run_campaign(flags->options);
}

}  // namespace

void add_run(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "run", "the main job: coordinator and local workers, to the report",
      "Example:\n  proctor run --workers 4 my-campaign\n"
      "Interrupt once to finish what runs, twice to cancel it; then: proctor resume.\n"
      "Exit codes: 0 complete, 1 stopped, or some runs parked because their task or method is\n"
      "broken, or no run came to a verdict (all invalid or acceptance errors), or noop passed or\n"
      "reference failed somewhere, 2 bad input, 3 some runs parked for lack of money, 4 "
      "infrastructure, 5 a stage waits for a person (proctor "
      "pilot).");
  auto flags = std::make_shared<Flags>();
  add_common(command, flags);
  command.add_flag("--again", flags->options.again,
                   "also when this registration was run before and its journal is gone: a "
                   "deviation");
  command.callback([=, &exit_code] { go(command, flags, exit_code); });
}

void add_serve(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "serve", "coordinator only: workers join from anywhere",
      "Example:\n  proctor keygen my-campaign --worker build7\n"
      "  proctor serve my-campaign --listen tcp://0.0.0.0:7400\n"
      "  proctor-worker --connect tcp://HOST:7400 --name build7 --slots 8 \\\n"
      "    --server-key coordinator.pub --key build7.key        (on the other machine)\n"
      "After a stop: proctor serve --resume. Units and manifests that run one command again and\n"
      "again: proctor serve --resume-or-begin.");
  auto flags = std::make_shared<Flags>();
  add_common(command, flags);
  struct Begin {
    bool go_on = false, either = false;
  };
  auto begin = std::make_shared<Begin>();
  const Option go_on =
      command.add_flag("--resume", begin->go_on, "go on with a campaign that has begun");
  command
      .add_flag("--resume-or-begin", begin->either,
                "go on with a campaign that has begun, begin one that has not")
      .excludes(go_on);
  command.add_flag("--again", flags->options.again, "as of proctor run");
  command.callback([=, &exit_code] {
    if (begin->go_on) flags->options.begin = RunOptions::Begin::kGoOn;
    if (begin->either) flags->options.begin = RunOptions::Begin::kEither;
    flags->options.stays_at_gate = true;
    flags->options.workers = 0;  // unless some are asked for
    go(command, flags, exit_code);
  });
}

void add_resume(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "resume", "continue after any stop, planned or not",
      "Example:\n  proctor resume my-campaign\n"
      "Exit codes as of run; 5: a stage waits for a person (proctor pilot status).");
  auto flags = std::make_shared<Flags>();
  flags->options.begin = RunOptions::Begin::kGoOn;
  add_common(command, flags);
  command.callback([=, &exit_code] { go(command, flags, exit_code); });
}

}  // namespace proctor::cli
