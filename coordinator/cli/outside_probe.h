#pragma once
// What `proctor check` asks the world: real git and a real Docker Engine behind the contract
// room's OutsideProbe.
#include <memory>

#include "common/contract/campaign_parser.h"

namespace proctor::cli {

// Why an image could not be asked for is added to `unasked` each time: no engine is there, which is
// no fault of the campaign's.
std::unique_ptr<OutsideProbe> make_outside_probe(std::vector<std::string>& unasked);

}  // namespace proctor::cli
