#include "worker/meter/meter_protocol.h"

#include <algorithm>
#include <map>

#include "common/base/json_fields.h"
#include "common/base/text.h"

namespace proctor {
namespace {
Error wrong(std::string why) {
  return Error{Errc::kInvalid, std::move(why)};
}

// Takes the members of one request; the first thing that is wrong is kept.
class Request {
 public:
  explicit Request(const Json& json) : json_(json) {}

  void operator()(const char* key, std::string& out, const Rule& rule = {}) {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_string()) return refuse(std::string(key) + ": expected a text");
    out = value->string();
    const std::size_t most = std::min(rule.bytes, kTextBytes);
    const bool clean =
        std::ranges::all_of(out, [](unsigned char c) { return 0x20 <= c && c != 0x7F; });
    require(!out.empty() && out.size() <= most && clean,
            std::string(key) + ": expected 1 to " + std::to_string(most) + " bytes on one line");
  }
  void operator()(const char* key, std::uint64_t& out) {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_number_unsigned() || kUsageCountMax < value->get<std::uint64_t>())
      return refuse(std::string(key) + ": expected a whole number from 0 to " +
                    std::to_string(kUsageCountMax));
    out = value->get<std::uint64_t>();
  }
  void operator()(const char* key, bool& out) {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return refuse(std::string(key) + ": expected true or false");
    out = value->boolean();
  }
  void require(bool holds, std::string why) {
    if (!holds) refuse(std::move(why));
  }
  // Misspelt keys would be counted as nothing.
  Status finish() {
    for (const auto& [key, value] : json_.items())
      if (std::ranges::find(known_, key) == known_.end())
        refuse("\"" + printable(key, 100) + "\": an unknown key here");
    if (!error_.empty()) return wrong(error_);
    return ok_status();
  }

 private:
  static constexpr std::size_t kTextBytes = 300;
  const Json* find(const char* key) {
    known_.push_back(key);
    const auto it = json_.find(key);
    return it == json_.end() ? nullptr : &*it;
  }
  void refuse(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }
  const Json& json_;
  std::vector<std::string> known_;
  std::string error_;
};

std::string line_of(JsonWriter&& v) {
  return v.take().dump(-1, Json::Utf8::kReplace, true) + "\n";
}

JsonWriter answer_of(const std::string& id, std::string_view answer) {
  JsonWriter v;
  v("id", id, kOptional);
  v("answer", answer);
  return v;
}
}  // namespace

Result<MeterRequest> parse_meter_request(std::string_view line) {
  if (kMeterLineBytes < line.size())
    return wrong("a line longer than " + std::to_string(kMeterLineBytes) + " bytes");
  Result<Json> json = parse_json(line, {kMeterLineBytes, 4});
  if (!json.ok()) return wrong("not JSON: " + json.error().detail);
  if (!json->is_object()) return wrong("expected an object");
  Request r(*json);
  MeterRequest out;
  const auto& [reserve, charge, release, status] = kMeterOps;
  std::string op;
  r("op", op);
  r("run", out.run);
  if (op == status) {
    out.operation = MeterStatus{};
    PROCTOR_CHECK_OK(r.finish());
    return out;
  }
  r("id", out.id, {.bytes = kMeterIdBytes});
  if (op == reserve) {
    MeterReserve m{out.id, {}, {}};
    action_fields(r, m.action);
    amount_fields(r, m.most);
    r.require(!m.action.type.empty(), "action: expected the name of one");
    out.operation = std::move(m);
  } else if (op == charge) {
    MeterCharge m{out.id, {}};
    amount_fields(r, m.actual);
    r("failed", m.actual.failed);
    out.operation = std::move(m);
  } else if (op == release) {
    out.operation = MeterRelease{out.id};
  } else {
    return wrong("op: expected reserve, charge, release or status");
  }
  r.require(!out.id.empty(), "id: expected one of your own for each reservation");
  PROCTOR_CHECK_OK(r.finish());
  return out;
}

std::string meter_line(const std::string& id, const MeterAnswer& answer) {
  constexpr std::array<std::string_view, 4> kAnswers{"granted", "denied", "charged", "released"};
  static_assert(
      std::is_same_v<MeterAnswer,
                     std::variant<MeterGranted, MeterDenied, MeterCharged, MeterReleased>>,
      "kAnswers is by place");
  JsonWriter v = answer_of(id, kAnswers.at(answer.index()));
  std::visit(Overload{[&](const MeterGranted& a) {
                        v("usd", format_usd_exact(a.held));
                        v("default_price", a.defaulted, kOptional);
                      },
                      [&](const MeterDenied& a) {
                        v("cap", a.cap);
                        v("short_by", a.short_by);
                        v("final", a.final);
                        v("reason", printable(a.reason, 1000));
                        v("retry_after_ms", a.retry_after_ms, kOptional);
                      },
                      [&](const MeterCharged& a) {
                        v("usd", format_usd_exact(a.charged));
                        v("overrun", a.overrun, kOptional);
                      },
                      [](const MeterReleased&) {}},
             answer);
  return line_of(std::move(v));
}

std::string meter_error_line(const std::string& id, std::string_view reason) {
  JsonWriter v = answer_of(id, "error");
  v("reason", printable(reason, 1000));
  return line_of(std::move(v));
}

std::string meter_status_line(const RunMeter& meter) {
  JsonWriter v = answer_of("", kMeterOps.back());
  v("stopped", meter.stop().has_value());
  if (meter.stop()) v("reason", meter.stop()->reason);
  v.section("usd", [&](JsonWriter& usd) {
    usd("limit", format_usd_exact(meter.limit()));
    usd("spent", format_usd_exact(meter.spent()));
    usd("held", format_usd_exact(meter.held()));
    usd("headroom", format_usd_exact(meter.headroom()));
    usd("free", format_usd_exact(meter.free()));
  });
  std::map<std::string_view, Json> caps;
  for (const Cap cap : kCaps) {
    if (cap == Cap::kUsd || cap == Cap::kCallsPerMinute) continue;
    const auto limit = cap_value(meter.caps(), cap);
    if (!limit) continue;
    JsonWriter one;
    one("limit", *limit);
    one("used", meter.used(cap));
    one("held", meter.held(cap));
    caps.emplace(to_string(cap), one.take());
  }
  v("caps", caps, kOptional);
  return line_of(std::move(v));
}

std::string meter_stop_line(const MeterStop& stop, Millis grace) {
  JsonWriter v;
  v("event", "stop");
  v("cap", stop.cap);
  v("reason", printable(stop.reason, 1000));
  v("grace_ms", grace);
  return line_of(std::move(v));
}
}  // namespace proctor
