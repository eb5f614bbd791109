#pragma once
// A dataset as campaigns: images, repository, import, and the parts of a prefix.
// Private to the program.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/fields.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "coordinator/cli/command.h"
#include "coordinator/cvdp/dataset/import.h"
#include "coordinator/cvdp/run/dataset_file.h"

namespace proctor::cli {
// The images that harnesses name, as this host has them: by digest, out of the image store or the
// Docker Engine, never pulled.  Those that a harness builds are built once and found by what they
// are made of; a week after their last building they go.  One object, one thread.
// Fails with kInvalid (the harness's fault: the problem is left out) where an image is not here.
class HostImages {
 public:
  // `network`: whether commands of a Dockerfile may use one.
  explicit HostImages(bool network) : network_(network) {}
  Result<std::string> id_of(const std::string& name);
  Result<std::string> build(const cvdp::BuildContext& context);

 private:
  Result<std::string> look_for(const std::string& name) const;
  Result<std::string> make(const cvdp::BuildContext& context, const std::string& digest) const;

  bool network_;
  std::map<std::string, Result<std::string>> known_, built_;
};

// The bare repository of a campaign that CVDP's commands make: commits by git's fast-import, no
// work tree.
Status open_contexts(const fs::path& repository);
// Adds what a fast-import stream says; the commits' ids, by its marks.
Result<std::map<std::uint64_t, std::string>> add_contexts(const fs::path& repository,
                                                          std::string stream);

// A dataset as a campaign: contracts, contexts and a campaign.yaml in a folder.

struct ImportOptions {
  std::string file;
  std::string campaign;
  Selection selection;
  cvdp::ImportSettings settings;
  // For a campaign.yaml that is not there yet.
  std::string methods = "[noop, reference]";
  std::uint32_t replicates = 1;
  bool include_golden = false, include_harness = false;  // an agent sees them too
  std::uint64_t global_usd = 1000;
  std::string run_usd = "1.00";
};
struct Imported {
  std::size_t written = 0;  // contracts
  struct LeftOut {
    std::string id, category, difficulty, why;
    std::optional<bool> needs_compose{};  // docker compose can run it; an older marker lacks it
  };
  std::vector<LeftOut> left_out;  // told on standard error too
  std::uint64_t errors = 0;       // records that are none
};
void fields(auto& v, Is<Imported::LeftOut> auto& l) {
  v("id", l.id);
  v("category", l.category);
  v("difficulty", l.difficulty);
  v("why", l.why);
  v("needs_compose", l.needs_compose, kOptional);
}
// By the member, or by the words of an older marker.
bool needs_compose(const Imported::LeftOut& left);
// campaign.yaml of a dataset, or of the answers that a judge is asked about.
std::string cvdp_campaign_text(const std::string& name, const ImportOptions& options);
// Into CAMPAIGN/contracts.
Status write_contract(const std::vector<cvdp::ContractFile>& files, const fs::path& campaign);
// The price table of a campaign, from a file of somebody's.
Status take_prices(const fs::path& table, const fs::path& campaign);
// kConflict: the campaign is frozen.
Result<Imported> import_problems(const ImportOptions& options);

// The questions that a prefix was asked so far.  They grow: another --id, the rest of a dataset and
// further samples are parts of their own, each a campaign, because the tasks of a frozen one cannot
// change.
//   PREFIX/cvdp.json     the question that all parts share, and the parts
//   PREFIX/campaign      the first part; PREFIX/campaign-2, ... the others
// Source: CVDP 2.1 (-i), 9.1, 9.4.

struct CvdpPart {
  std::string campaign = "campaign";  // below the prefix
  std::uint32_t from = 1, to = 1;     // its samples: run 1 of a problem is sample `from`
  Selection selection;
  std::size_t contracts = 0;
  std::vector<Imported::LeftOut> left_out;
  // Folders below the prefix in which upstream's files of its problems lie.
  std::vector<std::string> prepared;

  // "judging", "judging-2", ...: where its answers are judged.
  std::string judging() const;
};
void fields(auto& v, Is<CvdpPart> auto& part) {
  v("campaign", part.campaign);
  v("from", part.from);
  v("to", part.to);
  v("filter", part.selection.filter);
  v("ids", part.selection.ids);
  v("contracts", part.contracts);
  v("left_out", part.left_out);
  v("prepared", part.prepared);
}

struct CvdpAsked {
  Json question;  // without samples and selection
  std::vector<CvdpPart> parts;
};
void fields(auto& v, Is<CvdpAsked> auto& asked) {
  v("question", asked.question);
  v("parts", asked.parts);
}
// kNotFound: nothing was asked of this prefix.
Result<CvdpAsked> read_asked(const fs::path& prefix);
Status write_asked(const fs::path& prefix, const CvdpAsked& asked);

struct CvdpDemand {
  std::vector<CvdpPart> missing;  // what is to be imported
  std::vector<bool> touched;      // of the parts there are: does this demand speak of it?
  std::uint64_t broken = 0;       // records of the file that are none, and are in no count
};
// The demand that `parts` leave open until each problem of `file` that the selection holds has
// samples 1 to `samples`.  It does not ask again for what a part has.
Result<CvdpDemand> demand_of(const std::string& file, const std::vector<CvdpPart>& parts,
                             const Selection& selection, std::uint32_t samples);
}  // namespace proctor::cli
