#pragma once
// What `proctor check` asks the world: real git and a real Docker Engine behind the contract
// room's OutsideProbe.
#include <memory>
#include <string>
#include <vector>

#include "common/contract/campaign_parser.h"

namespace proctor::cli {

// On a terminal it says after a second how many of the `patches` it has looked at.  Why an image
// could not be asked for is added to `unasked` each time: no engine is there, which is
// no fault of the campaign's.
std::unique_ptr<OutsideProbe> make_outside_probe(std::vector<std::string>& unasked,
                                                 std::size_t patches);

}  // namespace proctor::cli
