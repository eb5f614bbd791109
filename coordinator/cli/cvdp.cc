// proctor cvdp ...: another program, proctor-cvdp.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "common/base/files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/completion.h"

namespace proctor::cli {

std::optional<int> run_cvdp_program(int argc, char** argv) {
  if (argc < 2) return std::nullopt;
  std::vector<std::string> words(argv, argv + argc);
  const bool completes = argc == 3 && words[1] == "__complete";
  const std::vector<std::string> line = completes ? words_of(words[2]) : words;
  // Options before a command have no values; a word that is being typed is no command yet.
  const auto command = std::find_if(line.begin() + 1, line.end() - (completes ? 1 : 0),
                                    [](const std::string& word) { return !word.starts_with("-"); });
  if (command == line.end() || *command != "cvdp") return std::nullopt;
  if (!completes) words.erase(words.begin() + (command - line.begin()));
  words[0] += "-cvdp";
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::error_code ec;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ec).parent_path() / "proctor-cvdp";
  ::execv(beside.c_str(), arguments.data());
  const std::string why = errno_error(beside.string(), errno).detail;
  return complain({Errc::kUnavailable,
                   why + "\n`proctor cvdp` is a program of its own beside proctor.  To build it:  "
                         "cmake --build build/release --target proctor-cvdp"});
}

void add_cvdp_program(Command app, int&) {
  app.add_subcommand("cvdp", kCvdpSays);
}

}  // namespace proctor::cli
