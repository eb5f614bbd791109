#pragma once
// Where a campaign keeps what it makes.  One place for every path, so that no two parts disagree.
#include <string>

#include "common/base/files.h"
#include "common/base/ids.h"

namespace proctor {

struct StateFolder {
  fs::path campaign;

  fs::path plan() const { return campaign / "pilot_randomization_plan.csv"; }
  fs::path registration() const { return campaign / "registration.json"; }
  fs::path state() const { return campaign / ".proctor"; }
  fs::path registered() const { return state() / "registered"; }  // cli/registered_files.h
  fs::path journal() const { return state() / "journal.sqlite"; }
  fs::path status() const { return state() / "status.json"; }
  fs::path control() const { return state() / "control.sock"; }  // control_server.h
  // On the file system of the runs: a finished archive is renamed to its place.
  fs::path incoming() const { return runs() / ".incoming"; }
  fs::path keys() const { return state() / "keys"; }
  fs::path allow_list() const { return keys() / "workers.allow"; }
  fs::path allow_folder() const { return keys() / "allow.d"; }         // allow_files.h
  fs::path worker_root() const { return state() / "workers"; }         // --root of local workers
  fs::path worker_homes() const { return worker_root() / "workers"; }  // one folder for each name
  fs::path worker_log(const std::string& name) const { return state() / "log" / (name + ".log"); }
  fs::path logs() const { return state() / "log"; }
  fs::path runs() const { return campaign / "runs"; }
  // `run_name` is task/method/rN of the plan, whose parts are checked names.
  fs::path run(const std::string& run_name) const { return runs() / run_name; }
  fs::path attempt(const std::string& run_name, AttemptNo no) const {
    return run(run_name) / ("attempt-" + std::to_string(no.raw()));
  }
  fs::path reports() const { return campaign / "reports"; }
  fs::path reports_lock() const { return state() / "reports.lock"; }  // report_digests.h
};

}  // namespace proctor
