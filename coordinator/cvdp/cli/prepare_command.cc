// proctor cvdp prepare FILE --prefix DIR: upstream's folders and files, nothing run.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "common/base/files.h"
#include "common/base/text.h"
#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/dataset/prepare.h"

namespace proctor::cli {

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
  return write_file(root / path, bytes, Durability::kLazy, kOpenFile);  // containers read it
}

namespace {

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
      ++out_.refused;
      say(record, done.error().detail);
    } else {
      ++out_.prepared;
      for (const std::string& w : prepared->warnings) say(record, "warning: " + printable(w, 500));
    }
    begun_.insert(cvdp::write_json(cvdp::Value(record.id.text)));
    responses_ += cvdp::prompt_response_line(record, done.ok() ? &*prepared : nullptr) + "\n";
    return ok_status();
  }

  Result<PreparedCount> finish(const cvdp::DatasetSummary& summary) {
    PROCTOR_CHECK_OK(make_dirs(options_.prefix));
    const fs::path file = fs::path(options_.prefix) / "prompt_response.jsonl";
    if (options_.keep_responses) PROCTOR_CHECK_OK(keep_others(file));
    PROCTOR_CHECK_OK(write_file(file, responses_));
    out_.errors = summary.errors;
    return out_;
  }

 private:
  // Each line begins with its problem's id.
  Status keep_others(const fs::path& file) {
    constexpr std::size_t kMostBytes = std::size_t{4} << 30;
    const Result<std::string> there = read_file(file, kMostBytes);
    if (!there.ok()) return there.error().code == Errc::kNotFound ? ok_status() : there.error();
    std::string kept;
    for (std::size_t at = 0; at < there->size();) {
      const std::size_t end = std::min(there->find('\n', at), there->size() - 1) + 1;
      const std::string line = there->substr(at, end - at);
      const std::size_t id_end = line.find(": ");
      if (line.starts_with("{") && id_end != std::string::npos &&
          !begun_.contains(line.substr(1, id_end - 1)))
        kept += line;
      at = end;
    }
    responses_.insert(0, kept);
    return ok_status();
  }

  void say(const cvdp::Record& record, const std::string& what) const {
    if (options_.quiet) return;
    std::fprintf(stderr, "%s:%llu: %s: %s\n", options_.file.c_str(),
                 static_cast<unsigned long long>(record.line), record.id.text.c_str(),
                 what.c_str());
  }

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
  std::set<std::string> begun_;  // ids, as JSON has them
  PreparedCount out_;
};

}  // namespace

Result<PreparedCount> prepare_problems(const PrepareOptions& options) {
  PROCTOR_TRY(const LastLines last, last_lines(options.file, options.selection));
  PrepareWork work(options);
  const auto add = [&](const cvdp::Record& record) {
    return last.holds(record) && options.selection.holds(record) ? work.record(record)
                                                                 : ok_status();
  };
  PROCTOR_TRY(const cvdp::DatasetSummary summary,
              read_dataset(options.file, add, options.quiet ? Findings::kKnown : Findings::kTell));
  return work.finish(summary);
}

void add_cvdp_prepare(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "prepare", "lay out the folders and files of each problem as upstream does, run nothing",
      "Example:\n  proctor cvdp prepare problems.jsonl --prefix work --no-patch\n"
      "A record that would write outside its folder or whose compose file asks for the host is "
      "refused; "
      "the\nothers are prepared and the exit code is 2.");
  auto o = std::make_shared<PrepareOptions>();
  command.add_option("FILE", o->file, "the dataset").required();
  command.add_option("-p,--prefix", o->prefix, "output folder (work)");
  command.add_flag("-d,--no-patch", o->no_patch, "without the reference solutions");
  command.add_option("--network-name", o->network, "the shared network (upstream's name)");
  command.add_option("--oss-sim-image", o->names.oss_sim, "for __OSS_SIM_IMAGE__")
      .envname("OSS_SIM_IMAGE");
  command.add_option("--oss-pnr-image", o->names.oss_pnr, "for __OSS_PNR_IMAGE__")
      .envname("OSS_PNR_IMAGE");
  command.add_option("--verif-eda-image", o->names.verif_eda, "for __VERIF_EDA_IMAGE__")
      .envname("VERIF_EDA_IMAGE");
  command.add_option("--license-network", o->names.license_network, "for __LICENSE_NETWORK__")
      .envname("LICENSE_NETWORK");
  add_selection(command, o->selection);
  command.callback([=, &exit_code] {
    const Result<PreparedCount> done = prepare_problems(*o);
    if (!done.ok()) {
      exit_code = complain(done.error());
      return;
    }
    std::printf("%llu problems prepared in %s, %llu refused\n",
                static_cast<unsigned long long>(done->prepared), o->prefix.c_str(),
                static_cast<unsigned long long>(done->refused));
    exit_code = done->refused == 0 && done->errors == 0 ? kOk : kBadInput;
  });
}

}  // namespace proctor::cli
