#pragma once
// Runs as logs of other projects: inspect_ai and Every Eval Ever.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
// What an export of runs needs beside the report, as its caller found it.  Pure data.
struct ExportFacts {
  struct OfMethod {
    std::string name, kind;        // "command"
    std::string developer, model;  // of the model it asks; empty: nobody says
  };
  std::string name;          // the campaign's own, without a digest
  std::string registration;  // digest of what was promised
  std::string plan;          // digest of the run order
  std::string tool_version;
  std::int64_t registered_ms = 0;
  std::uint32_t replicates = 1;
  std::vector<OfMethod> methods;
  std::map<std::string, std::string> briefings;  // by task: what an agent was told
  std::map<std::string, std::int64_t> caps;      // of a run, as a registration has them
  // What the agent of this run changed, as a patch; empty: nothing, or it is not there any more.
  std::function<std::string(const RunRecord&)> patch;
};

// What one method's export is made of: its ended runs, in the plan's order.
struct ExportedMethod {
  const ExportFacts& facts;
  const CampaignReport& report;
  const ExportFacts::OfMethod& method;
  std::vector<const RunRecord*> runs;
  // Of all of them: earliest start and latest end; the time of registration where none is known.
  std::int64_t started_ms = 0, ended_ms = 0;
};
ExportedMethod exported(const ExportFacts& facts, const CampaignReport& report,
                        const ExportFacts::OfMethod& method);

// One method's rate as a record of Every Eval Ever, with its runs as instances (docs/forms.md).
// Invalid runs are no instances, as they are in no rate; how many there were is in the record.
struct EveryEvalFiles {
  std::string record_path, samples_path;  // below the folder of the export
  std::string record, samples;
};
// Nothing: it has no rate, and a record without one is none.
std::optional<EveryEvalFiles> every_eval(const ExportedMethod& method);

// One method's runs as a log that Inspect's viewer, data frames and scorers read (docs/forms.md):
// a sample is a task, an epoch a run of it.  Parked and open runs are not in it.  What acceptance
// could not judge, and what is invalid, is kept and unscored, never a 0.

// "2026-11-23T10-00-00-00-00_pilot-my-agent_12ab34cd56ef.eval"
std::string inspect_log_name(const ExportedMethod& method);
Status write_inspect_log(const ExportedMethod& method, const fs::path& path);
}  // namespace proctor
