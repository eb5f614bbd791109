#pragma once
// PhaseNetwork: what one phase of an attempt may reach (R049, R074, R098), given to its sandbox,
// and what it asked for, in the trace (R099-R102):
//   network.request       one that was allowed, with its bytes
//   monitor.alert         one that was not: code network_denied or network_malformed
//   monitor.intervention  what was done about it, with the alert's seq
//   network.closed        the sums, and by place what is not listed one by one
// `note` is called on the proxy's threads as well as on the caller's, never on two at once, and not
// after close().
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/contract/contract.h"
#include "common/trace/payloads.h"
#include "worker/network/way_out.h"

namespace proctor {
inline constexpr std::size_t kListedRequests = 200;  // of a phase, one event or two each
inline constexpr std::size_t kListedPlaces = 200;    // of the rest

class PhaseNetwork {
 public:
  using Note = std::function<std::uint64_t(std::string_view type, Actor actor, const Json&)>;
  // `dir`: an empty folder for a filtered one.  kUnavailable: the proxy cannot be had.
  static Result<std::unique_ptr<PhaseNetwork>> give(SandboxSpec& spec, const NetworkAccess& access,
                                                    std::string phase, const fs::path& dir,
                                                    Note note);
  PhaseNetwork(const PhaseNetwork&) = delete;
  PhaseNetwork& operator=(const PhaseNetwork&) = delete;
  ~PhaseNetwork() { close(); }

  // Cuts off what is left and notes the sums, once.  The places that were denied.
  std::vector<std::string> close();
  // Anything was asked of it, granted or not.  Requires: it is closed.
  bool was_used() const { return !sums_.empty(); }

 private:
  PhaseNetwork(std::string phase, Note note) : phase_(std::move(phase)), note_(std::move(note)) {}
  void on_record(const ProxyRecord& record);

  std::string phase_;
  Note note_;
  std::size_t listed_ = 0;
  std::map<std::string, events::Traffic> sums_;                              // by verdict
  std::map<std::string, std::uint64_t> denied_;                              // by place
  std::map<std::pair<std::string, std::string>, events::Traffic> unlisted_;  // by place and verdict
  std::uint64_t beyond_ = 0;         // requests to places that are not even in these
  std::unique_ptr<WayOut> way_out_;  // last: its threads use the others
};
}  // namespace proctor
