#pragma once
// One entry of a campaign's `methods`.  Internal to campaign_parser.cc and bundle.cc.
#include <string>

#include "common/contract/campaign.h"
#include "common/contract/fields.h"
#include "common/contract/file_source.h"

namespace proctor {

// The method as far as it could be read, with its digest if `problems` did not grow.
Method read_method(const Node& node, const std::string& path, const FileSource& files,
                   Problems& problems);

}  // namespace proctor
