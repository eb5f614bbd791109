#include "worker/shell/phase_network.h"

#include <utility>

#include "worker/shell/run_events.h"

namespace proctor {
namespace {
std::string place_of(const ProxyRecord& record) {
  if (record.host.empty()) return "";
  return record.host + ":" + std::to_string(record.port);
}

Json request_json(const std::string& phase, const ProxyRecord& r) {
  return events::kNetworkRequest.json({phase, r.method, r.host, r.port,
                                       std::string(to_string(r.verdict)), r.address, r.sent,
                                       r.received, r.wall, r.why});
}
}  // namespace

Result<std::unique_ptr<PhaseNetwork>> PhaseNetwork::give(SandboxSpec& spec,
                                                         const NetworkAccess& access,
                                                         std::string phase, const fs::path& dir,
                                                         Note note) {
  std::unique_ptr<PhaseNetwork> out(new PhaseNetwork(std::move(phase), std::move(note)));
  spec.network = access.open;
  if (!access.filtered()) return out;
  FilterProxy::Options options;
  options.allow = access.allow;
  if (spec.hold) options.now = [hold = spec.hold] { return hold->now(); };
  PROCTOR_TRY(out->way_out_, WayOut::open(dir, std::move(options),
                                          [o = out.get()](const auto& r) { o->on_record(r); }));
  out->way_out_->give_to(spec);
  return out;
}

void PhaseNetwork::on_record(const ProxyRecord& record) {
  using Judged = ProxyRecord::Verdict;
  const auto add = [&record](events::Traffic& sum) {
    ++sum.requests;
    sum.sent += record.sent;
    sum.received += record.received;
  };
  const std::string verdict(to_string(record.verdict));
  const std::string place = place_of(record);
  add(sums_[verdict]);
  if (record.verdict == Judged::kDenied && !place.empty() &&
      (denied_.contains(place) || denied_.size() < kListedPlaces))
    ++denied_[place];
  if (kListedRequests <= listed_) {
    const auto key = std::pair(place, verdict);
    if (unlisted_.contains(key) || unlisted_.size() < kListedPlaces)
      add(unlisted_[key]);
    else
      ++beyond_;
    return;
  }
  ++listed_;
  using events::kAlert, events::kIntervention, events::kNetworkRequest;
  const Json request = request_json(phase_, record);
  if (record.verdict != Judged::kDenied && record.verdict != Judged::kMalformed) {
    note_(kNetworkRequest.type, kNetworkRequest.actor, request);
    return;
  }
  const char* code = record.verdict == Judged::kDenied ? "network_denied" : "network_malformed";
  const std::uint64_t alert =
      note_(kAlert.type, Actor::kMonitor, kAlert.json(code, request, phase_, std::nullopt));
  note_(kIntervention.type, Actor::kMonitor,
        kIntervention.json("request_refused", alert, std::nullopt, phase_));
}

std::vector<std::string> PhaseNetwork::close() {
  std::vector<std::string> denied;
  if (!way_out_) return denied;
  way_out_.reset();
  std::vector<events::UnlistedPlace> rest;
  for (const auto& [key, sum] : unlisted_) rest.push_back({key.first, key.second, sum});
  note_(events::kNetworkClosed.type, events::kNetworkClosed.actor,
        events::kNetworkClosed.json(phase_, sums_, rest, beyond_));
  for (const auto& [place, times] : denied_)
    denied.push_back(place + " (" + std::to_string(times) + (times == 1 ? " time)" : " times)"));
  return denied;
}
}  // namespace proctor
