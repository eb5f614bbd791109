#pragma once
// What the ledger's scripts read and answer (ledger.lua, rebuild.lua): a batch as MessagePack, rows
// and envelopes as text, one line an answer.  Pure; any thread.  Bytes from Redis are hostile until
// parsed: kCorrupt with what was found.
//
// Source: MONEY 1-7; msgpack.org (str, array, float 64).
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/ledger/ledger.h"
#include "common/ledger/shared_book.h"

namespace proctor {

// Whole micro-dollars in decimal, as stored.
std::string micros(MicroUsd m);

// "0,1,7": the scopes of a reservation, as stored.
std::string scope_list(const std::vector<ScopeId>& scopes);

// The batch as ledger.lua's third argument.
std::string packed(const std::vector<LedgerOp>& batch);

// Decimal, 0 to kLedgerMax, nothing around it; false: anything else.
bool read_number(std::string_view text, std::int64_t* out);

// One line of ledger.lua's answer to `op`.  What the ledger refuses is an Error inside the answer.
Result<LedgerAnswer> read_answer(const LedgerOp& op, std::string_view line);

// "cap spent reserved" of an envelope.
Result<ScopeBalance> read_balance(std::string_view text);

// "o held returns": the first line of a batch that touched a shared envelope.
Result<Elsewhere> read_elsewhere(std::string_view line);

// The hash of a shared envelope (shared.lua), sorted by field.  Empty: there is none.
Result<SharedView> read_shared(const std::vector<std::pair<std::string, std::string>>& fields);

// kCorrupt: Redis answered what our scripts never do.
Error bad_reply(std::string_view what);

}  // namespace proctor
