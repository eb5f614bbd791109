#include "coordinator/cvdp/run/campaign.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "common/base/text.h"
#include "common/contract/campaign_parser.h"
#include "coordinator/cvdp/run/heavy_checkout.h"
#include "coordinator/cvdp/run/images.h"
#include "coordinator/cvdp/run/repository.h"

namespace proctor::cli {
namespace {

constexpr const char* kHead =
    "# Made by `proctor cvdp import`; docs/file-formats.md says what else can stand here.\n"
    "# noop has to fail and reference to succeed on every task: then the tasks are sound.\n";

std::string campaign_name(const fs::path& folder) {
  std::string out;
  for (const char c : folder.filename().string()) {
    const bool fits = ('a' <= c && c <= 'z') || ('0' <= c && c <= '9');
    out += fits ? c : '-';
  }
  while (out.starts_with('-')) out.erase(0, 1);
  return out.empty() ? "cvdp" : out;
}

class ImportWork {
 public:
  explicit ImportWork(const ImportOptions& options)
      : options_(options),
        folder_(options.campaign),
        contexts_(folder_ / "repos" / "cvdp.git"),
        heavy_(folder_ / "repos" / "cvdp.git", variable("CVDP_HEAVY_REPOS_PATH"),
               std::getenv("CLONE_HTTP") != nullptr),
        images_(options.settings.network),
        settings_(options.settings) {
    settings_.image_id = [this](const std::string& name) { return images_.id_of(name); };
    settings_.build = [this](const cvdp::BuildContext& context) { return images_.build(context); };
  }

  Status open() {
    std::error_code ec;
    if (fs::exists(folder_ / "registration.json", ec))
      return Error{Errc::kConflict, options_.campaign + " is frozen: its tasks cannot change"};
    PROCTOR_CHECK_OK(make_dirs(folder_ / "contracts"));
    PROCTOR_CHECK_OK(contexts_.open());
    const fs::path campaign = folder_ / "campaign.yaml";
    if (fs::exists(campaign, ec)) return ok_status();
    const std::string name = campaign_name(fs::absolute(folder_).lexically_normal());
    return write_file(campaign, kHead + cvdp_campaign_text(name, options_), Durability::kSync,
                      kOpenFile);
  }

  Status add(cvdp::Record record) {
    const std::string none(40, '0');
    const auto possible = cvdp::make_contract(record, kRepository, none, settings_);
    const std::string id = cvdp::contract_id(record);
    if (!possible.ok()) return leave_out(record, possible.error());
    const Result<cvdp::CommitExtras> extras = extras_of(record);
    if (!extras.ok()) return leave_out(record, extras.error());
    Result<std::string> stream = cvdp::commit_stream(record, batch_.size() + 1, *extras);
    if (!stream.ok()) return leave_out(record, stream.error());
    if (!ids_.emplace(id, record.id.text).second && ids_[id] != record.id.text)
      return leave_out(record, {Errc::kInvalid, "its name differs from \"" + ids_[id] +
                                                    "\" in upper and lower case only"});
    stream_ += *stream;
    batch_.push_back(std::move(record));
    constexpr std::size_t kBatchBytes = std::size_t{32} << 20;
    return stream_.size() < kBatchBytes ? ok_status() : flush();
  }

  Result<Imported> finish(const cvdp::DatasetSummary& summary) {
    PROCTOR_CHECK_OK(flush());
    out_.errors = summary.errors;
    return std::move(out_);
  }

 private:
  static constexpr const char* kRepository = "../repos/cvdp.git";

  static std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  }

  Result<cvdp::CommitExtras> extras_of(const cvdp::Record& record) {
    cvdp::CommitExtras out;
    out.golden = options_.include_golden;
    out.harness = options_.include_harness;
    PROCTOR_TRY(const auto source,
                cvdp::heavy_source(record, settings_.repo_url, settings_.commit_hash));
    if (!source) return out;
    PROCTOR_TRY(out.tree, heavy_.payload(*source));
    PROCTOR_TRY(const std::string diff, cvdp::heavy_reference(record));
    PROCTOR_CHECK_OK(heavy_.applies(out.tree, diff));  // one that does not would stop the others
    out.harness = false;  // upstream shows it to agents of other records alone
    return out;
  }

  Status leave_out(const cvdp::Record& record, const Error& why) {
    out_.left_out.push_back({record.id.text, record.category, record.difficulty, why.detail});
    std::fprintf(stderr, "%s:%llu: %s: left out: %s\n", options_.file.c_str(),
                 static_cast<unsigned long long>(record.line), record.id.text.c_str(),
                 why.detail.c_str());
    return ok_status();
  }

  Status flush() {
    if (batch_.empty()) return ok_status();
    PROCTOR_TRY(const auto ids, contexts_.add(std::move(stream_)));
    stream_.clear();
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      const auto it = ids.find(i + 1);
      if (it == ids.end())
        return Error{Errc::kCorrupt, "git fast-import made no commit of " + batch_[i].id.text};
      PROCTOR_TRY(const auto files,
                  cvdp::make_contract(batch_[i], kRepository, it->second, settings_));
      PROCTOR_CHECK_OK(remove_tree(folder_ / "contracts" / cvdp::contract_id(batch_[i])));
      for (const cvdp::ContractFile& f : files) {
        const fs::path path = folder_ / "contracts" / f.path;
        PROCTOR_CHECK_OK(make_dirs(path.parent_path()));
        PROCTOR_CHECK_OK(write_file(path, f.bytes, Durability::kLazy, f.mode));
      }
      ++out_.written;
    }
    batch_.clear();
    return ok_status();
  }

  const ImportOptions& options_;
  fs::path folder_;
  ContextRepository contexts_;
  HeavyRepos heavy_;
  HostImages images_;
  cvdp::ImportSettings settings_;
  std::string stream_;
  std::vector<cvdp::Record> batch_;
  std::map<std::string, std::string> ids_;  // contract id -> problem id
  Imported out_;
};

}  // namespace

std::string cvdp_campaign_text(const std::string& name, const ImportOptions& options) {
  return fmt::format(
      "name: {}\nmethods: {}\nreplicates: {}\nbudget: {{global: \"{}.00\", run: \"{}\"}}\n"
      "strata: [category, difficulty, dataset_kind]\n",
      name, options.methods, options.replicates, options.global_usd, options.run_usd);
}

Status take_prices(const fs::path& table, const fs::path& campaign) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  PROCTOR_TRY(const std::string prices, read_file(table, kMostBytes));
  PROCTOR_CHECK_OK(make_dirs(campaign));
  return write_file(campaign / kCostModelFile, prices, Durability::kSync, kOpenFile);
}

Result<Imported> import_problems(const ImportOptions& options) {
  PROCTOR_TRY(const LastLines last, last_lines(options.file, options.selection));
  ImportWork work(options);
  PROCTOR_CHECK_OK(work.open());
  PROCTOR_TRY(
      const cvdp::DatasetSummary summary, read_dataset(options.file, [&](cvdp::Record record) {
        return last.holds(record) && options.selection.holds(record) ? work.add(std::move(record))
                                                                     : ok_status();
      }));
  return work.finish(summary);
}

}  // namespace proctor::cli
