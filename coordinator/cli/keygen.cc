// proctor keygen CAMPAIGN [--worker NAME]: CURVE key pairs of a coordinator and its workers.
#include <cstdio>

#include "common/base/limits.h"
#include "common/wire/curve.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/control_client.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {
namespace {

Status keygen(const std::string& folder, const std::vector<std::string>& workers) {
  PROCTOR_TRY(const StateFolder state, campaign_folder(folder));
  std::error_code ec;
  std::string allow;
  wire::AllowList list;
  if (fs::exists(state.allow_list(), ec)) {
    PROCTOR_TRY(list, wire::load_allow_list(state.allow_list()));
    PROCTOR_TRY(allow, read_file(state.allow_list(), limits::kConfigFileBytes));
  }
  // All names are looked at before any file is written.
  std::vector<wire::KeyPair> pairs;
  for (const std::string& name : workers) {
    PROCTOR_TRY(wire::KeyPair pair, wire::generate_key());
    PROCTOR_CHECK_OK(list.add(pair.public_z85, name));
    pairs.push_back(std::move(pair));
  }
  PROCTOR_CHECK_OK(make_private_dirs(state.keys()));
  const fs::path secret = state.keys() / "coordinator.key",
                 shared = state.keys() / "coordinator.pub";
  if (!fs::exists(secret, ec)) {
    PROCTOR_TRY(const wire::KeyPair pair, wire::generate_key());
    PROCTOR_CHECK_OK(wire::save_key(pair, secret));
    PROCTOR_CHECK_OK(wire::save_public_key(pair.public_z85, "coordinator", shared));
    std::printf("coordinator: %s (keep it here), %s (give it to workers)\n", secret.c_str(),
                shared.c_str());
  }
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const fs::path path = state.keys() / (workers[i] + ".key");
    PROCTOR_CHECK_OK(wire::save_key(pairs[i], path));
    allow += pairs[i].public_z85 + " " + workers[i] + "\n";
    std::printf("worker %s: %s (move it to that machine)\n", workers[i].c_str(), path.c_str());
  }
  constexpr unsigned kOwnerOnly = 0600;
  PROCTOR_CHECK_OK(write_file(state.allow_list(), allow, Durability::kSync, kOwnerOnly));
  PROCTOR_TRY(list, wire::load_allow_list(state.allow_list()));
  std::printf("%zu %s may join (%s)\n", list.size(), list.size() == 1 ? "worker" : "workers",
              state.allow_list().c_str());
  return ok_status();
}

}  // namespace

void add_keygen(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("keygen", "CURVE key pairs for the coordinator and its workers",
                         "Example:\n  proctor keygen my-campaign --worker build7 --worker build8");
  struct Args {
    std::string folder;
    std::vector<std::string> workers;
  };
  auto args = std::make_shared<Args>();
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("--worker", args->workers, "make a key for this worker and let it in");
  command.callback([=, &exit_code] { exit_code = code_of(keygen(args->folder, args->workers)); });
}

}  // namespace proctor::cli
