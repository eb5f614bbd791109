#pragma once
// The sections of a page in their order, one function each: what stands below its heading.
// Private to the room.
#include "coordinator/page/context.h"

namespace proctor::page {

Markup answer(Context& c);           // in the head: who, by how much, how sure, at what price
Markup asked(Context& c);            // 1
Markup runs_flow(Context& c);        // 2
Markup endpoint(Context& c);         // 3
Markup comparisons(Context& c);      // 4
Markup unknowns(Context& c);         // 5
Markup strata(Context& c);           // 6
Markup stability(Context& c);        // 7
Markup money_section(Context& c);    // 8
Markup time_section(Context& c);     // 9
Markup gates(Context& c);            // 10
Markup graders(Context& c);          // 11
Markup rules(Context& c);            // 12
Markup reproducibility(Context& c);  // 13
Markup limits_section(Context& c);   // 14
Markup appendix(Context& c);         // 15

// ---- figures; empty where there is nothing to show
enum class ForestRows : std::uint8_t { kAllTasks, kWithStrata };
Markup forest_figure(Context& c, ForestRows which);
Markup contrast_figure(Context& c);
Markup differences_figure(Context& c, const Contrast& contrast);
Markup mosaic_figure(Context& c);
Markup frontier_figure(Context& c);
Markup burndown_figure(Context& c);
Markup histogram_figures(Context& c);
Markup until_success_figure(Context& c);
Markup workers_figure(Context& c);
Markup pass_figure(Context& c);

}  // namespace proctor::page
