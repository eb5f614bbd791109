// The picture: one line per row of the table, a bar for the success rate and a whisker for its
// interval, groups by stratum.  Plain SVG 1.1, no script, no font file, readable without colour.
#include <algorithm>

#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/aggregate/svg.h"

namespace proctor {
namespace {

using namespace aggregate;

constexpr int kLeft = 16;
constexpr int kBarsAt = 300;  // where 0 % is
constexpr int kScale = 400;   // pixels of 100 %
constexpr int kTextAt = kBarsAt + kScale + 16;
constexpr int kWidth = kTextAt + 220;
constexpr int kLine = 22;
constexpr int kTop = 86;
constexpr std::size_t kLabelBytes = 36;
constexpr std::size_t kRowsMax = 500;  // more is no picture any more; the table has them all

int pixel(double rate) {
  return kBarsAt + static_cast<int>(rate * kScale + 0.5);
}

void append_row(std::string& out, const ReportRow& row, int y) {
  const int middle = y - 5;
  const char* style = row.is_control ? "quiet" : "number";
  out += text(kLeft + 16, y, row.is_control ? style : "label", escaped(row.method, kLabelBytes));
  const auto& share = row.success_rate;
  if (!share.rate) {
    out += text(kBarsAt + 6, y, "quiet", "no scorable run");
    return;
  }
  out += text(kTextAt, y, style,
              percent_with_interval(share.rate, share.interval) + "  " + std::to_string(share.x) +
                  "/" + std::to_string(share.n));
  if (row.is_control) return;  // context: it has no bar
  out += "<rect x=\"" + std::to_string(kBarsAt) + "\" y=\"" + std::to_string(middle - 7) +
         "\" width=\"" + std::to_string(pixel(*share.rate) - kBarsAt) +
         "\" height=\"14\" class=\"bar\"/>\n";
  if (share.interval) {
    const int low = pixel(share.interval->low), high = pixel(share.interval->high);
    out += line(low, middle, high, middle, "whisker");
    out += line(low, middle - 5, low, middle + 5, "whisker");
    out += line(high, middle - 5, high, middle + 5, "whisker");
  }
}

}  // namespace

std::string render_svg(const CampaignReport& report) {
  std::string body;
  int y = kTop;
  std::string group = "\n";  // no stratum has this name
  const std::size_t shown = std::min(report.rows.size(), kRowsMax);
  for (std::size_t i = 0; i < shown; ++i) {
    const ReportRow& row = report.rows[i];
    const std::string name = row.key.empty() ? "all tasks" : stratum_name(row);
    if (name != group) {
      if (i != 0) y += 10;
      body += text(kLeft, y, "group", escaped(name, kLabelBytes));
      y += kLine;
      group = name;
    }
    append_row(body, row, y);
    y += kLine;
  }
  if (shown < report.rows.size()) {
    body += text(kLeft, y, "quiet",
                 std::to_string(report.rows.size() - shown) + " more rows: see the table");
    y += kLine;
  }
  std::string grid;
  for (int p = 0; p <= 100; p += 25) {
    const int x = kBarsAt + kScale * p / 100;
    grid += line(x, kTop - 20, x, y - 10, "grid");
    grid += text(x - 12, kTop - 26, "quiet", std::to_string(p) + " %");
  }
  std::string out = svg_head(kWidth, y + 24);
  out += "<title>Success rates of campaign " + escaped(report.campaign, 200) + "</title>\n";
  out +=
      "<style>text{font:13px sans-serif;fill:#1b1f24}.title{font-size:16px;font-weight:bold}"
      ".group{font-weight:bold}.quiet{fill:#57606a;font-size:12px}.number{font-size:12px}"
      ".bar{fill:#7aa6d8}.whisker{stroke:#1b1f24;stroke-width:1.5}.grid{stroke:#d0d7de}</style>\n";
  out += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  out += text(kLeft, 26, "title", "Success rate over scorable runs");
  out += text(kLeft, 44, "quiet",
              escaped(report.campaign, 120) + "; lines are " + confidence(report.alpha) +
                  " Wilson intervals; numbers are success/scorable");
  return out + grid + body + "</svg>\n";
}

}  // namespace proctor
