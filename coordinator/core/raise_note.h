#pragma once
// How a raised envelope stands in the notes: JSON with sorted keys.  Pure.
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "coordinator/core/records.h"

namespace proctor {

// Requires: reason and name are UTF-8.
Note note_of(const BudgetRaised& raise);
// kCorrupt names the field.
Result<BudgetRaised> raise_of(std::string_view detail, WallTime at);
// What it changes.  kCorrupt: it does not follow from the cap before it; nothing has changed then.
Status raise_cap(std::vector<ScopeSpec>& scopes, const BudgetRaised& raise);

}  // namespace proctor
