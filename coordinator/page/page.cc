#include "coordinator/page/page.h"

#include "common/base/digest.h"
#include "coordinator/page/sections.h"

namespace proctor::page {
// The page's one sheet, and its digest as a content security policy names it.
inline constexpr const char kSheet[] = R"css(
:root{color-scheme:light dark;--paper:#ffffff;--panel:#f6f8fa;--ink:#1b1f24;--quiet:#57606a;--rule:#d0d7de;
--link:#0757a8;--success:#0072B2;--failure:#C75000;--error:#4B2A6B;--invalid:#878D96;--on:#ffffff;--on-invalid:#1b1f24;
--mark:#0757a8;--band:#dbe9f6;--warn:#fff4dc;--warn-rule:#9a6700}
@media screen and (prefers-color-scheme:dark){:root{--paper:#0d1117;--panel:#161b22;--ink:#e6edf3;--quiet:#9da7b3;
--rule:#3d444d;--link:#79b8ff;--success:#56B4E9;--failure:#E69F00;--error:#F0C6E0;--invalid:#7D8590;--on:#0d1117;
--on-invalid:#0d1117;--mark:#79b8ff;--band:#1b3350;--warn:#3a2c0a;--warn-rule:#d4a72c}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,"Segoe UI",Roboto,"Noto Sans",sans-serif}
header,main,footer,nav{max-width:1060px;margin:0 auto;padding:0 20px}
header{padding-top:24px}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:44px 0 8px;padding-top:12px;border-top:2px solid var(--rule)}
h3{font-size:1.02rem;margin:26px 0 6px}
p,ul,ol,dl{margin:8px 0;max-width:75ch}
a{color:var(--link)}
a:focus-visible,[tabindex]:focus-visible{outline:3px solid var(--mark);outline-offset:2px}
.skip{position:absolute;left:-10000px}
.skip:focus{left:8px;top:8px;background:var(--paper);padding:8px;z-index:2}
.quiet{color:var(--quiet)}
.banner{background:var(--warn);border-left:5px solid var(--warn-rule);padding:10px 14px;margin:14px 0;max-width:none}
nav ol{columns:3 240px;padding-left:28px;max-width:none;font-size:.93rem}
nav li{padding:2px 0;break-inside:avoid}
nav a{display:inline-block;min-height:24px}
.answer{list-style:none;padding:0;margin:14px 0;display:grid;gap:14px;grid-template-columns:repeat(auto-fit,minmax(min(100%,290px),1fr));max-width:none}
.answer li{background:var(--panel);border:1px solid var(--rule);border-radius:8px;padding:14px 16px;break-inside:avoid}
.answer .name{font-weight:600;overflow-wrap:anywhere}
.answer .big{font-size:2.1rem;font-weight:650;line-height:1.2;display:block}
.answer p{margin:4px 0}
.controls{font-size:.8rem}
.controls .big{font-size:1.1rem}
.verdict{font-weight:650}
.scroll{overflow-x:auto;margin:10px 0}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums;min-width:min(100%,420px)}
caption{text-align:left;font-weight:600;padding:6px 0;max-width:75ch}
th,td{padding:3px 12px 3px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}
thead th{border-bottom:2px solid var(--quiet);vertical-align:bottom}
th.n,td.n{text-align:right}
td.n{white-space:nowrap}
tbody th{font-weight:500;overflow-wrap:break-word;min-width:13ch;max-width:34ch}
td{min-width:6ch;overflow-wrap:break-word;max-width:60ch}
td a{display:inline-block;min-width:24px;min-height:24px}
tr.apart th,tr.apart td{border-top:2px solid var(--quiet)}
code,pre{font:0.9em/1.45 ui-monospace,"DejaVu Sans Mono",Menlo,monospace}
code{overflow-wrap:anywhere}
pre{background:var(--panel);border:1px solid var(--rule);padding:10px;margin:0}
figure{margin:16px 0 22px}
figcaption strong{color:var(--ink);font-weight:600}
figcaption{color:var(--quiet);font-size:.92rem;max-width:80ch}
svg{display:block;width:100%;min-width:760px;max-width:1020px;height:auto}
svg text{font:13px system-ui,"Segoe UI",Roboto,"Noto Sans",sans-serif;fill:var(--ink)}
svg text.quiet{fill:var(--quiet)}
svg text.strong{font-weight:650}
svg text.cell{font-size:12px;font-weight:650;fill:var(--on)}
svg text.cell-invalid{font-size:12px;font-weight:650;fill:var(--on-invalid)}
.grid{stroke:var(--rule);stroke-width:1}
.axis{stroke:var(--quiet);stroke-width:1}
.reference{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:5 4}
.band{fill:var(--band)}
.whisker{stroke:var(--mark);stroke-width:2;fill:none}
.joint{stroke:var(--mark);stroke-width:1;fill:none}
.bound{stroke:var(--quiet);stroke-width:1.2;fill:none;stroke-dasharray:3 3}
.dot{fill:var(--mark);stroke:var(--paper);stroke-width:1}
.steps{fill:none;stroke:var(--quiet);stroke-width:1.5;stroke-dasharray:6 3}
.curve{fill:none;stroke:var(--mark);stroke-width:2}
.held{fill:var(--band);stroke:var(--mark);stroke-width:.6}
.cap{stroke:var(--failure);stroke-width:2;fill:none}
.better,.success,.spent{fill:var(--success)}
.worse,.failure{fill:var(--failure)}
.error{fill:var(--error)}
.invalid{fill:var(--invalid)}
.none{fill:none;stroke:var(--quiet);stroke-width:1;stroke-dasharray:2 2}
footer{margin-top:40px;padding-bottom:40px;color:var(--quiet);font-size:.9rem}
@media print{body{font-size:10.5pt}header,main,footer,nav{max-width:none;padding:0}.skip{display:none}
figure,tr,.answer li,.banner{break-inside:avoid}h2,h3,caption{break-after:avoid}thead{display:table-header-group}
.scroll{overflow:visible}table{font-size:8.5pt}th,td{padding-right:7px}svg{min-width:0}pre{white-space:pre-wrap}
.success,.failure,.error,.invalid,.better,.worse,.spent,.held,.band,.banner,.answer li{print-color-adjust:exact;-webkit-print-color-adjust:exact}
td a[href^="#set-"]::after{content:" (" attr(href) ")";font-size:.8em;color:var(--quiet)}}
)css";

// "sha256-...=": of the sheet, in base64.
std::string sheet_digest() {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const Digest digest = sha256(kSheet);
  std::string out = "sha256-";
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const std::uint8_t byte : digest.bytes()) {
    bits = bits << 8U | byte;
    for (held += 8; 6 <= held; held -= 6) out += kLetters[bits >> (held - 6) & 63U];
  }
  return out + kLetters[bits << 2U & 63U] + "=";  // four bits are left of 32 bytes
}
}  // namespace proctor::page

namespace proctor {
namespace {
using namespace page;

struct Section {
  Literal heading;
  Markup (*make)(Context&);
  bool rates = false;  // has rates of success
};
constexpr std::array<Section, 15> kSections{{
    {"What was asked", asked},
    {"What happened to the runs", runs_flow},
    {"Primary endpoint", endpoint, true},
    {"Comparisons", comparisons, true},
    {"Errors, invalid runs, bounds", unknowns, true},
    {"By stratum", strata, true},
    {"Stability", stability, true},
    {"Money", money_section, true},
    {"Time", time_section, true},
    {"Gates, score and failure modes", gates},
    {"Are the graders right?", graders},
    {"Caps and rules", rules},
    {"Reproducibility", reproducibility},
    {"Limits", limits_section},
    {"Appendices", appendix, true},
}};

Markup head_of(const Markup& title) {
  const Markup policy =
      empty_element("meta", {{"http-equiv", "Content-Security-Policy"},
                             {"content", attribute_text("default-src 'none'; style-src '" +
                                                        sheet_digest() + "'; img-src data:")}});
  return element("head",
                 line_end() + empty_element("meta", {{"charset", "utf-8"}}) + line_end() + policy +
                     line_end() +
                     empty_element("meta", {{"name", "viewport"},
                                            {"content", "width=device-width, initial-scale=1"}}) +
                     line_end() +
                     empty_element("meta", {{"name", "color-scheme"}, {"content", "light dark"}}) +
                     line_end() + element("title", title) + line_end() + style_sheet(kSheet));
}

Markup headline(Context& c) {
  const ReportRow& t = c.report.total;
  Markup line = text(aggregate::runs_line(t));
  line << "; " << number(c.cells.tasks.size()) << " tasks, " << number(c.methods.size())
       << " methods; spent " << money_of(t.cost.total()) << " " << text(c.report.unit) << ". "
       << (c.is_interim() ? Markup("Interim, of") : Markup("Of")) << " journal head "
       << (c.report.journal_head.empty()
               ? Markup("none")
               : element("code", text(c.report.journal_head.substr(0, 12))));
  const std::string again = c.report.again.empty() ? "" : ", a " + c.report.again;
  return element("h1", text(c.report.campaign + again)) + line_end() +
         classed("p", "quiet", line + ".") + line_end();
}

Markup contents() {
  Markup items;
  for (std::size_t i = 0; i < kSections.size(); ++i)
    items << element("li",
                     element("a", {{"href", numbered("#section-", i + 1)}}, kSections[i].heading))
          << line_end();
  return element("nav", {{"aria-label", "Sections"}}, element("ol", line_end() + items)) +
         line_end();
}
// The whole file: head with its policy and sheet, and these parts of a body.
std::string document(const Markup& title, const Markup& skip, const Markup& header,
                     const Markup& main, const Markup& made_by) {
  const Markup body =
      element("a", {{"class", "skip"}, {"href", "#main"}}, skip) + line_end() +
      element("header", header) + line_end() +
      element("main", {{"id", "main"}}, line_end() + main) + line_end() +
      element("footer",
              paragraph(made_by + " This file runs nothing and asks nothing of any network."));
  const Markup html = element(
      "html", {{"xmlns", "http://www.w3.org/1999/xhtml"}, {"lang", "en"}},
      line_end() + head_of(title) + line_end() + element("body", line_end() + body) + line_end());
  return "<!DOCTYPE html>\n" + html.bytes() + "\n";
}
}  // namespace

std::string render_html(const PageInput& input) {
  Context c(input);
  Markup main = answer(c);
  main << contents();
  for (std::size_t i = 0; i < kSections.size(); ++i) {
    const Markup heading = element("h2", {{"id", numbered("section-", i + 1)}},
                                   number(i + 1) + ". " + kSections[i].heading);
    main << element("section", {{"aria-labelledby", numbered("section-", i + 1)}},
                    line_end() + heading + line_end() +
                        (kSections[i].rates ? critical_banner(c) : Markup()) + kSections[i].make(c))
         << line_end();
  }
  return document(Markup("Report of ") + text(c.report.campaign), "To the answer", headline(c),
                  main, "Made by proctor report from the campaign's journal and evidence.");
}

namespace {
constexpr std::size_t kTasksOnBoard = 2'000;

Markup ranks_of(const std::optional<RankSet>& r) {
  if (!r) return "control";
  return r->best == r->worst ? number(r->best) : number(r->best) + "-" + number(r->worst);
}

Markup board_rows(std::uint64_t id, const BoardTable& t) {
  const auto amount = [](const auto& dollars) { return dollars ? usd(*dollars) : none(); };
  DataTable table(id, number(t.rows.size()) + " methods on " + number(t.tasks.size()) + " tasks");
  table.heads(
      "method|campaign|#rank|#success|interval|bounds|#tasks|#runs|#satisfied|#errors|#invalid|"
      "#cost of a run|#of a success|price table|caps|proctor|evidence");
  for (const BoardRow& r : t.rows) {
    const std::optional<Interval> bounds =
        r.bounds ? std::optional(r.bounds->identified) : std::nullopt;
    table.group(r.ranks ? "agents" : "controls");
    table.row({small_if(!r.ranks, text(r.method)), text(r.campaign), ranks_of(r.ranks),
               rate(r.rate.value), rate_interval(r.rate.interval, r.rate.why),
               bounds ? rate_interval(bounds) : none(), number(r.tasks), number(r.runs),
               number(r.satisfied), number(r.acceptance_error), number(r.invalid),
               amount(r.cost_of_run), amount(r.cost_of_success), text(r.prices), text(r.caps),
               text(r.tool_version),
               r.verified() ? element("code", text(r.journal_head.substr(0, 12)))
                            : element("strong", "unverified")});
  }
  return table.finish();
}

Markup board_table(std::uint64_t id, const BoardTable& t) {
  Markup out =
      element("h2", {{"id", numbered("table-", id)}},
              Markup("Table ") + number(id) + ": tasks " + text(t.tasks_digest.short_hex()));
  out << line_end() << board_rows(id, t) << line_end();
  out << classed("p", "quiet",
                 Markup("Ranks are sets: ") + text(t.rank_rule) +
                     ". Rows of one set are not told apart by these data. Bounds: the rate if "
                     "every error and invalid run had failed, or succeeded.");
  Items differences;
  differences.add(t.differences, 400);
  out << differences.list();
  Markup tasks;
  for (std::size_t i = 0; i < std::min(kTasksOnBoard, t.tasks.size()); ++i)
    tasks << (i == 0 ? Markup() : Markup(", ")) << text(t.tasks[i]);
  if (kTasksOnBoard < t.tasks.size())
    tasks << " and " << number(t.tasks.size() - kTasksOnBoard) << " more";
  out << classed("p", "quiet", Markup("Its tasks: ") + tasks + ".");
  return element("section", {{"aria-labelledby", numbered("table-", id)}}, line_end() + out);
}
}  // namespace

std::string render_leaderboard_html(const Leaderboard& board) {
  Markup main;
  if (board.tables.empty()) main << paragraph("There is no campaign with these tasks.");
  if (1 < board.tables.size())
    main << paragraph(
        "Campaigns share a table only where the contracts of their tasks are equal, byte for byte: "
        "rates of different tables do not compare.");
  for (std::size_t i = 0; i < board.tables.size(); ++i)
    main << board_table(i + 1, board.tables[i]) << line_end();
  return document("Leaderboard", "To the tables", element("h1", "Leaderboard"), main,
                  "Made by proctor leaderboard from the campaigns' journals alone.");
}
}  // namespace proctor
