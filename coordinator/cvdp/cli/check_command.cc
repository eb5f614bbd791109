// proctor cvdp check FILE: every record of a dataset judged, nothing run.
#include <cstdio>
#include <memory>

#include "coordinator/cvdp/cli/commands.h"

namespace proctor::cli {
namespace {

void print_cells(const cvdp::DatasetSummary& s) {
  for (const auto& [category, by_difficulty] : s.cells) {
    std::printf("  %-10s", category.c_str());
    for (const char* difficulty : {"easy", "medium", "hard"})
      if (const auto it = by_difficulty.find(difficulty); it != by_difficulty.end())
        std::printf("  %s %llu", difficulty, static_cast<unsigned long long>(it->second));
    std::puts("");
  }
}

int check(const std::string& file) {
  const Result<cvdp::DatasetSummary> s =
      read_dataset(file, [](const cvdp::Record&) { return ok_status(); });
  if (!s.ok()) return complain(s.error());
  const auto n = [](std::uint64_t x) { return static_cast<unsigned long long>(x); };
  std::printf(
      "%s: %llu problems: %llu copilot, %llu agentic (%llu heavy); %llu comprehension, "
      "%llu redacted\n",
      file.c_str(), n(s->records), n(s->records - s->agentic), n(s->agentic), n(s->heavy),
      n(s->comprehension), n(s->redacted));
  print_cells(*s);
  std::printf("%llu errors, %llu warnings\n", n(s->errors), n(s->warnings));
  return s->errors == 0 ? kOk : kBadInput;
}

}  // namespace

void add_cvdp_check(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "check", "judge every record of a dataset, run nothing",
      "Example:\n  proctor cvdp check problems.jsonl\n"
      "Exit code 2 when there is any error. A warning says what upstream would do with the "
      "record.");
  auto file = std::make_shared<std::string>();
  command.add_option("FILE", *file, "the dataset, one JSON record a line").required();
  command.callback([=, &exit_code] { exit_code = check(*file); });
}

}  // namespace proctor::cli
