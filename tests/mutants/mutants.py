"""The mutants: what is broken on purpose, one small edit each.

MUTANTS is a list of (name, file, old text, new text).  The old text must stand exactly once in the
file; an edit that does not apply is a failure of the run, so that this list follows the code.

Left out because they are equivalent, that is, nobody can see them from outside:
  - taking ready_ runs largest first for *later* attempts only changes efficiency in the simulation
    (it orders first attempts); the queue's own unit tests see it, so it is listed below.
  - settling an attempt twice at the ledger is harmless (the same id answers what is stored), so
    the mutant below drops the guard against the second answer instead.
"""

S = "coordinator/core/scheduler.cc"
R = "coordinator/core/scheduler_attempts.cc"
W = "coordinator/core/scheduler.cc"
A = "coordinator/core/scheduler_attempts.cc"
F = "coordinator/core/scheduler_attempts.cc"
O = "coordinator/core/scheduler_operator.cc"
T = "coordinator/core/scheduler_facts.cc"
H = "coordinator/core/scheduler_facts.cc"
U = "coordinator/core/scheduler.cc"
G = "coordinator/core/scheduler.cc"
P = "coordinator/core/failures.cc"
K = "coordinator/core/failures.cc"
M = "coordinator/core/scheduler_attempts.cc"
B = "coordinator/core/budget_watch.cc"
Q = "coordinator/core/run_queue.cc"
Y = "coordinator/core/rate_lease.cc"
V = "worker/core/rate_share.cc"
L = "common/ledger/ledger.cc"
X = "coordinator/core/scheduler_attempts.cc"
N = "coordinator/core/failures.cc"
J = "coordinator/core/scheduler_operator.cc"
GB = "coordinator/core/run_queue.cc"

SETTLE = "settle_.ops.push_back({{a->id, a->seq}, a->cost.total()});\n      return;"
GRANT = "After{Step::kAssign, a.id, a.seq, *a.worker});"
WAKE = "    money_back(s);\n"
RESTORE = "std::visit([this](const auto& f) { apply(f); }, fact);"

MUTANTS = [
    # ---- fencing and order of effects
    ("the attempt number is no fence", S, " && it->second.id.no == id.no", ""),
    ("acknowledged before the commit", R,
     "a.ack_to.push_back(*a.worker);", "acks_[*a.worker].push_back(a.id);"),
    ("assigned before the grant is durable", A,
     GRANT, GRANT + "\n  assigns_[*a.worker].push_back({a.id, a.ask});"),
    ("a late result sets the outcome", R,
     "record(record_of(r, false, WallTime(0), now_.wall)",
     "record(record_of(r, true, WallTime(0), now_.wall)"),
    ("a late result is acknowledged on sync before its commit", W,
     "if (late_writing_.contains(id)) continue;", ""),
    # ---- broken tasks and methods
    ("a task's setup failure is the host's at once", F,
     "if (r.fault != Fault::kHost) return;  // nor this, until it works elsewhere (fault_worked)", ""),
    ("one host's failures park a task", X, "if (faults_.workers(subject).size() < 2 &&", "if (false &&"),
    ("a task is never parked", X, "if (faults_.is_parked(subject) || !faults_.is_due(subject)) return;", "return;"),
    ("a method that started once is parked", X,
     "if (started_methods_.contains(static_cast<std::uint16_t>(subject.index))) return;", ""),
    ("what one task lacks parks a method", X, "if (tasks < std::min<std::size_t>(2, plan_.tasks.size())) return;", ""),
    ("no host answers for what works elsewhere", X,
     "for (std::uint32_t i = 0; i < alone->failures; ++i) count_host_failure(w);", ""),
    ("agents' failures count against hosts", X,
     "if (!alone || subject.kind != FaultSubject::Kind::kTask) return;", "if (!alone) return;"),
    ("what is parked starts", X,
     "return faults_.is_parked(task_subject(run)) || faults_.is_parked(method_subject(run));", "return false;"),
    ("who failed may be tried at once again where it failed", U,
     "return other || waits_for_another(run) ? other : roster_.pick(needs);", "return roster_.pick(needs);"),
    ("who waits for another worker waits for ever", W, "  look_at_faults();\n", ""),
    ("a requeue forgives no broken task", H,
     "for (const RunId run : act.runs) forgive_fault(run);", ";"),
    ("what is parked is forgotten by the next life", T,
     "if (is_shut(RunId(r))) shut(RunId(r));", ";"),
    ("different failures are one row", N, "return f.cause != cause;", "return false && f.cause != cause;"),
    ("a success ends no row", N,
     "if (fact.verdict == FaultVerdict::kWorked) return forgive(fact.subject);",
     "if (fact.verdict == FaultVerdict::kWorked) return;"),
    # ---- a worker that lies: whose attempt it is
    ("a result of anybody counts", R,
     "if (is_anothers(r.attempt, w))", "if (false)"),
    ("an archive of anybody is awaited", R,
     "it->second.id != id || it->second.owner != w) return false;", "it->second.id != id) return false;"),
    ("an archive of what has its result is awaited", R,
     "return s == State::kGranting || s == State::kAssigned || s == State::kRunning;", "return true;"),
    ("a lost attempt's late evidence is anybody's", R,
     "return it != lost_.end() && it->second == roster_.at(w).id;", "return it != lost_.end();"),
    ("the first that says it runs has the seat", W, "if (!wanted || !owned) {", "if (!wanted) {"),
    ("unacked results of others are asked for", W,
     "if (is_anothers(id, w)) {", "if (false) {"),
    ("stated calls are believed", "coordinator/core/rate_lease.cc",
     "lease.calls[b] = std::min(lease.calls[b], given(lease, b, now));", ""),
    ("what was promised before is forgotten", "coordinator/core/rate_lease.cc",
     "if (!said) kept.push_back(std::move(*p));", "if (p->obeyed) kept.push_back(std::move(*p));"),
    ("a restored grant names nobody", H, "  a->owner = owner;\n", ""),
    ("nobody knows since when an attempt is granted", H, "  a->granted_at = fact.at;\n", ""),
    ("who had what has ended is forgotten by the next life", H,
     "if (owner) remember_owner(fact.attempt.run, *owner);", ""),
    ("who had an ended attempt is forgotten", U,
     "return attempts_made_[run] == id.no.raw() && owners_[run] != 0 && owners_[run] - 1U != w;",
     "return false;"),
    ("who comes into a forgotten one's place has had its attempts", G,
     "if (owner != 0 && gone[owner - 1U]) owner = 0;", ""),
    ("an operator's word about a worker is forgotten with it", G, "s.held == 0 && !told &&", "s.held == 0 &&"),
    ("a result without evidence decides", R,
     "if (decides(r) && r.archive_bytes == 0 && !runs_nothing(r.attempt.run))", "if (false)"),
    ("a result of an epoch to come counts", R,
     'if (epoch_ < r.epoch) return refuse_result(e, "of an epoch that has not begun");', ""),
    ("a result of another epoch than its assignment's counts", R,
     "if (a->sent_to && !a->granted_to && r.epoch != epoch_)", "if (false)"),
    # ---- what is given back
    ("what has begun may be given back", W, "if (a == nullptr || a->has_begun()) continue;",
     "if (a == nullptr) continue;"),
    ("anybody gives back", W, "if (!sent && !unclaimed) continue;", ""),
    ("giving back counts for nobody", W, "if (any && 0 < sync.slots) count_host_failure(w);", ""),
    ("leaving counts as a failure", W, "if (any && 0 < sync.slots) count_host_failure(w);",
     "if (any) count_host_failure(w);"),
    ("a goodbye gives back what has begun", W,
     "assigned_to(a, w) && !a.has_begun() && !e.spooled", "assigned_to(a, w) && !e.spooled"),
    ("a goodbye gives back what is in the spool", W,
     "&& !e.spooled->contains(id))", ")"),
    # ---- money of attempts
    ("settle is skipped", S, SETTLE, "return;"),
    ("a settlement counts twice", M,
     "if (a == nullptr || a->state != State::kSettling) continue;", "if (a == nullptr) continue;"),
    ("an attempt of a silent worker is voided", W,
     'if (Attempt& a = *live(id); assigned_to(a, w)) lose(a, why, text);',
     "void_attempt(*live(id), text);"),
    ("a lost attempt costs nothing", H, ".execution = a->ask,", ".execution = {},"),
    ("a result costs nothing", H, "a->cost = price(settings_.cost_model, fact.usage);", "a->cost = {};"),
    ("what a restored result used is not read", T, "  out.usage = r.usage;\n", ""),
    ("a scope is missing in the reservation", S,
     "reserve_.ops.push_back({{a->id, a->seq}, a->ask, plan_.path(a->id.run)});",
     "reserve_.ops.push_back({{a->id, a->seq}, a->ask, plan_.path(a->id.run)});\n"
     "      reserve_.ops.back().scopes.pop_back();"),
    # ---- waiting and order
    ("not queued again after its end", A, "return queue_or_shut(id.run);", "return;"),
    ("nobody wakes on a settlement", M, WAKE + "    tell_spent(s);", "    tell_spent(s);"),
    ("nobody wakes on a denial", A,
     "  for (const ScopeId s : plan_.path(run)) money_back(s);\n  ScopeBalance", "  ScopeBalance"),
    ("parked although money is out", A,
     "else if (b.reserved == MicroUsd::zero() && !b.elsewhere.may_return) {",
     "else if (b.reserved <= b.cap) {"),
    ("a parking stands nowhere", H, "  parked_rows_[fact.run.raw()] = true;\n", ""),
    ("a parking stands for ever", H, "  parked_rows_[fact.run.raw()] = false;\n", ""),
    ("a smaller ask is parked too", M, " || ask < known->second.second", ""),
    ("the task's envelope is not judged", M,
     "    // Short, but some of it may come back: wait.",
     "    if (scope == task.scope) continue;\n    // Short, but some of it may come back: wait."),
    ("put back runs are considered last", Q,
     "if (!ready_.empty()) offer(", "if (cursor_ == skipped_.size() && !ready_.empty()) offer("),
    ("put back runs are taken largest first", Q, "*ready_.begin()", "*ready_.rbegin()"),
    ("a wait holds nobody back", Q, "if (*it->second.begin() < run) return scope;", ""),
    ("a drain goes on starting runs", S, "if (mode_ != Mode::kRun || paused_) return;", "if (paused_) return;"),
    # ---- workers and lives
    ("a slot stays held after a result", R, "  release_slot(a);\n", ""),
    ("a slot stays held after a denial", A,
     "  release_slot(a);\n  record(AttemptDenied{", "  record(AttemptDenied{"),
    ("a restarted worker counts as the same life", W,
     "reborn ? Life::kNew : Life::kSame", "reborn ? Life::kSame : Life::kSame"),
    ("attempts nobody claims are never lost", W,
     'lose(it->second, Loss::kUnclaimed, "no worker claimed it after the restart")', "static_cast<void>(it)"),
    ("unknown attempts are not cancelled on sync", W,
     "reply.cancel.push_back(r.attempt);  // another", "// another"),
    # ---- restarts of the coordinator
    ("what is asked for is not reserved", H,
     "balances_[s.raw()].reserved = balances_[s.raw()].reserved + a.ask;", "static_cast<void>(s);"),
    ("what is denied stays reserved", H, "  give_back(*a);\n  live_.erase(", "  live_.erase("),
    ("what is settled stays reserved", H,
     "  if (const Attempt* a = live(fact.attempt)) give_back(*a);\n", ""),
    ("a restart forgets what is pending", T, "    apply(AttemptIntent{r.attempt, r.seq, r.ask, WallTime(0)});",
     "    return;"),
    ("what is out in the next life keeps its place in line", H,
     "    leave_line(run);\n    phases_[run.raw()] = RunPhase::kActive;", "    ;"),
    ("a removed run keeps its place in line", H,
     "  leave_line(fact.run);\n  phase = RunPhase::kRemoved;", "  phase = RunPhase::kRemoved;"),
    ("what has begun is removed", H,
     "    return;\n  }\n  if (phase == RunPhase::kCancelled) --cancelled_;",
     "  }\n  if (phase == RunPhase::kCancelled) --cancelled_;"),
    ("a restart forgets lost attempts' count", T,
     "  if (r.state == From::kLost) apply(AttemptLost{r.attempt, {}, WallTime(0), r.worker});\n", ""),
    ("a restart forgets who may still bring a result", T, ", WallTime(0), r.worker});", ", WallTime(0), {}});"),
    ("a cancelled attempt ends its run", R,
     "bool again = cancelled || !wanted || unstarted;", "bool again = !wanted || unstarted;"),
    # ---- envelopes across the tree, and what is told
    ("a wait across the tree stops the line", Q,
     "if (plan_.holds_all(*scope, *run)) return std::nullopt;", "return std::nullopt;"),
    ("a wait at the campaign's envelope lets others pass", Q,
     "if (const auto scope = waits_behind(*run)) {",
     "if (const auto scope = waits_behind(*run); scope && !plan_.holds_all(*scope, *run)) {"),
    ("an alert is told at every settlement", B,
     "if (is_told_.contains({scope, percent})) continue;", ""),
    ("an alert of an earlier life is told again", T, "    restore_fact(a);\n", ""),
    ("an alert counts what is reserved", M,
     "balances_[scope.raw()], now_.wall)",
     "ScopeBalance{balances_[scope.raw()].cap, balances_[scope.raw()].spent + "
     "balances_[scope.raw()].reserved, {}}, now_.wall)"),
    ("only the outermost envelope is told", M, "    tell_spent(s);", "    if (s == ScopeId(0)) tell_spent(s);"),
    ("dominance is told at every Sync", H, "  dominant_ids_.insert(fact.attempt);\n", ""),
    ("dominance of an earlier life is told again", T, "    restore_fact(d);\n", ""),
    ("milestones do not count", B, "milestones < rule.milestones &&", ""),
    # ---- what runs has metered, and calls per minute
    ("usage that goes backwards is believed", M, "    return false;\n  }\n  a.usage = said;", "  }\n  a.usage = said;"),
    ("what is metered may pass the ask", M, "a.metered = std::min(a.ask, ", "a.metered = std::max(MicroUsd::zero(), "),
    ("rates: what others hold does not count", Y,
     "const std::uint64_t others = occupied(b, now) - occupied(lease, b, now);",
     "const std::uint64_t others = 0;"),
    ("rates: a promise is forgotten that nobody replaced", Y,
     "supersede(lease, word.obeyed);", "supersede(lease, word.ticket);"),
    ("rates: calls that were made do not count", Y,
     "now < lease.heard + kRateWindow ? lease.calls[bucket] : 0", "lease.calls[bucket] * 0"),
    ("rates: calls count no longer than the lease", Y, "now + kRateLease + kRateWindow, shares", "now + kRateLease, shares"),
    ("rates: a restarted coordinator gives at once", Y, "if (restarted_ && !quiet_until_)", "if (false && !quiet_until_)"),
    ("rates: a word that was overtaken counts", Y, "  if (word.ticket <= lease.ticket) return {};  // overtaken by a later one\n", ""),
    ("rates: a share never lapses", V, "now < until_ ? b.share : 0", "b.share"),
    ("rates: an answer that was overtaken is obeyed", V,
     "  asked_.erase(asked_.begin(), std::next(asked));  // older answers must not come in again\n", ""),
    # ---- operators
    ("a pause goes on starting runs", S, "if (mode_ != Mode::kRun || paused_) return;",
     "if (mode_ != Mode::kRun) return;"),
    ("an act is answered before it is durable", S, "if (awaiting_.empty()) {", "if (true) {"),
    ("an exit code takes its run out of the count", R,
     "unstarted && wanted && started_methods_.contains(plan_.runs[run.raw()].method);", "false;"),
    ("what ended by an exit code alone is drawn again", X,
     "return it != unstarted_.end() && it->second.raw() == attempts_made_[run.raw()];", "return false;"),
    ("a cancelled run gets an outcome", R, "bool again = cancelled || !wanted || unstarted;", "bool again = cancelled || unstarted;"),
    ("a cancelled run comes up again", A, "if (phase != RunPhase::kActive) return;",
     "if (phase == RunPhase::kEnded) return;"),
    ("a cancel does not outlive the coordinator", T,
     RESTORE, "if (!std::holds_alternative<OperatorFact>(fact)) " + RESTORE),
    ("an operator's quarantine closes nothing", H,
     "        s.quarantine = WorkerState::Quarantine::kOperator;\n", ""),
    ("a release leaves the worker closed", H, "return worker([](WorkerState& s) { s.set_free(); });", "return;"),
    ("a cancelled run keeps its place in line", H,
     "  leave_line(run);\n  phase = RunPhase::kCancelled;", "  phase = RunPhase::kCancelled;"),
    ("forgiven failures count on", H, "  failures_[last.run.raw()] = 0;\n", ""),
    ("forgiven overloads count on", H, "  overloads_.erase(last.run);\n", ""),
    ("what was forgiven counts in the next life", H, "  forgiven_[last.run] = last.no;\n", ""),
    ("an attempt that is out is forgiven beforehand", O,
     "AttemptNo(out || denied_.contains(run) ? made - 1 : made)", "AttemptNo(out || true ? made : made)"),
    ("the ledger never hears of a raise", O, "    raised_ = heard_caps_;\n", ""),
    # ---- failures that are not the agent's
    ("nobody waits before the next attempt", A, "if (a.wait == Millis::zero() || is_shut(id.run))", "if (true)"),
    ("blamed for what had not begun", F, " || !a.begun_in || !a.worker", " || !a.worker"),
    ("a blame is never withdrawn", P, "if (b.worker == worker && b.boot == boot)", "if (false && b.boot == boot)"),
    ("worker losses are forgotten on resume", T,
     RESTORE, "if (!std::holds_alternative<LossJudged>(fact)) " + RESTORE),
    ("an excused loss counts in the next life", H, "      excused_.insert(fact.attempt);\n", ""),
    ("a withdrawn blame stands in the next life", H,
     "      static_cast<void>(poison_.withdraw(fact.attempt));\n", ""),
    ("a suspect is none once its result is set aside", H, "  poison_.wake(run);\n", ""),
    ("a worker that recovered goes on with its row", H,
     "        s.failures = s.quarantines = 0;\n", "        s.failures = 0;\n"),
    ("each quarantine is the first of its row", H, "fact.nth == 0 ? s.quarantines + 1 : fact.nth", "1"),
    ("a run outlives as many workers as it likes", F,
     "if (!poison_.blames(a.id.run).empty()) {", "if (false) {"),
    ("outliving a worker is held against nobody", F,
     "  hold_against(a.id, worker, *a.begun_in);\n  return true;", "  return true;"),
    ("a suspect has company", U, "  roster_.edit(w, [](WorkerState& s) { s.kept = true; });\n  if (kept_ == w)",
     "  if (kept_ == w)"),
    ("poison is never convicted", F, "const bool left = !convicted && ", "const bool left = "),
    ("a kick counts as a failure", H, "if (!excused_.contains(fact.attempt)) count_failure(", "count_failure("),
    ("a kick has its run wait", F, "if (why != Loss::kKicked) again_or_end(a, convicted);",
     "again_or_end(a, convicted);"),
    ("overload counts against the worker", F, " || r.overload) return;", ") return;"),
    # ---- facts that both lives apply
    ("a late result counts", H, "if (lost_.erase(fact.attempt) == 1) return;", "lost_.erase(fact.attempt);"),
    ("a failed result counts for nothing", H, "  if (fact.infrastructure) {\n", "  if (false) {\n"),
    ("a result that is set aside still ends its run", H, "    in_line(run);\n  }\n  poison_.wake", "  }\n  poison_.wake"),
    ("what was set aside reopens its run in every life", H, " && it->second.by == decided.no) {", ") {"),
    ("what is set aside is no failure in the next life", H,
     "} else if (set_aside_.contains(fact.attempt)) {", "} else if (false) {"),
    ("an ended run keeps its place in line", H,
     "  leave_line(fact.run);\n  phase = RunPhase::kEnded;", "  phase = RunPhase::kEnded;"),
    ("a denied ask is asked anew", H, "  denied_[fact.attempt.run] = {fact.attempt, fact.seq};\n", ""),
    ("what is settled is not spent", H, "  spend(fact.attempt.run, fact.charged);\n", ""),
    ("what was settled is not spent in the next life", T, "    if (a.settled) restore_fact(", "    if (false) restore_fact("),
    ("what was reviewed is not spent in the next life", T, "    restore_fact(r);\n", ""),
    ("a raise lifts no cap of the scheduler's own", H, "  balance.cap = fact.to;\n", ""),
    ("a raise brings no alert back", H, "  alerts_.rearm(fact.scope, balance);\n", ""),
    ("a run that a person decides about keeps its place in line", H,
     "  leave_line(fact.run);\n  phase = RunPhase::kHeld;", "  phase = RunPhase::kHeld;"),
    ("who waits for a person is queued by the next life", T,
     RESTORE, "if (!std::holds_alternative<RunEscalated>(fact)) " + RESTORE),
    # ---- gates between stages
    ("a gate holds nothing back", Q,
     "if (least && shut_from_ <= least->raw()) return std::nullopt;", ""),
    ("a stage opens while attempts of the one before are out", J,
     "if (!live_.empty() || !backoff_.empty() || held_ != 0) return false;", ""),
    ("one approval fewer opens a stage", J,
     "if (!holds || by.size() < gate->people) {", "if (!holds || by.size() + 1 < gate->people) {"),
    ("criteria open nothing and shut nothing", J,
     "if (!holds || by.size() < gate->people) {", "if (by.size() < gate->people) {"),
    ("an approval is of whatever is there", GB,
     "if (what == digest) out.push_back(by);", "out.push_back(by);"),
    # ---- the ledger
    ("ledger: settle forgets a scope", L,
     "b.spent = b.spent + charged;", "if (scope != row.scopes.back()) b.spent = b.spent + charged;"),
    ("ledger: a denial does not stick", L,
     "  rows_.emplace(op.id, std::move(row));",
     "  if (row.state != State::kDenied) rows_.emplace(op.id, std::move(row));"),
    ("ledger: charges above the ask", L, "std::min(op.actual, row.ask)", "op.actual"),
    ("ledger: a repeated settlement charges again", L, "if (!replayed) {", "{"),
    ("ledger: voids what was settled", L,
     'return conflict(op.id, "was settled");', "return ok_status();"),
]

# One of each kind, each seen by the simulation alone: `run --quick`, a test of every build.
QUICK = {
    "the attempt number is no fence",
    "acknowledged before the commit",
    "assigned before the grant is durable",
    "a late result sets the outcome",
    "settle is skipped",
    "a settlement counts twice",
    "a lost attempt costs nothing",
    "a scope is missing in the reservation",
    "not queued again after its end",
    "nobody wakes on a settlement",
    "a restarted worker counts as the same life",
    "a restart forgets what is pending",
}
assert QUICK <= {name for name, *_ in MUTANTS}
