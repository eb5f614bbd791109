// proctor cvdp import FILE --into CAMPAIGN: problems as contracts.
#include <cstdio>
#include <memory>

#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/run/campaign.h"

namespace proctor::cli {

void add_cvdp_import(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "import", "problems as contracts of a campaign",
      "Example:\n  proctor cvdp import problems.jsonl --into campaign --filter category=cid003\n"
      "A folder without a campaign.yaml gets one. Each service is a check in a container of its "
      "image, which must be\nin the image store or the Docker Engine. What no check can be made of "
      "is left out and named: answers in words,\nlicensed tools, services that depend on each "
      "other.");
  auto o = std::make_shared<ImportOptions>();
  command.add_option("FILE", o->file, "the dataset").required();
  command.add_option("--into", o->campaign, "the campaign's folder").required();
  command.add_option("--image", o->settings.image,
                     "name@sha256:... for every service, instead of its compose file's");
  command.add_flag("!--no-containers", o->settings.containers,
                   "run the services' commands in the contract's sandbox, not in their images");
  command.add_flag("-e,--external-network", o->settings.network,
                   "give harnesses and builds a network");
  command
      .add_option("--oss-sim-image,--image-sim", o->settings.names.oss_sim, "for __OSS_SIM_IMAGE__")
      .envname("OSS_SIM_IMAGE");
  add_selection(command, o->selection);
  command.callback([=, &exit_code] {
    const Result<Imported> done = import_problems(*o);
    if (!done.ok()) {
      exit_code = complain(done.error());
      return;
    }
    const bool nothing = done->written == 0 && !done->left_out.empty();
    exit_code = done->errors == 0 && !nothing ? kOk : kBadInput;
    std::printf("%zu contracts in %s/contracts, %zu problems left out\n", done->written,
                o->campaign.c_str(), done->left_out.size());
    if (nothing)
      std::fprintf(stderr,
                   "proctor cvdp import: no problem was left, so %s has no task; each line above "
                   "says why, and proctor cvdp import --help what can be changed\n",
                   o->campaign.c_str());
  });
}

}  // namespace proctor::cli
