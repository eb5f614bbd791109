#pragma once
// One method's rate as a record of Every Eval Ever, with its runs as instances (docs/forms.md).
// Invalid runs are no instances, as they are in no rate; how many there were is in the record.
#include <optional>
#include <string>

#include "coordinator/forms/export_facts.h"

namespace proctor {

struct EveryEvalFiles {
  std::string record_path, samples_path;  // below the folder of the export
  std::string record, samples;
};
// Nothing: it has no rate, and a record without one is none.
std::optional<EveryEvalFiles> every_eval(const ExportedMethod& method);

}  // namespace proctor
