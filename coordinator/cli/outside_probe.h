#pragma once
// What `proctor check` asks the world: real git and a real Docker Engine behind the contract
// room's OutsideProbe.
#include <memory>

#include "common/contract/campaign_parser.h"

namespace proctor::cli {

std::unique_ptr<OutsideProbe> make_outside_probe();

}  // namespace proctor::cli
