#pragma once
// Where a campaign keeps what it makes.  One place for every path, so that no two parts disagree.
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/ids.h"

namespace proctor {
// Something is there, or a folder is; not where that cannot be told.
inline bool is_there(const fs::path& path) {
  std::error_code ec;
  return fs::exists(path, ec);
}
inline bool is_folder(const fs::path& path) {
  std::error_code ec;
  return fs::is_directory(path, ec);
}
// Everything that lies in a folder, in any order, as far as it can be read.
inline std::vector<fs::path> paths_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    out.push_back(it->path());
  return out;
}

struct StateFolder {
  fs::path campaign;
  // Where trials lie below their campaign: ".proctor/try/TASK/METHOD".  Their workers share that
  // campaign's root, and with it mirrors, trees and kept setups, under names of their own, by which
  // homes and workspaces are told apart.  Empty: no trials.
  fs::path inside{};
  static StateFolder trials(const fs::path& campaign, const fs::path& inside) {
    return {campaign / inside, inside};
  }

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
  fs::path allow_folder() const { return keys() / "allow.d"; }  // worker_files.h
  fs::path worker_root() const {                                // --root of local workers
    fs::path owner = campaign;
    for (auto part = inside.begin(); part != inside.end(); ++part) owner = owner.parent_path();
    return StateFolder{owner}.state() / "workers";
  }
  // Names of local workers, but for their number.
  std::string worker_prefix() const {
    return inside.empty() ? "local-" : "trial-" + sha256(inside.string()).short_hex() + "-";
  }
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
  fs::path reports_lock() const { return state() / "reports.lock"; }  // cli/report.h
};
}  // namespace proctor
