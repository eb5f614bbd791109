// proctor cvdp transform: a dataset of one shape as one of the other.
#include <cstdio>
#include <memory>
#include <optional>

#include "common/base/text.h"
#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/cli/output.h"
#include "coordinator/cvdp/dataset/transform.h"

namespace proctor::cli {
namespace {

class Transformation {
 public:
  Transformation(const TransformOptions& options, OutputFile& out)
      : options_(options),
        to_(options.to == "agentic" ? cvdp::Shape::kAgentic : cvdp::Shape::kCopilot),
        out_(out),
        lines_(std::size_t{256} << 20) {}

  Status feed(std::string_view piece) {
    lines_.feed(piece, [this](const cvdp::LineFeed::Line& l) { take(l); });
    return flush(std::size_t{1} << 20);
  }
  Status finish() {
    lines_.finish([this](const cvdp::LineFeed::Line& l) { take(l); });
    return flush(0);
  }
  std::uint64_t errors() const { return errors_; }
  std::string summary() const {
    return std::to_string(records_) + " records, " + std::to_string(changed_) + " transformed, " +
           std::to_string(errors_) + " lines left out";
  }

 private:
  void say(std::uint64_t line, const std::string& text) const {
    std::fprintf(stderr, "%s:%llu: %s\n", options_.file.c_str(),
                 static_cast<unsigned long long>(line), printable(text, 1000).c_str());
  }
  void take(const cvdp::LineFeed::Line& line) {
    const Status done = one(line);
    if (done.ok()) return;
    ++errors_;
    say(line.number, "error: " + done.error().detail + ": the line is left out");
  }
  Status one(const cvdp::LineFeed::Line& line) {
    if (line.too_long) return Error{Errc::kInvalid, "longer than 256 MiB"};
    PROCTOR_TRY(cvdp::Value value, cvdp::read_json(line.text));
    if (options_.report_losses) {
      PROCTOR_TRY(const std::vector<cvdp::Loss> losses, cvdp::losses_of(value, to_));
      for (const cvdp::Loss& l : losses)
        say(line.number, "loss: " + (l.field.empty() ? "" : l.field + ": ") + l.text);
    }
    PROCTOR_TRY(const cvdp::Transformed made, cvdp::transform(std::move(value), to_));
    if (!options_.report_losses)
      for (const std::string& w : made.warnings) say(line.number, "warning: " + w);
    ++records_;
    changed_ += made.changed ? 1U : 0U;
    cvdp::write_json(ready_, made.value);
    ready_ += '\n';
    return ok_status();
  }
  Status flush(std::size_t from) {
    if (ready_.size() <= from) return ok_status();
    PROCTOR_CHECK_OK(out_.write(ready_));
    ready_.clear();
    return ok_status();
  }

  const TransformOptions& options_;
  cvdp::Shape to_;
  OutputFile& out_;
  cvdp::LineFeed lines_;
  std::string ready_;
  std::uint64_t records_ = 0;
  std::uint64_t changed_ = 0;
  std::uint64_t errors_ = 0;
};

}  // namespace

Result<int> run_transform(const TransformOptions& options) {
  fs::path target = options.out;
  std::error_code ec;
  if (!options.out.empty() && fs::is_directory(target, ec))
    target /= cvdp::transformed_name(
        fs::path(options.file).filename().string(),
        options.to == "agentic" ? cvdp::Shape::kAgentic : cvdp::Shape::kCopilot);
  PROCTOR_TRY(OutputFile out, OutputFile::open(target));
  Transformation work(options, out);
  PROCTOR_CHECK_OK(
      read_pieces(options.file, [&](std::string_view piece) { return work.feed(piece); }));
  PROCTOR_CHECK_OK(work.finish());
  PROCTOR_CHECK_OK(out.close());
  std::fprintf(stderr, "%s\n", work.summary().c_str());
  return work.errors() == 0 ? kOk : kBadInput;
}

void add_cvdp_transform(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "transform",
      "a dataset of one shape as one of the other, as upstream's "
      "--force-agentic and --force-copilot",
      "Example:\n  proctor cvdp transform --to agentic problems.jsonl -o agentic.jsonl\n"
      "Without -o to standard output; into a folder under the name upstream gives it. A line that "
      "is "
      "no\nrecord is told and left out, and the exit code is 2.");
  auto options = std::make_shared<TransformOptions>();
  command.add_option("--to", options->to, "agentic or copilot")
      .required()
      .one_of({"agentic", "copilot"});
  command.add_option("FILE", options->file, "the dataset").required();
  command.add_option("-o,--output", options->out, "file or folder to write");
  command.add_flag("--report-losses", options->report_losses,
                   "list what a round trip would not bring back");
  command.callback([=, &exit_code] { exit_code = code_of(run_transform(*options)); });
}

}  // namespace proctor::cli
