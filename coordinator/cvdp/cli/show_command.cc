// proctor cvdp yaml and show: datasets for people's eyes.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "common/base/text.h"
#include "coordinator/cli/command.h"
#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/cli/output.h"
#include "coordinator/cvdp/dataset/record_yaml.h"
#include "coordinator/cvdp/pycompat/yaml.h"

namespace proctor::cli {
namespace {

bool is_yaml(const std::string& file) {
  return file.ends_with(".yaml") || file.ends_with(".yml");
}

Result<int> to_yaml(const std::string& file, OutputFile& out) {
  std::size_t left_out = 0;
  PROCTOR_TRY(const cvdp::DatasetSummary summary,
              read_dataset(file, [&](const cvdp::Record& record) {
                const Result<std::string> text = cvdp::record_yaml(record.value);
                if (text.ok()) return out.write(*text);
                ++left_out;
                std::fprintf(stderr, "%s:%llu: %s: left out: %s\n", file.c_str(),
                             static_cast<unsigned long long>(record.line), record.id.text.c_str(),
                             printable(text.error().detail, 500).c_str());
                return ok_status();
              }));
  return summary.errors == 0 && left_out == 0 ? kOk : kBadInput;
}

Result<int> to_jsonl(const std::string& file, OutputFile& out) {
  PROCTOR_TRY(const std::string text, read_file(file, cvdp::kRecordBytes));
  int code = kOk;
  for (const cvdp::YamlDocument& document : cvdp::split_documents(text)) {
    const auto value = cvdp::read_yaml(document.text, file, cvdp::kRecordBytes);
    if (value.ok()) {
      PROCTOR_CHECK_OK(out.write(cvdp::write_json(*value) + "\n"));
      continue;
    }
    code = kBadInput;
    std::fprintf(stderr, "the document at line %llu is left out: %s\n",
                 static_cast<unsigned long long>(document.line),
                 printable(value.error().detail, 1000).c_str());
  }
  return code;
}

Result<int> run_yaml(const std::string& file, const std::string& target) {
  PROCTOR_TRY(OutputFile out, OutputFile::open(target));
  PROCTOR_TRY(const int code, is_yaml(file) ? to_jsonl(file, out) : to_yaml(file, out));
  PROCTOR_CHECK_OK(out.close());
  return code;
}

struct ShowOptions {
  std::string file;
  Selection selection;
  std::vector<std::string> parts;
};

void print_text(const std::string& title, const std::string& text) {
  std::printf("--- %s\n%s%s", title.c_str(), printable_lines(text, "\n\t").c_str(),
              text.ends_with('\n') || text.empty() ? "" : "\n");
}

void print_files(const std::string& part, const cvdp::Object* files) {
  if (files == nullptr) return;
  for (const cvdp::Member& m : *files)
    print_text(part + " " + printable(m.key), m.value.string() == nullptr
                                                  ? "(" + std::string(m.value.kind()) + ")"
                                                  : *m.value.string());
}

void show(const cvdp::Record& record, const std::vector<std::string>& parts) {
  const auto wanted = [&parts](const char* part) {
    return parts.empty() || std::ranges::find(parts, part) != parts.end();
  };
  std::printf("=== %s: %s, %s, %s\n", record.id.text.c_str(), printable(record.category).c_str(),
              record.difficulty.c_str(), std::string(cvdp::to_string(record.shape)).c_str());
  if (const std::string* system = cvdp::text_at(record.value, "system_message");
      system != nullptr && wanted("system"))
    print_text("system message (never used)", *system);
  if (const std::string* prompt = cvdp::prompt_of(record); prompt != nullptr && wanted("prompt"))
    print_text("prompt", *prompt);
  if (wanted("context")) print_files("context", cvdp::context_files(record));
  if (wanted("solution")) {
    print_files("solution", cvdp::solution_files(record));
    if (!cvdp::reference_of(record).empty())
      print_text("reference", std::string(cvdp::reference_of(record)));
  }
  if (wanted("harness")) print_files("harness", cvdp::harness_files(record));
}

Result<int> run_show(const ShowOptions& o) {
  PROCTOR_TRY(const LastLines last, last_lines(o.file, o.selection));
  PROCTOR_TRY([[maybe_unused]] const cvdp::DatasetSummary summary,
              read_dataset(
                  o.file,
                  [&](const cvdp::Record& record) {
                    if (last.holds(record) && o.selection.holds(record)) show(record, o.parts);
                    return ok_status();
                  },
                  Findings::kKnown));
  return kOk;
}

}  // namespace

void add_cvdp_yaml(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "yaml", "a dataset as YAML that people edit, and back",
      "Example:\n  proctor cvdp yaml problems.jsonl -o problems.yaml\n"
      "  proctor cvdp yaml problems.yaml -o problems.jsonl\n"
      "A file that ends in .yaml or .yml becomes JSON lines, any other YAML, one document a "
      "record; "
      "nothing is lost\neither way. A record that YAML would not bring back is named and left out, "
      "and the exit code is 2.");
  auto file = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  command.add_option("FILE", *file, "the dataset").required();
  command.add_option("-o,--output", *out, "file to write (standard output)");
  command.callback([=, &exit_code] { exit_code = code_of(run_yaml(*file, *out)); });
}

void add_cvdp_show(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "show", "problems as text: prompt, files, solution, harness",
      "Example:\n  proctor cvdp show problems.jsonl -i cvdp_copilot_lfsr_0001\n"
      "  proctor cvdp show problems.jsonl --filter category=cid003 --part prompt");
  auto o = std::make_shared<ShowOptions>();
  command.add_option("FILE", o->file, "the dataset").required();
  command.add_option("--part", o->parts, "only this; may be given again")
      .one_of({"system", "prompt", "context", "solution", "harness"});
  add_selection(command, o->selection);
  command.callback([=, &exit_code] { exit_code = code_of(run_show(*o)); });
}

}  // namespace proctor::cli
