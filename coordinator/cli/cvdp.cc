// proctor cvdp ...: datasets of the CVDP benchmark.
#include "coordinator/cli/cvdp.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "common/base/files.h"
#include "common/cvdp/dotenv.h"

namespace proctor::cli {

Status read_pieces(const std::string& file, const std::function<Status(std::string_view)>& take) {
  const fs::path path(file);
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  if (!fs::exists(status)) return Error{Errc::kNotFound, file + ": no such file"};
  if (fs::is_directory(status)) return Error{Errc::kInvalid, file + ": is a folder"};
  // Its writer may never come.  What /dev/stdin and the shell's <(...) lead to has one.
  if (fs::is_fifo(fs::symlink_status(path, ec)))
    return Error{Errc::kInvalid, file + ": a named pipe, and no file: <(...) can be read"};
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Errc::kInvalid, file + ": cannot be opened"};
  std::string piece(std::size_t{1} << 20, '\0');
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    PROCTOR_CHECK_OK(take(std::string_view(piece.data(), static_cast<std::size_t>(in.gcount()))));
  }
  if (in.bad()) return Error{Errc::kUnavailable, file + ": cannot be read to its end"};
  return ok_status();
}

Result<cvdp::DatasetSummary> read_dataset(const std::string& file,
                                          const std::function<Status(cvdp::Record)>& record,
                                          Findings findings) {
  constexpr std::uint64_t kTold = 1000;
  Status first = ok_status();
  std::uint64_t told = 0;
  cvdp::DatasetReader reader(
      [&](cvdp::Record r) {
        if (first.ok()) first = record(std::move(r));
      },
      [&](const cvdp::Finding& finding) {
        if (findings == Findings::kKnown) return;
        if (++told <= kTold)
          std::fprintf(stderr, "%s:%s\n", file.c_str(), cvdp::to_string(finding).c_str());
        if (told == kTold) std::fputs("... and so on\n", stderr);
      });
  PROCTOR_CHECK_OK(read_pieces(file, [&](std::string_view piece) {
    reader.feed(piece);
    return first;
  }));
  reader.finish();
  PROCTOR_CHECK_OK(first);
  return reader.summary();
}

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

}  // namespace

void add_cvdp(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "cvdp", "datasets of the CVDP benchmark: check, transform, run, ...",
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

}  // namespace proctor::cli
