#pragma once
// The `services` of a contract, read, and what must hold between them and the rest of it.
// Internal to contract_parser.cc; errors go to the Problems behind the node.
#include <vector>

#include "common/contract/contract.h"
#include "common/contract/fields.h"
#include "common/contract/rules.h"

namespace proctor {

std::vector<Service> read_services(const Fields& contract, FileCollector& files);
// Names that nobody has, circles, sandboxes that cannot share a network, networks that cannot be
// shared.  Requires: all of `c` but its files and digest has been read.
void check_services(const Fields& contract, const Contract& c);

}  // namespace proctor
