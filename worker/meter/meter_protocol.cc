#include "worker/meter/meter_protocol.h"

#include <algorithm>

#include "common/base/json.h"
#include "common/base/text.h"

namespace proctor {
namespace {
Error wrong(std::string why) {
  return Error{Errc::kInvalid, std::move(why)};
}

// Takes the fields of one request; the first thing that is wrong is kept.
class Request {
 public:
  explicit Request(const Json& json) : json_(json) {}

  std::string text(const char* key, std::size_t bytes_max = kTextBytes) {
    known_.push_back(key);
    const auto it = json_.find(key);
    if (it == json_.end()) return "";
    if (!it->is_string()) {
      refuse(std::string(key) + ": expected a text");
      return "";
    }
    std::string value = it->get<std::string>();
    const bool clean =
        std::ranges::all_of(value, [](unsigned char c) { return 0x20 <= c && c != 0x7F; });
    if (value.empty() || bytes_max < value.size() || !clean)
      refuse(std::string(key) + ": expected 1 to " + std::to_string(bytes_max) +
             " bytes on one line");
    return value;
  }
  std::uint64_t count(const char* key) {
    known_.push_back(key);
    const auto it = json_.find(key);
    if (it == json_.end()) return 0;
    if (it->is_number_unsigned() && it->get<std::uint64_t>() <= kUsageCountMax)
      return it->get<std::uint64_t>();
    refuse(std::string(key) + ": expected a whole number from 0 to " +
           std::to_string(kUsageCountMax));
    return 0;
  }
  bool flag(const char* key) {
    known_.push_back(key);
    const auto it = json_.find(key);
    if (it == json_.end()) return false;
    if (!it->is_boolean()) refuse(std::string(key) + ": expected true or false");
    return it->is_boolean() && it->get<bool>();
  }
  void require(bool holds, const char* why) {
    if (!holds) refuse(why);
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
  void refuse(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }
  const Json& json_;
  std::vector<std::string> known_;
  std::string error_;
};

Amount read_amount(Request& r) {
  Amount a;
  a.input_tokens = r.count("input_tokens");
  a.output_tokens = r.count("output_tokens");
  a.units = r.count("quantity");
  a.ms = r.count("ms");
  return a;
}

std::string line_of(const Json& json) {
  return json.dump(-1, Json::Utf8::kReplace, true) + "\n";
}

Json with_id(const std::string& id) {
  Json out = Json::object();
  if (!id.empty()) out["id"] = id;
  return out;
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
  const std::string op = r.text("op");
  out.run = r.text("run");
  if (op == "status") {
    out.operation = MeterStatus{};
    PROCTOR_CHECK_OK(r.finish());
    return out;
  }
  out.id = r.text("id", kMeterIdBytes);
  if (op == "reserve") {
    MeterReserve m;
    m.id = out.id;
    m.action = {r.text("action"), r.text("provider"), r.text("model"), r.text("unit")};
    m.most = read_amount(r);
    r.require(!m.action.type.empty(), "action: expected the name of one");
    out.operation = std::move(m);
  } else if (op == "charge") {
    MeterCharge m;
    m.id = out.id;
    m.actual = read_amount(r);
    m.actual.failed = r.flag("failed");
    out.operation = std::move(m);
  } else if (op == "release") {
    out.operation = MeterRelease{out.id};
  } else {
    return wrong("op: expected reserve, charge, release or status");
  }
  r.require(!out.id.empty(), "id: expected one of your own for each reservation");
  PROCTOR_CHECK_OK(r.finish());
  return out;
}

std::string meter_line(const std::string& id, const MeterAnswer& answer) {
  Json out = with_id(id);
  std::visit(Overload{[&](const MeterGranted& a) {
                        out["answer"] = "granted";
                        out["usd"] = format_usd_exact(a.held);
                        if (a.defaulted) out["default_price"] = true;
                      },
                      [&](const MeterDenied& a) {
                        out["answer"] = "denied";
                        out["cap"] = a.cap;
                        out["short_by"] = a.short_by;
                        out["final"] = a.final;
                        out["reason"] = printable(a.reason, 1000);
                        if (0 < a.retry_after_ms) out["retry_after_ms"] = a.retry_after_ms;
                      },
                      [&](const MeterCharged& a) {
                        out["answer"] = "charged";
                        out["usd"] = format_usd_exact(a.charged);
                        if (a.overrun) out["overrun"] = true;
                      },
                      [&](const MeterReleased&) { out["answer"] = "released"; }},
             answer);
  return line_of(out);
}

std::string meter_error_line(const std::string& id, std::string_view reason) {
  Json out = with_id(id);
  out["answer"] = "error";
  out["reason"] = printable(reason, 1000);
  return line_of(out);
}

std::string meter_status_line(const RunMeter& meter) {
  Json out = {{"answer", "status"}, {"stopped", meter.stop().has_value()}};
  if (meter.stop()) out["reason"] = meter.stop()->reason;
  out["usd"] = {{"limit", format_usd_exact(meter.limit())},
                {"spent", format_usd_exact(meter.spent())},
                {"held", format_usd_exact(meter.held())},
                {"headroom", format_usd_exact(meter.headroom())},
                {"free", format_usd_exact(meter.free())}};
  for (const Cap cap : kCaps) {
    if (cap == Cap::kUsd || cap == Cap::kCallsPerMinute) continue;
    const auto limit = cap_value(meter.caps(), cap);
    if (!limit) continue;
    out["caps"][std::string(to_string(cap))] = {
        {"limit", *limit}, {"used", meter.used(cap)}, {"held", meter.held(cap)}};
  }
  return line_of(out);
}

std::string meter_stop_line(const MeterStop& stop, Millis grace) {
  return line_of({{"event", "stop"},
                  {"cap", stop.cap},
                  {"reason", printable(stop.reason, 1000)},
                  {"grace_ms", grace.count()}});
}
}  // namespace proctor
