#include "worker/shell/phase_network.h"

#include <utility>

#include "worker/shell/run_events.h"

namespace proctor {
namespace {
std::string place_of(const ProxyRecord& record) {
  if (record.host.empty()) return "";
  return record.host + ":" + std::to_string(record.port);
}

Json request_payload(const std::string& phase, const ProxyRecord& record) {
  Json out = {{"phase", phase},
              {"method", as_utf8(record.method)},
              {"host", as_utf8(record.host)},
              {"port", record.port},
              {"verdict", to_string(record.verdict)},
              {"address", record.address},
              {"sent", record.sent},
              {"received", record.received},
              {"wall_ms", record.wall.count()}};
  if (!record.why.empty()) out["why"] = as_utf8(record.why);
  return out;
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
  const auto add = [&record](Sum& sum) {
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
  const bool stopped = record.verdict == Judged::kDenied || record.verdict == Judged::kMalformed;
  if (!stopped) {
    note_("network.request", Actor::kAgent, request_payload(phase_, record));
    return;
  }
  const char* code = record.verdict == Judged::kDenied ? "network_denied" : "network_malformed";
  const std::uint64_t alert =
      note_("monitor.alert", Actor::kMonitor,
            Json{{"code", code}, {"stage", phase_}, {"signals", request_payload(phase_, record)}});
  note_("monitor.intervention", Actor::kMonitor,
        Json{{"action", "request_refused"}, {"alert", alert}, {"stage", phase_}});
}

Json PhaseNetwork::closed_payload() const {
  const auto of = [](const Sum& s) {
    return Json{{"requests", s.requests}, {"sent", s.sent}, {"received", s.received}};
  };
  Json sums = Json::object(), rest = Json::array();
  for (const auto& [verdict, sum] : sums_) sums[verdict] = of(sum);
  for (const auto& [key, sum] : unlisted_) {
    Json row = of(sum);
    row["place"] = as_utf8(key.first);
    row["verdict"] = key.second;
    rest.push_back(std::move(row));
  }
  return {{"phase", phase_}, {"sums", sums}, {"not_listed", rest}, {"beyond", beyond_}};
}

std::vector<std::string> PhaseNetwork::close() {
  std::vector<std::string> denied;
  if (!way_out_) return denied;
  way_out_.reset();
  note_("network.closed", Actor::kHarness, closed_payload());
  for (const auto& [place, times] : denied_)
    denied.push_back(place + " (" + std::to_string(times) + (times == 1 ? " time)" : " times)"));
  return denied;
}
}  // namespace proctor
