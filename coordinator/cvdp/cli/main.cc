// proctor-cvdp: `proctor cvdp ARGUMENTS` becomes `proctor-cvdp ARGUMENTS`, and each works alone.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/version.h"
#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/pycompat/yaml.h"

namespace proctor::cli {
namespace {
// Upstream reads a .env of the current folder.  Into the environment, because options and workers
// look there; never over what is there, and no value is ever printed.
void take_dotenv() {
  constexpr const char* kFile = ".env";
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  std::error_code ec;
  if (!fs::is_regular_file(kFile, ec)) return;
  const Result<std::string> text = read_file(kFile, kMostBytes);
  if (!text.ok()) {
    std::fprintf(stderr, "%s is not read: %s\n", kFile, text.error().detail.c_str());
    return;
  }
  std::string taken;
  for (const auto& [key, value] : cvdp::read_dotenv(*text)) {
    if (std::getenv(key.c_str()) != nullptr) continue;
    ::setenv(key.c_str(), value.c_str(), 0);
    taken += (taken.empty() ? "" : ", ") + key;
  }
  if (!taken.empty()) std::fprintf(stderr, "from %s: %s\n", kFile, taken.c_str());
}

void add_cvdp(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "cvdp", kCvdpSays,
      "Example:\n  proctor cvdp check problems.jsonl\n"
      "docs/cvdp.md says what each does and where it differs from the upstream tool.");
  command.require_subcommand(1);
  command.preparse_callback(take_dotenv);  // before options look there
  for (const Register add :
       {add_cvdp_check, add_cvdp_transform, add_cvdp_prepare, add_cvdp_import, add_cvdp_run,
        add_cvdp_selfcheck, add_cvdp_report, add_cvdp_merge, add_cvdp_split, add_cvdp_refine,
        add_cvdp_stats, add_cvdp_sweep, add_cvdp_show, add_cvdp_yaml})
    add(command, exit_code);
}
}  // namespace
}  // namespace proctor::cli

int main(int argc, char** argv) {
  using namespace proctor::cli;
  // Texts name the program that is typed.
  constexpr std::string_view kSuffix = "-cvdp";
  std::string program = argc == 0 ? "proctor" : argv[0];
  if (program.ends_with(kSuffix)) program.resize(program.size() - kSuffix.size());
  std::string command = "cvdp";
  std::vector<char*> words{program.data()};
  const bool completes = 1 < argc && std::string_view(argv[1]) == "__complete";
  if (!completes) words.push_back(command.data());
  for (int i = 1; i < argc; ++i) words.push_back(argv[i]);
  const int count = static_cast<int>(words.size());
  words.push_back(nullptr);
  return run_program(count, words.data(), proctor::build_commit(), {add_cvdp, add_completion});
}
