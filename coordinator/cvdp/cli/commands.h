#pragma once
// The commands of `proctor cvdp`, what `run` uses of two of them, and the files that they write.
// Private to the program.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cvdp/dataset/prepare.h"
#include "coordinator/cvdp/run/dataset_file.h"

namespace proctor::cli {
// One subcommand of `proctor cvdp` each.
void add_cvdp_check(Command cvdp, int& exit_code);
void add_cvdp_import(Command cvdp, int& exit_code);
void add_cvdp_merge(Command cvdp, int& exit_code);
void add_cvdp_prepare(Command cvdp, int& exit_code);
void add_cvdp_report(Command cvdp, int& exit_code);
void add_cvdp_refine(Command cvdp, int& exit_code);
void add_cvdp_run(Command cvdp, int& exit_code);
void add_cvdp_selfcheck(Command cvdp, int& exit_code);
void add_cvdp_show(Command cvdp, int& exit_code);
void add_cvdp_split(Command cvdp, int& exit_code);
void add_cvdp_stats(Command cvdp, int& exit_code);
void add_cvdp_sweep(Command cvdp, int& exit_code);
void add_cvdp_transform(Command cvdp, int& exit_code);
void add_cvdp_yaml(Command cvdp, int& exit_code);

// `prepare`: upstream's folders and files of each problem.

struct PrepareOptions {
  std::string file;
  std::string prefix = "work";
  Selection selection;
  cvdp::PrepareSettings settings;  // without a network: upstream's name
  bool quiet = false;              // about what is refused or odd
  bool keep_responses = false;     // of other problems, in the prompt_response.jsonl that is there
};
struct PreparedCount {
  std::uint64_t prepared = 0, refused = 0;
  std::uint64_t errors = 0;  // records that are none
};
// Writes below `root` without following a symbolic link that is there: a folder of an earlier run
// may hold what an agent left.
Status write_below(const fs::path& root, const std::string& relative, std::string_view bytes);
// Refusals and warnings go to standard error.
Result<PreparedCount> prepare_problems(const PrepareOptions& options);

// `transform`: a dataset of one shape as one of the other.

struct TransformOptions {
  std::string to;  // agentic or copilot
  std::string file;
  std::string out;  // a file, a folder that is there, or empty: standard output
  bool report_losses = false;
};
// The exit code; lines that are no record are reported and left out.
Result<int> run_transform(const TransformOptions& options);

// A file written piece by piece that appears under its name only when it is whole; without a name
// it is standard output.  Pipes and devices are written in place.  Not thread-safe.
class OutputFile {
 public:
  static Result<OutputFile> open(const fs::path& target) {
    OutputFile out;
    if (target.empty()) return out;
    const std::optional<fs::path> file = replaced_file(target);
    out.target_ = file.value_or(target);
    if (file) out.part_ = file->string() + ".part";
    out.file_.reset(std::fopen((file ? out.part_ : target).c_str(), "wb"));
    if (out.file_ == nullptr) return errno_error("write " + target.string(), errno);
    return out;
  }
  OutputFile(OutputFile&&) noexcept = default;
  OutputFile& operator=(OutputFile&&) = delete;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (file_ == nullptr) return;
    file_.reset();
    std::error_code ec;
    if (!part_.empty()) fs::remove(part_, ec);
  }
  Status write(std::string_view bytes) {
    std::FILE* const to = file_ == nullptr ? stdout : file_.get();
    if (std::fwrite(bytes.data(), 1, bytes.size(), to) != bytes.size())
      return errno_error("write " + (target_.empty() ? "standard output" : target_.string()),
                         errno);
    return ok_status();
  }
  Status close() {
    if (file_ == nullptr)
      return std::fflush(stdout) == 0 ? ok_status()
                                      : Status(errno_error("write standard output", errno));
    if (std::fclose(file_.release()) != 0) return errno_error("write " + target_.string(), errno);
    if (part_.empty()) return ok_status();
    PROCTOR_CHECK_OK(sync_path(part_));
    std::error_code ec;
    fs::rename(part_, target_, ec);
    if (ec) return Error{Errc::kInvalid, "write " + target_.string() + ": " + ec.message()};
    return ok_status();
  }

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  OutputFile() = default;
  fs::path target_;
  fs::path part_;  // empty: the target is written in place
  std::unique_ptr<std::FILE, Close> file_;
};
}  // namespace proctor::cli
