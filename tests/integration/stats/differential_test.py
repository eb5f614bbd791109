"""Every estimate that reports make, on random data sets, against NumPy, SciPy and statsmodels, which are taken from
their registry into an environment beside the build that is made once: what is held to eight digits is held to one version.

Prints "did not run: NAME: there is no ..." where they cannot be had; the worked numbers of the unit tests still run.
"""
import argparse
import functools
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

FAMILY_TASKS = 60
PACKAGES = ["numpy", "scipy", "statsmodels"]
PINNED = ["numpy==2.4.6", "scipy==1.17.1", "statsmodels==0.15.0"]


def has_packages(python):
    return subprocess.run([python, "-c", "import " + ", ".join(PACKAGES)], capture_output=True).returncode == 0


def python_with_packages(at):
    """The interpreter that has them; nothing: the registry does not give them."""
    python = at / "bin" / "python"
    if (at / "made").exists() and has_packages(python):
        return python
    shutil.rmtree(at, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", at], capture_output=True).returncode == 0
    if made and subprocess.run([python, "-m", "pip", "install", "-q", *PINNED], capture_output=True).returncode == 0 \
            and has_packages(python):
        (at / "made").touch()
        return python
    shutil.rmtree(at, ignore_errors=True)
    return None


def data_set(rng, i):
    """Small and odd on purpose: one task, one run, everything solved, nothing solved, equal runs."""
    n = int(rng.integers(1, 15))
    kind = i % 6
    rate = rng.random((n, 2)) if kind else np.full((n, 2), float(rng.integers(0, 2)))
    runs = np.full((n, 2), int(rng.integers(1, 7))) if kind in (1, 2) else rng.integers(1, 7, (n, 2))
    won = rng.binomial(runs, np.where(rng.random((n, 2)) < .2, rng.integers(0, 2, (n, 2)), rate))
    if kind == 5:  # all tasks alike, with rates that are no binary fractions
        runs[:], won[:] = runs[0], won[0]
    strata = int(rng.integers(1, 9))
    records = [[s, int(rng.integers(0, 2)), float(rng.integers(0, 50)), int(rng.integers(0, 4))]
               for s in range(strata) for _ in range(int(rng.integers(1, 6)))]
    lives = [[float(rng.integers(0, 20)) / 2, int(rng.integers(0, 3))] for _ in range(int(rng.integers(1, 25)))]
    samples = [[float(x) for x in rng.integers(1, 90, int(rng.integers(1, 6)))] for _ in range(n)]
    contrasts = int(rng.integers(1, 5))
    errors = rng.random(contrasts) + .1
    return {"a": [[int(k), int(c)] for k, c in zip(runs[:, 0], won[:, 0])],
            "b": [[int(k), int(c)] for k, c in zip(runs[:, 1], won[:, 1])],
            "lost": rng.integers(0, 3, (n, 2)).tolist(), "repository": rng.integers(0, int(rng.integers(1, 9)), n).tolist(),
            "cost": [float(x) for x in rng.random(n) * 5 + .01], "runs": records, "lives": lives, "samples": samples,
            "p": [float(x) for x in rng.random(int(rng.integers(1, 9)))], "replicate": int(rng.integers(0, 10**6)),
            "estimates": [float(x) for x in rng.normal(size=contrasts)], "errors": [float(x) for x in errors],
            "replicates": [float(x) for x in rng.normal(size=contrasts * 40)],
            "levels": [str(x) for x in np.random.default_rng(i).integers(0, 1 + i % 4, n)],
            "weights": [{"0": 10**6}, {"0": 600000, "1": 400000}, {"0": 500000, "1": 300000, "2": 200000}][i % 3],
            "family": family_of(rng, i) if i % 4 == 0 else None}


def family_of(rng, i):
    """Three methods over enough tasks for max-t, of which some have no runs of one; at times two are alike."""
    runs = np.full((3, FAMILY_TASKS), 5) if i % 3 == 0 else rng.integers(1, 7, (3, FAMILY_TASKS))
    runs = runs * (rng.random((3, FAMILY_TASKS)) < .98)
    won = rng.binomial(runs, np.clip(rng.random(FAMILY_TASKS) + rng.normal(0, .15, (3, 1)), 0, 1))
    if i % 5 == 0:
        runs[1], won[1] = runs[0], won[0]
    return {"runs": runs.tolist(), "won": won.tolist(), "by_task": i % 8 != 0}


class Expected(dict):
    def interval(self, name, low, high):
        self[name + ".low"], self[name + ".high"] = low, high

    def about(self, name, value, se, df):
        """Student's t around a value; nothing without an error."""
        self[name], self[name + ".se"] = value, se
        half = stats.t.ppf(.975, df) * se if se else None
        self.interval(name, *(value - half, value + half) if half else (None, None))


def wilson_at(p, n):
    centre, half = (p + Z * Z / 2 / n) / (1 + Z * Z / n), Z * math.sqrt(p * (1 - p) / n + Z * Z / 4 / n / n) / (1 + Z * Z / n)
    return (0.0 if p == 0 else centre - half), (1.0 if p == 1 else centre + half)


def exact_at(x, n):
    return (0.0 if x <= 0 else stats.beta.ppf(.025, x, n - x + 1)), (1.0 if n <= x else stats.beta.ppf(.975, x + 1, n - x))


def cr2(groups, values):
    """Error and degrees of freedom of a mean, by the general matrix form of Bell and McCaffrey."""
    n = len(values)
    hat, rest, e = np.full((n, n), 1 / n), np.eye(n) - 1 / n, values - values.mean()
    variance, columns = 0, []
    for g in np.unique(groups):
        at = np.flatnonzero(groups == g)
        w, u = np.linalg.eigh(np.eye(len(at)) - hat[np.ix_(at, at)])
        root = u @ np.diag(w ** -.5) @ u.T
        variance += (root.sum(axis=0) @ e[at] / n) ** 2
        columns.append(rest[:, at] @ root @ np.ones(len(at)) / n)
    eigen = np.linalg.eigvalsh(np.array(columns) @ np.array(columns).T)
    return math.sqrt(variance), eigen.sum() ** 2 / (eigen ** 2).sum()


def one_method(data, out):
    k, c = np.array(data["a"]).T
    n, runs, won = len(k), int(k.sum()), int(c.sum())
    y = c / k
    alike = len({Fraction(int(x), int(m)) for x, m in zip(c, k)}) == 1
    out.interval("wilson", *wilson_at(won / runs, runs))
    out.interval("clopper_pearson", *exact_at(won, runs))
    se = None if n < 2 else 0.0 if alike else y.std(ddof=1) / math.sqrt(n)
    out.about("mean", y.mean(), se, n - 1)
    if n >= 2 and alike:
        out.interval("mean", *wilson_at(y[0], n))
    if se:
        eff = y.mean() * (1 - y.mean()) / se ** 2
        kg = eff * (stats.t.ppf(.975, runs - 1) / stats.t.ppf(.975, n - 1)) ** 2
        out["near_ends.n"] = eff
        out.interval("near_ends.wilson", *wilson_at(y.mean(), eff))
        out.interval("near_ends.korn_graubard", *exact_at(y.mean() * kg, kg))
    else:
        out["near_ends.n"] = None
    task = np.repeat(np.arange(n), k)
    seen = np.concatenate([[1.0] * x + [0.0] * (m - x) for x, m in zip(c, k)])
    p, e = won / runs, c - k * won / runs
    out["ratio"], cr0 = p, math.sqrt((e ** 2).sum()) / runs
    if n >= 2:
        out["ratio.cr1"] = cr0 * math.sqrt(n / (n - 1))
        out["ratio.cr2"], out["ratio.df"] = cr2(task, seen)
        robust = sm.OLS(seen, np.ones(runs)).fit(cov_type="cluster", cov_kwds={"groups": task, "use_correction": False})
        assert math.isclose(robust.bse[0], cr0, rel_tol=1e-7, abs_tol=1e-9)
        half = 0 if alike else stats.t.ppf(.975, out["ratio.df"]) * out["ratio.cr2"]
        out.interval("ratio", *(None, None) if alike else (p - half, p + half))
    two = k >= 2
    one_of = 1 - special.comb(k - c, 2)[two] / special.comb(k, 2)[two]
    all_of = special.comb(c, 2)[two] / special.comb(k, 2)[two]
    out["pass_one"], out["pass_all"] = (one_of.mean(), all_of.mean()) if two.any() else (None, None)
    if two.sum() > 1:
        out["pass_one.se"] = one_of.std(ddof=1) / math.sqrt(two.sum())
    if n >= 2 and runs > n and 0 < p < 1:
        k0, msb = (runs - (k ** 2).sum() / runs) / (n - 1), (k * (y - p) ** 2).sum() / (n - 1)
        msw = sum(((seen[task == i] - y[i]) ** 2).sum() for i in range(n)) / (runs - n)
        out["icc"] = (msb - msw) / (msb + (k0 - 1) * msw)
        out["icc.design_effect"] = 1 + (k0 - 1) * out["icc"]
        if len(set(k)) == 1 and msw > 0:
            f = [msb / msw / stats.f.ppf(q, n - 1, runs - n) for q in (.975, .025)]
            out.interval("icc", *[(x - 1) / (x + k[0] - 1) for x in f])
    within = [seen[task == i].var(ddof=1) if k[i] > 1 else None for i in range(n)]
    if two.any():
        typical = np.mean([v for v in within if v is not None])
        v = np.array([typical if x is None else x for x in within])
        out["rerun.tasks"], out["rerun.runs"] = math.sqrt((v / k).sum()) / n, math.sqrt((v * k).sum()) / runs
    else:
        out["rerun.tasks"] = out["rerun.runs"] = None
    cost = np.array(data["cost"])
    out["cost"] = cost.sum() / won if won else None
    if won and n >= 2:
        t2 = stats.t.ppf(.975, n - 1) ** 2
        cov = np.cov(cost, c) / n
        quad = [c.mean() ** 2 - t2 * cov[1, 1], -2 * (cost.mean() * c.mean() - t2 * cov[0, 1]), cost.mean() ** 2 - t2 * cov[0, 0]]
        if quad[0] > 1e-9:
            out.interval("cost", *sorted(np.roots(quad).real))


def run_scores(ka, kb, ca, cb):
    """Each task's part in the difference of all successes over all runs, were all rates one: whole numbers."""
    ka, kb, ca, cb = ([int(x) for x in xs] for xs in (ka, kb, ca, cb))
    of_a, of_b, won = sum(ka), sum(kb), sum(ca) + sum(cb)
    runs = of_a + of_b
    return [((c * runs - k * won) * of_b - (e * runs - m * won) * of_a) if k and m else 0
            for k, m, c, e in zip(ka, kb, ca, cb)]


def two_methods(data, out):
    (ka, ca), (kb, cb) = np.array(data["a"]).T, np.array(data["b"]).T
    lost = np.array(data["lost"])
    d, n, group = ca / ka - cb / kb, len(ka), np.array(data["repository"])
    whole = [Fraction(int(x), int(m)) - Fraction(int(z), int(l)) for x, m, z, l in zip(ca, ka, cb, kb)]
    varied = len(set(whole)) > 1
    se = d.std(ddof=1) / math.sqrt(n) if varied else 0.0 if n > 1 else None
    out.about("difference", d.mean(), se, n - 1)
    out["difference.p"] = stats.ttest_1samp(d, 0).pvalue if varied else None
    u = (ca - ka * ca.sum() / ka.sum()) / ka.sum() - (cb - kb * cb.sum() / kb.sum()) / kb.sum()
    se_u = math.sqrt(n / (n - 1) * (u ** 2).sum()) if n > 1 else None
    if se_u is None or se_u > 1e-9:
        out.about("ratio_difference", ca.sum() / ka.sum() - cb.sum() / kb.sum(), se_u, n - 1)
    steps = [abs(int(x * 60)) for x in whole]
    chance = np.ones(1)
    for s in steps:
        chance = np.convolve(chance, np.bincount([0, 2 * s], minlength=2 * s + 1) / 2)
    sums = np.arange(len(chance)) - sum(steps)
    total = int(sum(whole) * 60)
    out["flips"], out["flips.p"] = total, chance[np.abs(sums) >= abs(total)].sum()
    scores = run_scores(ka, kb, ca, cb)
    ways = {0: 1}
    for x in scores:
        after = {}
        for at, count in ways.items():
            for to in (at + x, at - x):
                after[to] = after.get(to, 0) + count
        ways = after
    out["run_flips.p"] = sum(count for at, count in ways.items() if abs(at) >= abs(sum(scores))) / 2 ** n
    if varied:
        lower, upper = stats.t.sf((d.mean() + .1) / se, n - 1), stats.t.cdf((d.mean() - .1) / se, n - 1)
        out["equivalence.p"], out["equivalence.not_inferior"] = max(lower, upper), lower
    low = ca / (ka + lost[:, 0]) - (cb + lost[:, 1]) / (kb + lost[:, 1])
    high = (ca + lost[:, 0]) / (ka + lost[:, 0]) - cb / (kb + lost[:, 1])
    out.interval("bounds", low.mean(), high.mean())
    if n > 1:
        s = [x.std(ddof=1) / math.sqrt(n) for x in (low, high)]
        width = (high.mean() - low.mean()) / max(s) if max(s) > 1e-9 else None
        c = optimize.brentq(lambda x: stats.norm.cdf(x + width) - stats.norm.cdf(-x) - .95, 1.6, 2, xtol=1e-15) if width is not None else 0
        out.interval("bounds.interval", low.mean() - c * s[0], high.mean() + c * s[1])
    for name, of_a, of_b in (("tasks", 1 / (n * ka), 1 / (n * kb)), ("runs", np.full(n, 1 / ka.sum()), np.full(n, 1 / kb.sum()))):
        # In units of which all sums are whole.
        unit = n * 60 if name == "tasks" else int(ka.sum() * kb.sum())
        x, y = np.rint(of_a * unit).astype(int), np.rint(of_b * unit).astype(int)
        sums = {0: 1.0}
        for i in range(n):
            t = int(ca[i] + cb[i])
            may = np.arange(max(0, t - kb[i]), min(ka[i], t) + 1)
            chances = stats.hypergeom.pmf(may, ka[i] + kb[i], t, ka[i])
            after = {}
            for at, q in sums.items():
                for m, h in zip(may, chances):
                    to = int(at + m * x[i] - (t - m) * y[i])
                    after[to] = after.get(to, 0) + q * h
            sums = after
        seen = abs(int((ca * x - cb * y).sum()))
        out[f"equals.{name}.p"] = sum(q for at, q in sums.items() if abs(at) >= seen)
        far = {}
        for at, q in sums.items():
            far[abs(at)] = far.get(abs(at), 0) + q
        beyond = 0
        for at in sorted(far, reverse=True):
            if beyond + far[at] > .05 + 1e-12:
                out[f"equals.{name}"] = at / unit
                break
            beyond += far[at]
    groups = np.unique(group)
    out["grouped"] = d.mean()
    if len(groups) > 1:
        e, df = cr2(group, d)
        if e > 1e-9:
            out.about("grouped", d.mean(), e, df)
            out["grouped.df"], out["grouped.p"] = df, 2 * stats.t.sf(abs(d.mean() / e), df)


def of_runs(data, out):
    stratum, won, at, worker = np.array(data["runs"]).T
    covered = spread = variance = 0
    excess, cov = np.zeros(4), np.zeros((4, 4))
    for s in np.unique(stratum):
        i = stratum == s
        m, y, t = int(i.sum()), won[i] - won[i].mean(), at[i] - at[i].mean()
        size = np.array([(worker[i] == w).sum() for w in range(4)])
        excess += np.array([y[worker[i] == w].sum() for w in range(4)])
        if m > 1:
            covered, spread, variance = covered + y @ t, spread + t @ t, variance + (y @ y) * (t @ t) / (m - 1)
            x = won[i].sum()
            cov += x * (m - x) / (m * m * (m - 1)) * (m * np.diag(size) - np.outer(size, size))
    out["trend.slope"] = covered / spread if spread > 0 else None
    if variance > 1e-9:
        out["trend"], out["trend.p"] = covered ** 2 / variance, stats.chi2.sf(covered ** 2 / variance, 1)
    if np.abs(cov).max() > 1e-9:
        q, df = excess @ np.linalg.pinv(cov, rcond=1e-9) @ excess, np.linalg.matrix_rank(cov, tol=1e-9)
        out["workers"], out["workers.p"] = q, stats.chi2.sf(q, df)
    times, ends = np.array(data["lives"]).T
    for t in (2, 5, 8):
        left, events = 1.0, []  # survival just before, and of each time what happened
        f = 0.0
        for u in np.unique(times[times <= t]):
            n, d1, d = (times >= u).sum(), ((times == u) & (ends == 1)).sum(), ((times == u) & (ends > 0)).sum()
            f += left * d1 / n
            events.append((f, n, d1, d, left))
            left *= 1 - d / n
        v = sum((f - fu) ** 2 * (d / (n * (n - d)) if d < n else 0) + s * s * d1 * (n - d1) / n ** 3 - 2 * (f - fu) * s * d1 / n ** 2
                for fu, n, d1, d, s in events)
        # Where the last event was no success, the error is the last success's.
        out[f"incidence.{t}"] = f
        if events and events[-1][2] > 0:
            out[f"incidence.se.{t}"] = math.sqrt(max(0, v))
    for i, p in enumerate(multipletests(data["p"], method="holm")[1]):
        out[f"holm.{i}"] = p
    every = np.concatenate(data["samples"])
    out["quantile"] = np.quantile(every, .9)
    n = len(data["samples"])
    if n >= 2:
        out["median"] = np.median(every)
        k = np.array([len(s) for s in data["samples"]])
        e = np.array([(np.array(s) <= out["median"]).sum() for s in data["samples"]])
        e = e - k * e.sum() / k.sum()
        half = stats.t.ppf(.975, n - 1) * math.sqrt((e ** 2).sum() * n / (n - 1)) / k.sum()
        if half > 1e-9:
            out.interval("median", *np.quantile(every, [max(0, .5 - half), min(1, .5 + half)]))
    words = np.random.Philox(key=np.array([20260307, 1], np.uint64),
                             counter=np.array([0, data["replicate"], 0, 0], np.uint64)).random_raw(n)
    halves = np.stack([words & np.uint64(0xffffffff), words >> np.uint64(32)], axis=1).ravel()[:n]
    for i, w in enumerate(np.bincount((halves * np.uint64(n) >> np.uint64(32)).astype(int), minlength=n)):
        out[f"weight.{i}"] = w
    theta, errors = np.array(data["estimates"]), np.array(data["errors"])
    far = (np.abs(np.array(data["replicates"]).reshape(-1, len(theta)) - theta) / errors).max(axis=1)
    out["max_t"] = np.quantile(far, .95) * math.sqrt(60 / 59)
    for j in range(len(theta)):
        out.interval(f"max_t.{j}", theta[j] - out["max_t"] * errors[j], theta[j] + out["max_t"] * errors[j])


def raw_words(stream, replicate, count):
    return np.random.Philox(key=np.array([20260307, stream], np.uint64),
                            counter=np.array([0, replicate, 0, 0], np.uint64)).random_raw(count)


@functools.cache
def family_draws():
    """Weights of 1,000 replicates of the tasks, and 9,999 assignments of signs."""
    weights, signs = [], []
    for b in range(1000):
        words = raw_words(1, b, FAMILY_TASKS)
        halves = np.stack([words & np.uint64(0xffffffff), words >> np.uint64(32)], axis=1).ravel()[:FAMILY_TASKS]
        at = (halves * np.uint64(FAMILY_TASKS) >> np.uint64(32)).astype(int)
        weights.append(np.bincount(at, minlength=FAMILY_TASKS))
    for b in range(9999):
        word = int(raw_words(2, b, 1)[0])
        signs.append([-1 if word >> i & 1 else 1 for i in range(FAMILY_TASKS)])
    return np.array(weights), np.array(signs)


def of_family(data, out):
    """Registered max-t: simultaneous intervals by joint replicates, p by common sign flips, step down."""
    if data["family"] is None:
        return
    runs, won = np.array(data["family"]["runs"]), np.array(data["family"]["won"])
    weights, signs = family_draws()
    theta, errors, star, whole, sizes = [], [], [], [], []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        both = (runs[a] > 0) & (runs[b] > 0)
        n = int(both.sum())
        ka, kb, ca, cb = (np.where(both, x, 0) for x in (runs[a], runs[b], won[a], won[b]))
        d = np.where(both, ca / np.maximum(ka, 1) - cb / np.maximum(kb, 1), 0)
        if data["family"]["by_task"]:
            theta.append(d.sum() / n)
            errors.append(d[both].std(ddof=1) / math.sqrt(n))
            star.append(weights @ d / (weights @ both))
        else:
            pa, pb = ca.sum() / ka.sum(), cb.sum() / kb.sum()
            u = (ca - ka * pa) / ka.sum() - (cb - kb * pb) / kb.sum()
            theta.append(pa - pb)
            errors.append(math.sqrt(n / (n - 1) * (u ** 2).sum()))
            star.append(weights @ ca / (weights @ ka) - weights @ cb / (weights @ kb))
        parts = [int(x) for x in np.rint(d * 60)]
        if not data["family"]["by_task"]:
            parts = run_scores(ka, kb, ca, cb)
            unit = math.gcd(*parts) or 1
            parts = [x // unit for x in parts]
            largest = max(map(abs, parts))
            if largest > 32767:  # rounded, halves away from 0
                parts = [int(math.copysign(math.floor(abs(x * (32767 / largest)) + .5), x)) for x in parts]
        whole.append(parts)
        sizes.append(n)
    if min(sizes) < 50:
        return
    theta, errors, star, whole = np.array(theta), np.array(errors), np.array(star).T, np.array(whole)
    real = errors > 1e-12
    if real.any():
        far = (np.abs(star - theta)[:, real] / errors[real]).max(axis=1)
        critical = np.quantile(far, .95) * math.sqrt(min(sizes) / (min(sizes) - 1))
        out["family.critical"] = critical
        for j in range(3):
            half = critical * errors[j] if real[j] else None
            out.interval(f"family.{j}", *(theta[j] - half, theta[j] + half) if half else (None, None))
    # |sum| / sqrt(sum of squares), squared and over one denominator, so that ties are ties.
    squares = np.maximum((whole ** 2).sum(axis=1), 1).astype(object)
    scale = np.prod(squares) // squares
    seen, flipped = whole.sum(axis=1).astype(object) ** 2 * scale, (signs @ whole.T).astype(object) ** 2 * scale
    p = 0.0
    order = np.argsort(-seen, kind="stable")
    for at, j in enumerate(order):
        p = max(p, (1 + (flipped[:, order[at:]].max(axis=1) >= seen[j]).sum()) / 10000)
        out[f"family.p.{j}"] = p


def of_weights(data, out):
    """Means of levels in given shares; tasks of levels without one are left out."""
    (ka, ca), (kb, cb) = np.array(data["a"]).T, np.array(data["b"]).T
    levels = np.array(data["levels"])
    whole = {"weighted_rate": [Fraction(int(x), int(m)) for x, m in zip(ca, ka)]}
    whole["weighted_difference"] = [x - Fraction(int(z), int(l)) for x, z, l in zip(whole["weighted_rate"], cb, kb)]
    share = {level: w / 1e6 for level, w in data["weights"].items()}
    for name, values in whole.items():
        of = {level: [v for v, at in zip(values, levels) if at == level] for level in share}
        counts = np.array([share[level] / len(v) for level, v in of.items() for _ in v])
        out[name + ".worth"] = counts.sum() ** 2 / (counts ** 2).sum() if len(counts) else 0
        if not all(of.values()):
            out[name] = None
            continue
        value = sum(w * np.mean([float(v) for v in of[level]]) for level, w in share.items())
        if any(len(v) == 1 for v in of.values()):
            out[name] = value
            out[name + ".se"] = out[name + ".df"] = out[name + ".post_stratified"] = None
            out.interval(name, None, None)
            continue
        spread = {level: np.var([float(v) for v in values], ddof=1) if len(set(values)) > 1 else 0 for level, values in of.items()}
        parts = {level: share[level] ** 2 * spread[level] / len(of[level]) for level in share}
        n = len(counts)
        out[name + ".post_stratified"] = math.sqrt(sum(share[level] * s / n + (1 - share[level]) * s / n ** 2 for level, s in spread.items()))
        variance = sum(parts.values())
        df = variance ** 2 / sum(parts[level] ** 2 / (len(of[level]) - 1) for level in share) if variance else None
        out.about(name, value, math.sqrt(variance), df)
        out[name + ".df"] = df


def compare(program, sets):
    rng = np.random.default_rng(20260307)
    data = [data_set(rng, i) for i in range(sets)]
    lines = "".join(json.dumps(d) + "\n" for d in data)
    got = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(got) == sets, len(got)
    compared, wrong = {}, []
    for d, line in zip(data, got):
        said, expected = json.loads(line), Expected()
        for part in (one_method, two_methods, of_runs, of_weights, of_family):
            part(d, expected)
        for name, value in expected.items():
            mine = said.get(name, "no such estimate")
            compared[name.split(".")[0]] = compared.get(name.split(".")[0], 0) + 1
            if value is None or mine is None or isinstance(mine, str):
                near = value is None and mine is None
            else:
                # Where a variance is a difference that cancels, its root has half the digits.
                near = math.isclose(mine, value, rel_tol=1e-8, abs_tol=1e-7 if name.startswith("incidence.se") else 1e-9)
            if not near:
                wrong.append((name, mine, value, d))
    for name, mine, value, d in wrong[:10]:
        print(f"{name}: {mine}, by SciPy {value}, of {json.dumps(d)}")
    print("compared", compared, "in", sets, "data sets")
    assert not wrong, f"{len(wrong)} estimates are not those of SciPy: {sorted({w[0] for w in wrong})}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--sets", type=int, default=200)
    args = parser.parse_args()
    if os.environ.get("PROCTOR_ORACLE_INNER") != "1":
        python = python_with_packages(args.work)
        if python is None:
            print("did not run: stats_differential: there is no numpy, scipy and statsmodels here and their registry does not answer")
            return 0
        return subprocess.run([python, __file__, *sys.argv[1:]], env={**os.environ, "PROCTOR_ORACLE_INNER": "1"}).returncode
    compare(args.program, args.sets)
    return 0


if os.environ.get("PROCTOR_ORACLE_INNER") == "1":
    import warnings
    from fractions import Fraction

    import numpy as np
    import statsmodels.api as sm
    from scipy import optimize, special, stats
    from statsmodels.stats.multitest import multipletests

    warnings.simplefilter("ignore")
    Z = stats.norm.ppf(.975)
sys.exit(main())
