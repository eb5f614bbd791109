#pragma once
// The page's one sheet, and its digest as a content security policy names it.
#include <string>
#include <string_view>

#include "coordinator/page/markup.h"

namespace proctor::page {

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
svg text.cell-none{font-size:12px;fill:var(--ink)}
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
.spent{fill:var(--success)}
.held{fill:var(--band);stroke:var(--mark);stroke-width:.6}
.cap{stroke:var(--failure);stroke-width:2;fill:none}
.better{fill:var(--success)}
.worse{fill:var(--failure)}
.success{fill:var(--success)}
.failure{fill:var(--failure)}
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

// "sha256-...=": of the sheet.
std::string sheet_digest();

}  // namespace proctor::page
