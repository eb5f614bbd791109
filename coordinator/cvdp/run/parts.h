#pragma once
// What a prefix has been asked so far.  It grows: another --id, the rest of a dataset and further
// samples are parts of their own, each a campaign, because the tasks of a frozen one cannot change.
//   PREFIX/cvdp.json     the question that all parts share, and the parts
//   PREFIX/campaign      the first part; PREFIX/campaign-2, ... the others
// Private to the program.  Source: CVDP 2.1 (-i), 9.1, 9.4.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/json.h"
#include "coordinator/cvdp/run/campaign.h"

namespace proctor::cli {

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

struct CvdpAsked {
  Json question;  // without samples and selection
  std::vector<CvdpPart> parts;
};
// kNotFound: nothing was asked of this prefix.
Result<CvdpAsked> read_asked(const fs::path& prefix);
Status write_asked(const fs::path& prefix, const CvdpAsked& asked);

struct CvdpDemand {
  std::vector<CvdpPart> missing;  // what is to be imported
  std::vector<bool> touched;      // of the parts there are: does this demand speak of it?
  std::uint64_t broken = 0;       // records of the file that are none, and are in no count
};
// What `parts` lack until each problem of `file` that the selection holds has samples 1 to
// `samples`.  Nothing that a part has is asked for again.
Result<CvdpDemand> demand_of(const std::string& file, const std::vector<CvdpPart>& parts,
                             const Selection& selection, std::uint32_t samples);

}  // namespace proctor::cli
