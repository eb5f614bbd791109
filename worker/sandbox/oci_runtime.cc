#include "worker/sandbox/oci_runtime.h"

#include <charconv>
#include <utility>

#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/runtime_files.h"

namespace proctor {
namespace {

constexpr std::pair<int, int> kKeeps{1, 15};
constexpr std::string_view kSays = "crun version ";

bool only_version_2() {
  const CgroupLayout layout = cgroups_here();
  return layout.v1.empty() && !layout.v2.mount.empty();
}

Result<fs::path> find_crun() {
  fs::path crun = find_on_path("crun");
  if (crun.empty()) return Error{Errc::kUnavailable, "no crun on PATH"};
  if (!only_version_2())
    return Error{Errc::kUnavailable,
                 "crun wants control groups of version 2 alone, here are others"};
  CommandSpec ask;
  ask.argv = {crun.string(), "--version"};
  PROCTOR_TRY(const std::string said, run_for_output(ask));
  if (crun_keeps(said)) return crun;
  return Error{Errc::kUnavailable, "crun 1.15 or later is needed, this is " +
                                       printable(said.substr(0, said.find('\n')), 60)};
}

Result<fs::path> find_runsc() {
  if (fs::path runsc = find_on_path(kRunsc); !runsc.empty()) return runsc;
  return Error{Errc::kUnavailable, "oci: no runsc on PATH (on Debian: apt-get install runsc)"};
}

}  // namespace

bool crun_keeps(std::string_view version) {
  if (!version.starts_with(kSays)) return false;
  const char* at = version.data() + kSays.size();
  const char* const end = version.data() + version.size();
  std::pair<int, int> v{0, 0};
  const auto major = std::from_chars(at, end, v.first);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return false;
  const auto minor = std::from_chars(major.ptr + 1, end, v.second);
  return minor.ec == std::errc() && kKeeps <= v;
}

Result<fs::path> find_oci_runtime(const std::string& wanted) {
  if (!wanted.empty() && wanted != "runc" && wanted != "crun" && wanted != kRunsc)
    return Error{Errc::kInvalid,
                 "oci runtime " + printable(wanted, 60) + ": expected runc, crun or runsc"};
  if (wanted == kRunsc) return find_runsc();
  if (wanted != "crun") {
    if (fs::path runc = find_on_path("runc"); !runc.empty()) return runc;
    if (wanted == "runc")
      return Error{Errc::kUnavailable, "oci: no runc on PATH (on Debian: apt-get install runc)"};
  }
  auto crun = find_crun();
  if (crun.ok()) return crun;
  if (wanted == "crun") return in_context("oci", std::move(crun).error());
  return Error{Errc::kUnavailable, "oci: no runc on PATH (on Debian: apt-get install runc), and " +
                                       crun.error().detail};
}

}  // namespace proctor
