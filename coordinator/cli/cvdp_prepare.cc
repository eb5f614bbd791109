// proctor cvdp prepare FILE --prefix DIR: upstream's folders and files, nothing run.
#include "common/cvdp/prepare.h"

#include <cstdio>
#include <map>
#include <memory>

#include "common/base/text.h"
#include "coordinator/cli/cvdp.h"
#include "coordinator/cli/cvdp_output.h"
#include "coordinator/cli/cvdp_select.h"

namespace proctor::cli {
namespace {

struct PrepareOptions {
  std::string file;
  std::string prefix = "work";
  std::string network;
  bool no_patch = false;
  bool external_network = false;
  Selection selection;
  cvdp::ImageNames names;
};

// Writes below `root` without following a symbolic link that is there: a folder of an earlier run
// may hold what an agent left.
Status write_below(const fs::path& root, const std::string& relative, std::string_view bytes) {
  fs::path at = root;
  const fs::path path(relative);
  for (const fs::path& part : path.parent_path()) {
    at /= part;
    std::error_code ec;
    const auto status = fs::symlink_status(at, ec);
    if (fs::is_symlink(status)) return Error{Errc::kInvalid, at.string() + ": is a symbolic link"};
    if (!fs::exists(status)) PROCTOR_CHECK_OK(make_dirs(at));
  }
  return write_file(root / path, bytes, Durability::kLazy);
}

class PrepareWork {
 public:
  explicit PrepareWork(const PrepareOptions& options) : options_(options) {
    settings_.mode = options.no_patch ? cvdp::PrepareMode::kNoPatch : cvdp::PrepareMode::kGolden;
    settings_.names = options.names;
    settings_.shared_network =
        !options.network.empty() ? options.network : cvdp::upstream_network_name(options.file);
  }

  Status record(const cvdp::Record& record) {
    const Result<cvdp::Prepared> prepared = cvdp::prepare(record, settings_);
    Status done = prepared.ok() ? write(*prepared) : Status(prepared.error());
    if (!done.ok()) {
      ++failed_;
      std::fprintf(stderr, "%s:%llu: %s: %s\n", options_.file.c_str(),
                   static_cast<unsigned long long>(record.line), record.id.text.c_str(),
                   done.error().detail.c_str());
    } else {
      ++prepared_;
      for (const std::string& w : prepared->warnings)
        std::fprintf(stderr, "%s:%llu: %s: warning: %s\n", options_.file.c_str(),
                     static_cast<unsigned long long>(record.line), record.id.text.c_str(),
                     printable(w, 500).c_str());
    }
    responses_ += cvdp::prompt_response_line(record, done.ok() ? &*prepared : nullptr) + "\n";
    return ok_status();
  }

  Result<int> finish(const cvdp::DatasetSummary& summary) {
    PROCTOR_CHECK_OK(make_dirs(options_.prefix));
    PROCTOR_CHECK_OK(write_file(fs::path(options_.prefix) / "prompt_response.jsonl", responses_));
    std::printf("%llu problems prepared in %s, %llu refused\n",
                static_cast<unsigned long long>(prepared_), options_.prefix.c_str(),
                static_cast<unsigned long long>(failed_));
    return failed_ == 0 && summary.errors == 0 ? kOk : kBadInput;
  }

 private:
  Status write(const cvdp::Prepared& p) const {
    const fs::path root = fs::path(options_.prefix) / p.folder;
    // Files of an earlier run would decide the verdict of this one.
    PROCTOR_CHECK_OK(remove_tree(root));
    for (const std::string& folder : p.folders) PROCTOR_CHECK_OK(make_dirs(root / folder));
    for (const cvdp::PreparedFile& f : p.files)
      PROCTOR_CHECK_OK(write_below(root, f.path, f.bytes));
    return ok_status();
  }

  const PrepareOptions& options_;
  cvdp::PrepareSettings settings_;
  std::string responses_;
  std::uint64_t prepared_ = 0;
  std::uint64_t failed_ = 0;
};

Result<int> run_prepare(PrepareOptions options) {
  if (options.external_network && options.network.empty()) options.network.clear();
  PROCTOR_TRY(const LastLines last, last_lines(options.file));
  PrepareWork work(options);
  PROCTOR_TRY(const cvdp::DatasetSummary summary,
              read_dataset(options.file, [&](const cvdp::Record& record) {
                return last.holds(record) && options.selection.holds(record) ? work.record(record)
                                                                             : ok_status();
              }));
  return work.finish(summary);
}

}  // namespace

void add_cvdp_prepare(CLI::App& cvdp, int& exit_code) {
  auto* command = cvdp.add_subcommand(
      "prepare", "lay out the folders and files of each problem as upstream does, run nothing");
  command->footer(
      "Example:\n  proctor cvdp prepare problems.jsonl --prefix work --no-patch\n"
      "A record that would write outside its folder or whose compose file asks for the host is "
      "refused; "
      "the\nothers are prepared and the exit code is 2.");
  auto o = std::make_shared<PrepareOptions>();
  command->add_option("FILE", o->file, "the dataset")->required();
  command->add_option("-p,--prefix", o->prefix, "output folder (work)");
  command->add_flag("-d,--no-patch", o->no_patch, "without the reference solutions");
  command->add_option("--network-name", o->network, "the shared network (upstream's name)");
  command->add_option("--oss-sim-image", o->names.oss_sim, "for __OSS_SIM_IMAGE__")
      ->envname("OSS_SIM_IMAGE");
  command->add_option("--oss-pnr-image", o->names.oss_pnr, "for __OSS_PNR_IMAGE__")
      ->envname("OSS_PNR_IMAGE");
  command->add_option("--verif-eda-image", o->names.verif_eda, "for __VERIF_EDA_IMAGE__")
      ->envname("VERIF_EDA_IMAGE");
  command->add_option("--license-network", o->names.license_network, "for __LICENSE_NETWORK__")
      ->envname("LICENSE_NETWORK");
  add_selection(*command, o->selection);
  command->callback([=, &exit_code] {
    const Result<int> done = run_prepare(*o);
    exit_code = done.ok() ? *done : complain(done.error());
  });
}

}  // namespace proctor::cli
