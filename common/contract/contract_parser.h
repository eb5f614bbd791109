#pragma once
// From contracts/NAME.yaml to a Contract (docs of the format: schemas/contract.schema.json).
// Reports every error it finds and never stops at the first.  The same function reads what arrives
// in a bundle, so that a worker refuses what an operator's check refuses.
// load_contract reads the contract's folder and nothing else; parse_contract is pure.
#include <filesystem>
#include <optional>
#include <string>

#include "common/contract/contract.h"
#include "common/contract/document.h"
#include "common/contract/file_source.h"

namespace proctor {
// The contract as far as it could be read; it is whole, and has its digest, only if `out` did not
// grow.  Files are read from `files`.
Contract parse_contract(const Document& document, const FileSource& files, Diagnostics& out);

// `shown` is the file's name in diagnostics.  nullopt when not even a tree could be read.
std::optional<Contract> load_contract(const std::filesystem::path& file, const std::string& shown,
                                      Diagnostics& out);
}  // namespace proctor
