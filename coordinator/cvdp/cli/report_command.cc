// proctor cvdp report: the reports of one run or of several samples.

#include "coordinator/cvdp/report/report.h"

#include <cstdio>
#include <memory>

#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/run/report_files.h"

namespace proctor::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> files;
  std::string out;
  std::int64_t k = 0;
  std::string model;
  std::string refine;
  cvdp::ReportMetadata metadata;
};

Result<cvdp::Value> read_report(const std::string& file) {
  constexpr std::size_t kReportBytes = std::size_t{256} << 20;
  PROCTOR_TRY(const std::string text, read_file(file, kReportBytes));
  Result<cvdp::Value> value = cvdp::read_json(text);
  if (!value.ok()) return in_context(file, value.error());
  return value;
}

bool is_report(const cvdp::Value& value) {
  return cvdp::object_at(value, "test_details") != nullptr;
}

// Of a raw result, or the report that it is already.
Result<cvdp::Value> report_of(const cvdp::Value& value, const std::string& file,
                              const ReportOptions& options) {
  if (is_report(value)) return value;
  Result<cvdp::Report> made = cvdp::make_report(value, options.metadata);
  if (!made.ok()) return in_context(file, made.error());
  for (const std::string& left : made->left_out)
    std::fprintf(stderr, "%s: left out: %s\n", file.c_str(), left.c_str());
  return std::move(made->json);
}

Status several(const ReportOptions& options, const fs::path& folder) {
  std::vector<cvdp::Value> reports;
  cvdp::CompositeMetadata metadata;
  metadata.timestamp = options.metadata.timestamp;
  metadata.k = options.k == 0 ? 1 : options.k;
  for (const std::string& file : options.files) {
    PROCTOR_TRY(const cvdp::Value value, read_report(file));
    PROCTOR_TRY(cvdp::Value report, report_of(value, file, options));
    reports.push_back(std::move(report));
    metadata.prefixes.push_back(fs::path(file).parent_path().string());
  }
  return write_composite(reports, metadata, folder);
}

Status run_report(ReportOptions options) {
  if (!options.model.empty()) options.metadata.model_agent = options.model;
  if (!options.refine.empty()) options.metadata.copilot_refine = options.refine;
  if (options.metadata.timestamp.empty()) options.metadata.timestamp = local_time();
  const std::string& first = options.files.front();
  const fs::path folder =
      !options.out.empty() ? fs::path(options.out) : fs::absolute(first).parent_path();
  PROCTOR_CHECK_OK(make_dirs(folder));
  if (1 < options.files.size()) return several(options, folder);
  PROCTOR_TRY(const cvdp::Value value, read_report(first));
  if (cvdp::is_composite(value)) return write_composite_texts(value, folder, options.k);
  PROCTOR_TRY(const cvdp::Value report, report_of(value, first, options));
  return write_single_report(report, folder, is_report(value));
}

void add_metadata_options(Command command, ReportOptions& o) {
  cvdp::ReportMetadata& m = o.metadata;
  command.add_option("--dataset", m.dataset_path, "the dataset's path, as the report says it");
  command.add_option("--timestamp", m.timestamp, "instead of now: \"2026-01-31 12:00:00\"");
  command.add_flag("--golden", m.golden_mode, "the run applied the reference solutions");
  command.add_flag("-d,--no-patch", m.disable_patch, "the run applied nothing");
  command.add_option("-m,--model,-g,--agent", o.model, "the model's or agent's name");
  command.add_flag("--force-agentic", m.force_agentic);
  command.add_flag("--force-agentic-include-golden", m.force_agentic_include_golden);
  command.add_flag("--force-agentic-include-harness", m.force_agentic_include_harness);
  command.add_flag("--force-copilot", m.force_copilot);
  command.add_option("--copilot-refine", o.refine);
}

}  // namespace

void add_cvdp_report(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "report", "upstream's reports out of its results",
      "Example:\n  proctor cvdp report work/raw_result.json -o out --dataset problems.jsonl -m "
      "gpt\n"
      "A raw_result.json gives report.json and report.txt, a report.json its report.txt, a "
      "composite "
      "report\nor several files (one per sample) the composite report, and pass_at_k.txt and .json "
      "with "
      "unbiased\nestimates beside upstream's.");
  auto options = std::make_shared<ReportOptions>();
  command
      .add_option("FILE", options->files, "raw_result.json, report.json or composite_report.json")
      .required();
  command.add_option("-o,--output", options->out, "the folder to write into (the file's own)");
  command.add_option("-k,--k-threshold", options->k, "k of pass@k (the file's own, else 1)")
      .positive();
  add_metadata_options(command, *options);
  command.callback([=, &exit_code] { exit_code = code_of(run_report(*options)); });
}

}  // namespace proctor::cli
