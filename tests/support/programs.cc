#include "tests/support/programs.h"

#include <cstdlib>
#include <thread>

namespace proctor::testing {

using namespace std::chrono_literals;
namespace {

fs::path program(const char* name, const char* built) {
  const char* folder = std::getenv("PROCTOR_BIN_DIR");
  return folder != nullptr && *folder != '\0' ? fs::path(folder) / name : fs::path(built);
}

}  // namespace

fs::path proctor_program() {
  return program("proctor", PROCTOR_PROGRAM);
}
fs::path worker_program() {
  return program("proctor-worker", PROCTOR_WORKER_PROGRAM);
}

CommandOutcome proctor(std::vector<std::string> args, std::chrono::milliseconds timeout) {
  CommandSpec spec;
  spec.argv = {proctor_program().string()};
  spec.argv.insert(spec.argv.end(), args.begin(), args.end());
  spec.timeout = timeout;
  spec.output_max = std::size_t{16} << 20;
  return must(run_command(spec));
}

std::string output_of(std::vector<std::string> argv, const fs::path& cwd) {
  CommandSpec spec;
  spec.argv = std::move(argv);
  spec.cwd = cwd;
  std::string text = must(run_for_output(spec));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool eventually(const std::function<bool()>& asked, std::chrono::milliseconds within) {
  constexpr auto kPause = 20ms;
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!asked()) {
    if (deadline < std::chrono::steady_clock::now()) return asked();
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace proctor::testing
