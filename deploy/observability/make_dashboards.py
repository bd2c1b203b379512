#!/usr/bin/env python3
"""Writes the Grafana dashboards below grafana/dashboards from the descriptions in this file.

  make_dashboards.py            write them
  make_dashboards.py --check    exit 1 when a file is not what this program would write

A dashboard is a list of rows, a row a list of panels; places on the grid follow from the order. What later features bring
(memory, coherence, pages) joins as a row of its own: see "Adding a panel" in README.md. Every query is run against a real
Prometheus by tests/e2e/dashboards_test.py, every metric looked up by tests/observability/static_test.py.
"""
import json
import pathlib
import sys

OUT = pathlib.Path(__file__).resolve().parent / "grafana/dashboards"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
RATIO, SECONDS, BYTES, COUNT, RATE, TIME = "percentunit", "s", "bytes", "short", "cps", "dateTimeFromNow"
GREEN, YELLOW, RED = "green", "orange", "red"

# ---- queries -------------------------------------------------------------------------------------------------------------

OURS = 'cluster=~"$cluster"'
ONE = 'cluster=~"$cluster", profile="$job"'
INFO = 'perfd_profile_info{cluster=~"$cluster", user=~"$user", command=~"$program"}'


def last(selector):
    """The last value within the time shown: a profile's series end an hour after it."""
    return f"last_over_time({selector}[$__range])"


def one_of(selector, keys):
    """1 for one series of each group, the one that was shown longest: a loop's line, path or verdict may become known while
    its profile runs, and of several descriptions within the time shown a join must take one, or Prometheus refuses it."""
    return f"(topk by ({keys}) (1, count_over_time({selector}[$__range])) > bool 0)"


def of_job(expression, labels="user, command, slurm_job"):
    return f"{expression} * on (cluster, profile) group_left ({labels}) {one_of(INFO, 'cluster, profile')}"


def named(expression):
    infos = one_of(f"perfd_loop_info{{{OURS}}}", "cluster, profile, loop")
    return f"{expression} * on (cluster, profile, loop) group_left (function, file, line) {infos}"


VERDICTS = one_of(f"perfd_loop_verdict_info{{{OURS}}}", "cluster, profile, loop")


def loops_of_job(metric):
    return named(last(f"{metric}{{{ONE}}}"))


def q(expression, legend="", ref="A", **more):
    return {"refId": ref, "expr": expression, "legendFormat": legend, "datasource": SOURCE, **more}


def now(expression, legend="", ref="A"):
    return q(expression, legend, ref, instant=True, range=False)


def rows_of(expression, ref="A"):
    return q(expression, ref=ref, instant=True, range=False, format="table")


# ---- panels --------------------------------------------------------------------------------------------------------------

def panel(kind, title, targets, width, height, about, unit="", options=None, defaults=None, **more):
    field = {"unit": unit, **(defaults or {})} if unit else dict(defaults or {})
    return {"type": kind, "title": title, "description": about, "datasource": SOURCE, "targets": targets,
            "gridPos": {"w": width, "h": height}, "fieldConfig": {"defaults": field, "overrides": []},
            "options": options or {}, **more}


def limits(*steps):
    """limits(("green", None), ("red", 5)): from which value on which colour."""
    return {"thresholds": {"mode": "absolute", "steps": [{"color": c, "value": v} for c, v in steps]},
            "color": {"mode": "thresholds"}}


def stat(title, expression, about, unit=COUNT, width=4, colours=(("text", None),), legend="", text="auto", height=4, **more):
    return panel("stat", title, [now(expression, legend)], width, height, about, unit,
                 {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value",
                  "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "textMode": text},
                 {**limits(*colours), **more})


def lines(title, targets, about, unit=COUNT, width=12, height=8, stacked=False, **defaults):
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 25 if stacked else 5, "showPoints": "never",
              "stacking": {"mode": "normal" if stacked else "none", "group": "A"}}
    return panel("timeseries", title, targets, width, height, about, unit,
                 {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                  "tooltip": {"mode": "multi", "sort": "desc"}}, {"custom": custom, "min": 0, **defaults})


def bars(title, expression, legend, about, unit=RATIO, width=12, height=8, **defaults):
    return panel("bargauge", title, [now(expression, legend)], width, height, about, unit,
                 {"orientation": "horizontal", "displayMode": "basic", "showUnfilled": True,
                  "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}},
                 {"min": 0, **limits(("blue", None)), **defaults})


REPORT = {"title": "Report", "url": "${perfd}/profiles/${__value.text}", "targetBlank": True}
JOB_PAGE = {"title": "This job's dashboard",
            "url": "/d/perfd-job?var-job=${__value.text}&${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}"}


def table(title, targets, columns, about, sort, width=24, height=10, pivot=None):
    """columns: {field: (heading, unit or None)}, in this order; fields that are not named are hidden."""
    steps = [{"id": "labelsToFields", "options": {"mode": "columns", "valueLabel": pivot}}] if pivot else []
    hidden = {"Time": True, "instance": True, "job": True, "cluster": True, "__name__": True, "loop": True}
    hidden = {k: v for k, v in hidden.items() if k not in columns}
    steps += [{"id": "merge", "options": {}},
              {"id": "organize", "options": {"excludeByName": hidden,
                                             "indexByName": {field: i for i, field in enumerate(columns)},
                                             "renameByName": {field: c[0] for field, c in columns.items()}}}]
    overrides = []
    for field, (heading, unit) in columns.items():
        properties = [{"id": "unit", "value": unit}] if unit else []
        if unit == RATIO:
            properties += [{"id": "decimals", "value": 1}]
        if field == "profile":
            properties += [{"id": "links", "value": [REPORT, JOB_PAGE]}]
        if properties:
            overrides.append({"matcher": {"id": "byName", "options": heading}, "properties": properties})
    made = panel("table", title, targets, width, height, about,
                 options={"showHeader": True, "cellHeight": "sm",
                          "sortBy": [{"displayName": columns[sort][0], "desc": True}]} if sort else {"showHeader": True},
                 defaults={"custom": {"filterable": True, "align": "auto"}, "decimals": 2}, transformations=steps)
    made["fieldConfig"]["overrides"] = overrides
    return made


# ---- dashboards ----------------------------------------------------------------------------------------------------------

def variable(name, label, query, **more):
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "definition": query,
            "query": {"query": query, "refId": f"variable-{name}"}, "refresh": 2, "sort": 2, "hide": 0, **more}


ALL = {"includeAll": True, "allValue": ".*", "multi": False, "current": {"text": "All", "value": "$__all", "selected": True}}
VARIABLES = {
    "datasource": {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0,
                   "refresh": 1, "regex": "", "includeAll": False, "multi": False, "current": {}},
    "cluster": variable("cluster", "Cluster", "label_values(perfd_build_info, cluster)", **ALL),
    "user": variable("user", "User", f"label_values(perfd_profile_info{{{OURS}}}, user)", **ALL),
    "program": variable("program", "Program",
                        f'label_values(perfd_profile_info{{{OURS}, user=~"$user"}}, command)', **ALL),
    "job": variable("job", "Job", f"label_values({INFO}, profile)", includeAll=False, multi=False, current={}),
    "perfd": {"name": "perfd", "label": "perfd (for links)", "type": "textbox", "hide": 0,
              "query": "http://127.0.0.1:9754", "current": {"text": "http://127.0.0.1:9754", "value": "http://127.0.0.1:9754"},
              "options": [{"text": "http://127.0.0.1:9754", "value": "http://127.0.0.1:9754", "selected": True}]},
}
BETWEEN = {"title": "perfd", "type": "dashboards", "tags": ["perfd"], "asDropdown": True, "includeVars": True,
           "keepTime": True, "icon": "external link", "targetBlank": False}
REPORT_OF_JOB = {"title": "Report of this job", "type": "link", "url": "${perfd}/profiles/${job}", "icon": "doc",
                 "includeVars": False, "keepTime": False, "targetBlank": True, "tags": [], "asDropdown": False}


def dashboard(uid, title, about, variables, rows, links=(), since="now-3h"):
    panels, y = [], 0
    for heading, members in rows:
        panels.append({"type": "row", "title": heading, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        y, x, height = y + 1, 0, 0
        for member in members:
            width = member["gridPos"]["w"]
            if x + width > 24:
                x, y, height = 0, y + height, 0
            member["gridPos"] = {"x": x, "y": y, "w": width, "h": member["gridPos"]["h"]}
            x, height = x + width, max(height, member["gridPos"]["h"])
            panels.append(member)
        y += height
    for number, member in enumerate(panels, 1):
        member["id"] = number
    return {"uid": uid, "title": title, "description": about, "tags": ["perfd"], "timezone": "browser", "editable": True,
            "graphTooltip": 1, "schemaVersion": 38, "version": 1, "refresh": "30s", "time": {"from": since, "to": "now"},
            "timepicker": {}, "annotations": {"list": []}, "links": [BETWEEN, *links],
            "templating": {"list": [VARIABLES[name] for name in ("datasource", *variables)]}, "panels": panels}


def fleet():
    running = 'state=~"PENDING|DISCOVERING|SAMPLING|INJECTING|ANALYZING"'
    jobs = table("Jobs", [
        rows_of(f"max by (cluster, profile, name, user, command, slurm_job) ({last(INFO)})", "A"),
        rows_of(f"max by (cluster, profile) ({last('perfd_profile_submitted_timestamp_seconds{' + OURS + '}')} * 1000)", "B"),
        rows_of(f"max by (cluster, profile) ({last('perfd_profile_ranks{' + OURS + '}')})", "C"),
        rows_of(f"max by (cluster, profile) ({last('perfd_loop_gain_ratio{' + OURS + '}')})", "D"),
        rows_of(f"max by (cluster, profile) ({last('perfd_profile_imbalance_ratio{' + OURS + '}')})", "E"),
        rows_of(f"max by (cluster, profile) ({last('perfd_profile_added_time_ratio{' + OURS + '}')})", "F"),
        rows_of(f"max by (cluster, profile) ({last('perfd_profile_missing_ratio{' + OURS + '}')})", "G"),
    ], {"profile": ("Job", None), "slurm_job": ("Slurm job", None), "command": ("Program", None), "user": ("User", None),
        "name": ("Name", None), "Value #B": ("Submitted", TIME), "Value #C": ("Ranks", COUNT),
        "Value #D": ("Largest gain", RATIO), "Value #E": ("Imbalance", None), "Value #F": ("Time added", RATIO),
        "Value #G": ("Samples missing", RATIO)},
        "Jobs profiled within the time shown. Gain: share of the job's time that the best fix of one loop would save at most. "
        "Imbalance: compute time of the slowest rank over the mean. A click on the job leads to its report.", "Value #B")
    jobs["transformations"][-1]["options"]["excludeByName"]["Value #A"] = True
    return dashboard("perfd-fleet", "perfd: fleet", "All clusters, programs and users at a glance.",
                     ("cluster", "user", "program", "perfd"), [
        ("Now", [
            stat("Agents connected", f"sum(perfd_agents_connected{{{OURS}}})", "Nodes that can be profiled.",
                 colours=((RED, None), (GREEN, 1))),
            stat("Agents away", f"sum(perfd_agents_known{{{OURS}}}) - sum(perfd_agents_connected{{{OURS}}})",
                 "Connected within the last day, and not now.", colours=((GREEN, None), (YELLOW, 1))),
            stat("Profiles under way", f"sum(perfd_profiles{{{OURS}, {running}}})", "Requests that are not over."),
            stat("Profiles with a result", f'sum(perfd_profiles{{{OURS}, state=~"DONE|PARTIAL"}})', "Kept in the store."),
            stat("Profiles that failed", f'sum(perfd_profiles{{{OURS}, state="FAILED"}})', "Kept in the store."),
            stat("Alerts", 'count(ALERTS{alertname=~"Perfd.*", alertstate="firing"}) or vector(0)', "Firing now.",
                 colours=((GREEN, None), (RED, 1))),
        ]),
        ("Jobs", [jobs]),
        ("Where the fleet's time goes", [
            bars("Heaviest loops", 'topk(15, max by (command, function, file, line) ('
                 + last('cluster_command_loop:perfd_loop_share_ratio:avg{' + OURS + ', command=~"$program"}') + '))',
                 "{{command}}  {{function}}  {{file}}:{{line}}",
                 "Share of their jobs' time, mean of the profiles of the program.", max=1, height=11),
            bars("Largest gains", 'topk(15, max by (command, function, file, line) ('
                 + last('cluster_command_loop:perfd_loop_gain_ratio:max{' + OURS + ', command=~"$program"}') + '))',
                 "{{command}}  {{function}}  {{file}}:{{line}}",
                 "Share of their jobs' time that the best fix of the loop would save at most, by measured variants.", max=1,
                 height=11),
        ]),
        ("Scheduler hook", [
            bars("What became of jobs", f"sum by (decision) (increase(perfd_hook_jobs_total{{{OURS}}}[$__range]))", "{{decision}}",
                 "Jobs of schedulers that perfd decided about within the time shown. not_chosen: not the Nth; quota: it would have "
                 "been profiled, but too many were; unavailable: it would have been, but could not be.", COUNT, decimals=0),
            lines("Jobs decided about", [q(f"sum by (decision) (rate(perfd_hook_jobs_total{{{OURS}}}[$__rate_interval]))",
                                           "{{decision}}")], "Per second.", RATE, stacked=True),
        ]),
        ("Over time", [
            lines("Samples stored", [q(f"sum by (category) (cluster_category:perfd_samples:rate5m{{{OURS}}})", "{{category}}")],
                  "By kind of place, per second, mean of five minutes.", RATE, stacked=True),
            lines("Profiles by state", [q(f"sum by (state) (perfd_profiles{{{OURS}, {running}}})", "{{state}}")],
                  "Those that are not over.", stacked=True),
            lines("Shares of the heaviest loops",
                  [q(f'topk(8, cluster_command_loop:perfd_loop_share_ratio:avg{{{OURS}, command=~"$program"}})',
                     "{{command}}  {{function}}  {{file}}:{{line}}")],
                  "Mean of the profiles of the program that are under way or recent: a loop that got heavier shows here.",
                  RATIO),
            lines("From request to first sample",
                  [q(f"histogram_quantile(0.9, sum by (le) (rate(perfd_attach_seconds_bucket{{{OURS}}}[$__rate_interval])))",
                     "90 %"),
                   q(f"cluster:perfd_attach_seconds:p90_1h{{{OURS}}}", "90 %, last hour, {{cluster}}", "B")],
                  "Time until a profile's first sample.", SECONDS),
        ]),
    ])


def job():
    def figure(title, metric, about, unit=COUNT, width=4, **more):
        return stat(title, f"max({last(metric + '{' + ONE + '}')})", about, unit, width, **more)

    state = f"topk(1, max by (state) (max_over_time(timestamp(perfd_profile_state{{{ONE}}})[$__range:])))"
    return dashboard("perfd-job", "perfd: one job", "Where the time of one job goes, and what it cost to find out.",
                     ("cluster", "user", "program", "job", "perfd"), [
        ("The job", [
            panel("table", "What", [rows_of(f"max by (profile, user, command, slurm_job, name) "
                                            f"({last('perfd_profile_info{' + ONE + '}')})")], 12, 4,
                  "Who asked for what.", options={"showHeader": True},
                  transformations=[{"id": "organize", "options": {
                      "excludeByName": {"Time": True, "Value": True}, "indexByName": {},
                      "renameByName": {"profile": "Job", "user": "User", "command": "Program", "slurm_job": "Slurm job",
                                       "name": "Name"}}}]),
            stat("State", state, "The last one seen within the time shown.", legend="{{state}}", text="name"),
            figure("Done", "perfd_profile_progress_ratio", "Of the sampling time.", RATIO),
            stat("Submitted", f"max({last('perfd_profile_submitted_timestamp_seconds{' + ONE + '}')}) * 1000",
                 "When the request was accepted.", TIME),
            figure("Nodes", "perfd_profile_nodes", "That take part."),
            figure("Ranks", "perfd_profile_ranks", "Under measurement."),
            figure("Threads", "perfd_profile_threads", "Under measurement."),
            figure("Samples", "perfd_profile_samples_total", "Stored."),
            figure("Imbalance", "perfd_profile_imbalance_ratio",
                   "Compute time of the slowest rank over the mean; 1 is even. Once the profile is over.", "none",
                   colours=((GREEN, None), (YELLOW, 1.1), (RED, 1.3)), decimals=2),
            figure("Samples missing", "perfd_profile_missing_ratio", "Lost or dropped. Once the profile is over.", RATIO,
                   colours=((GREEN, None), (YELLOW, 0.01), (RED, 0.05)), decimals=2),
        ]),
        ("Where its time goes", [
            bars("Kinds of places", last('perfd_profile_category_share_ratio{' + ONE + '}'), "{{category}}",
                 "All of the job's time: loops, the program outside loops, libraries, kernel, unknown. Once it is over.",
                 max=1, width=8),
            bars("Heaviest loops", f"sort_desc({loops_of_job('perfd_loop_share_ratio')})", "{{function}}  {{file}}:{{line}}",
                 "Share of the job's time.", max=1, width=8),
            bars("Gain if fixed", f"sort_desc({loops_of_job('perfd_loop_gain_ratio')})", "{{function}}  {{file}}:{{line}}",
                 "Share of the job's time that the best fix of the loop would save at most. Measured loops only.",
                 max=1, width=8),
            lines("Shares over time", [q(named(f"perfd_loop_share_ratio{{{ONE}}}"), "{{function}}  {{file}}:{{line}}")],
                  "Of all samples so far: they settle. A loop that rises late belongs to a later phase.", RATIO, max=1),
            lines("Samples", [q(f"rate(perfd_profile_samples_total{{{ONE}}}[$__rate_interval])", "stored per second")],
                  "Arriving from the agents.", RATE),
        ]),
        ("Why its loops take it", [saturations(ONE)]),
        ("What the profile cost it", [
            figure("Time added by variants", "perfd_profile_added_time_ratio",
                   "Stops and pauses of its ranks over the elapsed time. Once the profile is over.", RATIO, decimals=2, width=6),
            figure("Budget", "perfd_profile_budget_ratio", "What it was allowed to add.", RATIO, decimals=2, width=6),
            figure("Sampling", "perfd_profile_sampling_overhead_ratio", "Cost of sampling over the job's CPU time.", RATIO,
                   decimals=3, width=6),
            panel("stat", "Loops by state", [now(f"sum by (state) ({last('perfd_profile_loops{' + ONE + '}')})", "{{state}}")],
                  6, 4, "Loops that variants were to measure.", COUNT,
                  {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "none",
                   "graphMode": "none", "textMode": "value_and_name"}),
        ]),
    ], links=[REPORT_OF_JOB])


def saturations(which):
    """One line of each measured loop, one column of each variant."""
    expression = named(f"max by (cluster, profile, loop, variant) "
                       f"({last('perfd_loop_saturation_ratio{' + which + '}')})")
    columns = {"profile": ("Job", None), "function": ("Function", None), "file": ("File", None), "line": ("Line", None)}
    columns |= {v: (v, None) for v in ("LS", "FP", "DL1", "S2L", "NO_STORE", "NO_DIV", "NO_SQRT", "NO_RED", "CTRL")}
    made = table("Saturations", [now(expression)], columns,
                 "Time of a variant over the loop's own, in shadows, of the median rank. LS: memory accesses only; FP: "
                 "arithmetic only; DL1: all data in the first cache; S2L, NO_STORE: without stores; NO_x: without that class; "
                 "CTRL: the control alone. Near 1: what the variant leaves out costs nothing; far below: it costs the rest.",
                 None, pivot="variant")
    made["fieldConfig"]["overrides"] += [
        {"matcher": {"id": "byRegexp", "options": "^(LS|FP|DL1|S2L|NO_.*|CTRL)$"},
         "properties": [{"id": "custom.cellOptions", "value": {"type": "color-background", "mode": "gradient"}},
                        {"id": "thresholds", "value": {"mode": "absolute", "steps": [
                            {"color": GREEN, "value": None}, {"color": "yellow", "value": 0.6}, {"color": RED, "value": 0.9}]}},
                        {"id": "min", "value": 0}, {"id": "max", "value": 1}]}]
    return made


def memory():
    def column(metric, ref):
        return rows_of(f"max by (cluster, profile, loop) ({last(metric + '{' + OURS + '}')})", ref)

    beyond = f"max by (cluster, profile, loop) ({last('perfd_loop_memory_beyond_l2_ratio{' + OURS + '}')})"
    return table("Loops by the time of their loads", [
        rows_of(of_job(named(beyond), "user, command"), "A"),
        column("perfd_loop_dtlb_walks_ratio", "B"), column("perfd_loop_share_ratio", "C"),
    ], {"profile": ("Job", None), "command": ("Program", None), "user": ("User", None), "function": ("Function", None),
        "file": ("File", None), "line": ("Line", None), "Value #C": ("Share", RATIO), "Value #A": ("Loads beyond L2", RATIO),
        "Value #B": ("DTLB walks", RATIO)},
        "By sampled accesses: share of the time of a loop's loads that was spent beyond L2, and of its accesses whose page the DTLB "
        "did not have. Profiles that are over.", "Value #A")


def loops():
    mine = last('perfd_loop_gain_ratio{' + OURS + '}')
    every = table("Measured loops", [
        rows_of(of_job(named(f"max by (cluster, profile, loop) ({mine})"), "user, command"), "A"),
        rows_of(f"max by (cluster, profile, loop) ({last('perfd_loop_share_ratio{' + OURS + '}')})", "B"),
        rows_of(f"max by (cluster, profile, loop, bound, level) ({VERDICTS})", "C"),
        rows_of(f"max by (cluster, profile, loop) ({last('perfd_loop_gain_ranks_ratio{' + OURS + '}')})", "D"),
    ], {"profile": ("Job", None), "command": ("Program", None), "user": ("User", None), "function": ("Function", None),
        "file": ("File", None), "line": ("Line", None), "Value #B": ("Share", RATIO), "Value #A": ("Gain if fixed", RATIO),
        "Value #D": ("on ranks", RATIO),
        "bound": ("Bound by", None), "level": ("Data in", None)},
        "Ordered by what a fix would be worth, not by time.", "Value #A")
    every["transformations"][-1]["options"]["excludeByName"]["Value #C"] = True
    return dashboard("perfd-loops", "perfd: loops and saturation", "Why loops take their time, by measured variants.",
                     ("cluster", "user", "program", "perfd"), [
        ("Verdicts", [
            bars("Bound by", f"count by (bound) ({VERDICTS})", "{{bound}}",
                 "Measured loops by what they wait for.", COUNT, width=8),
            bars("Data in", f"count by (level) ({VERDICTS})", "{{level}}",
                 "Measured loops by where their data are.", COUNT, width=8),
            bars("Loops that variants were to measure",
                 f"sum by (state) ({last('perfd_profile_loops{' + OURS + '}')})", "{{state}}",
                 "open: the budget did not reach; refused: cannot be altered safely, the report says why.", COUNT, width=8),
        ]),
        ("Loops", [every, saturations(OURS)]),
        ("Accesses to memory", [memory()]),
        ("Over time", [
            lines("Gain by program and loop", [
                q(f'topk(8, cluster_command_loop:perfd_loop_gain_ratio:max{{{OURS}, command=~"$program"}})',
                  "{{command}}  {{function}}  {{file}}:{{line}}")],
                "What the best fix would have saved, of profiles under way or recent.", RATIO),
            lines("Largest gain of each job", [q(f"topk(8, cluster_profile:perfd_loop_gain_ratio:max{{{OURS}}})", "{{profile}}")],
                  "One line a job.", RATIO),
        ]),
    ])


def imbalance():
    def column(metric, ref):
        return rows_of(f"max by (cluster, profile, loop) ({last(metric + '{' + OURS + '}')})", ref)

    excess = (f"max by (cluster, profile, loop) ({last('perfd_loop_rank_max_seconds{' + OURS + '}')} * "
              f"(1 - 1 / {last('perfd_loop_rank_imbalance_ratio{' + OURS + '}')}))")
    return dashboard("perfd-imbalance", "perfd: rank and thread imbalance",
                     "Which loops keep some ranks or threads busy while the others wait. Which rank it is: in the report.",
                     ("cluster", "user", "program", "perfd"), [
        ("Jobs", [
            bars("Imbalance of ranks", f"topk(20, {of_job(last('perfd_profile_imbalance_ratio{' + OURS + '}'))})",
                 "{{profile}}  {{command}}  {{slurm_job}}  {{user}}",
                 "Compute time of the slowest rank over the mean; 1 is even. Profiles that are over.", "none", min=1,
                 decimals=2, **limits((GREEN, None), (YELLOW, 1.1), (RED, 1.3))),
            lines("Over time", [q(of_job(f"perfd_profile_imbalance_ratio{{{OURS}}}", "command"), "{{profile}} {{command}}")],
                  "The same programs, job by job.", "none", min=1),
        ]),
        ("Loops", [
            table("Loops by rank and thread", [
                rows_of(of_job(named(excess), "user, command"), "A"),
                column("perfd_loop_rank_imbalance_ratio", "B"), column("perfd_loop_thread_imbalance_ratio", "C"),
                column("perfd_loop_rank_min_seconds", "D"), column("perfd_loop_rank_median_seconds", "E"),
                column("perfd_loop_rank_max_seconds", "F"), column("perfd_loop_share_ratio", "G"),
            ], {"profile": ("Job", None), "command": ("Program", None), "user": ("User", None),
                "function": ("Function", None), "file": ("File", None), "line": ("Line", None),
                "Value #A": ("Slowest rank above the mean", SECONDS), "Value #B": ("Ranks, max / mean", None),
                "Value #C": ("Threads, max / mean", None), "Value #D": ("Least", SECONDS), "Value #E": ("Median", SECONDS),
                "Value #F": ("Most", SECONDS), "Value #G": ("Share", RATIO)},
                "CPU seconds of the ranks in the loop, as sampled. Threads: of the rank that has most of the loop.", "Value #A"),
        ]),
    ])


def health():
    def top(metric, about, unit, title):
        return lines(title, [q(f"topk(10, {metric})", "{{node}}")], about, unit, width=8)

    def quantiles(metric):
        def quantile(share, text_, ref):
            return q(f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket{{{OURS}}}[$__rate_interval])))", text_, ref)
        return [quantile(0.5, "half", "A"), quantile(0.99, "99 %", "B")]

    def rate(metric, by, more=""):
        return q(f"sum by ({by}) (rate({metric}{{{OURS}{more}}}[$__rate_interval]))", "{{" + by + "}}")

    return dashboard("perfd-health", "perfd: health and cost", "Is perfd well, and what does it cost nodes and jobs.",
                     ("cluster",), [
        ("Now", [
            stat("perfd up", f'min(up{{job="perfd", {OURS}}})', "1: every perfd answers.", width=3,
                 colours=((RED, None), (GREEN, 1))),
            stat("Store writes", f"min(perfd_store_healthy{{{OURS}}})", "1: the last write succeeded.", width=3,
                 colours=((RED, None), (GREEN, 1))),
            stat("Store reads", f"min(perfd_store_readable{{{OURS}}})", "1: the store could be read.", width=3,
                 colours=((RED, None), (GREEN, 1))),
            stat("Age of these figures", f"max(time() - perfd_snapshot_timestamp_seconds{{{OURS}}})",
                 "perfd makes them every few seconds.", SECONDS, 3, colours=((GREEN, None), (RED, 60))),
            stat("Last windows stored", f"max(time() - (perfd_window_stored_timestamp_seconds{{{OURS}}} > 0))",
                 "How long ago, since perfd was started.", SECONDS, 3),
            stat("Agents", f"sum(perfd_agents_connected{{{OURS}}})", "Connected.", width=3),
            stat("... that can alter loops", f"sum(perfd_agents_can_inject{{{OURS}}})", "The others only sample.", width=3),
            stat("Series", f'sum(scrape_samples_scraped{{job="perfd", {OURS}}})', "Of the metrics page; bound 10,000 a perfd.",
                 width=3, colours=((GREEN, None), (RED, 9500))),
        ]),
        ("Measurements", [
            lines("Samples missing", [q(f"cluster:perfd_samples_missing:ratio_rate5m{{{OURS}}}", "{{cluster}}")],
                  "Lost or dropped by us, over all that were due.", RATIO, width=8),
            lines("Samples lost, dropped; throttling", [
                q(f"sum(rate(perfd_samples_lost_total{{{OURS}}}[$__rate_interval]))", "lost in the kernel"),
                q(f"sum by (reason) (rate(perfd_samples_dropped_total{{{OURS}}}[$__rate_interval]))", "{{reason}}", "B"),
                q(f"sum(rate(perfd_sampling_throttled_total{{{OURS}}}[$__rate_interval]))", "throttled", "C")],
                "Per second.", RATE, width=8),
            lines("Windows", [
                q(f"sum(rate(perfd_windows_stored_total{{{OURS}}}[$__rate_interval]))", "stored"),
                q(f"sum(rate(perfd_windows_duplicate_total{{{OURS}}}[$__rate_interval]))", "came again", "B"),
                q(f"sum by (reason) (rate(perfd_windows_dropped_total{{{OURS}}}[$__rate_interval]))", "{{reason}}", "C"),
                q(f"sum(rate(perfd_streams_malformed_total{{{OURS}}}[$__rate_interval]))", "streams ended", "D")],
                "Per second.", RATE, width=8),
        ]),
        ("What it costs jobs", [
            lines("Stops of ranks", quantiles("perfd_stop_seconds")
                  + [q(f"cluster:perfd_stop_seconds:p99_1h{{{OURS}}}", "99 %, last hour, {{cluster}}", "C")],
                  "How long ranks stood still for one stop; the promise is 20 ms for 99 of 100.", SECONDS, width=8),
            lines("Ranks stopped or waiting", [q(f"sum(rate(perfd_injection_pause_seconds_total{{{OURS}}}[$__rate_interval]))",
                                                 "seconds per second"),
                                               q(f"cluster:perfd_injection_pause:rate5m{{{OURS}}}", "5 min, {{cluster}}", "B")],
                  "Summed over ranks.", "none", width=8),
            lines("Injections", [rate("perfd_injections_total", "action")], "By action of the audit log, per second.", RATE,
                  width=8),
        ]),
        ("What it costs nodes", [
            top(f"sum by (node) (rate(perfd_agent_cpu_seconds_total{{{OURS}}}[$__rate_interval]))", "The ten busiest, CPUs.",
                "none", "CPU of agents"),
            top(f"max by (node) (perfd_agent_resident_bytes{{{OURS}}})", "The ten largest.", BYTES, "Memory of agents"),
            top(f"max by (node) (perfd_agent_spool_bytes{{{OURS}}})", "Measured and not yet stored; the ten largest.", BYTES,
                "Spools"),
            lines("Memory of rings", [q(f"max by (cluster) (perfd_agents_ring_bytes_max{{{OURS}}})", "{{cluster}}")],
                  "Of the node with the most.", BYTES, width=8),
            lines("CPU of all agents", [q(f"cluster:perfd_agent_cpu_cores:rate5m{{{OURS}}}", "{{cluster}}")], "CPUs.", "none",
                  width=8),
            lines("Agents away", [q(f"cluster:perfd_agents_away:count{{{OURS}}}", "{{cluster}}")],
                  "Connected within the last day, and not now.", width=8),
            lines("Agents by version", [q(f"sum by (version) (perfd_agent_versions{{{OURS}}})", "{{version}}")], "Connected.",
                  width=8, stacked=True),
            lines("Windows set aside", [q(f"sum by (node) (increase(perfd_agent_windows_set_aside_total{{{OURS}}}[1h]))",
                                          "{{node}}")], "Damaged or unsendable, within an hour.", width=8),
        ]),
        ("Scheduler hook", [
            stat("Policy file", f"min(perfd_policy_healthy{{{OURS}}})",
                 "1: taken when it was last read. 0: the policy before it is in force, or none: perfctl hook list says why.",
                 width=4, height=8, colours=((RED, None), (GREEN, 1))),
            lines("Calls of prologs and epilogs", [rate("perfd_hook_calls_total", "result")],
                  "By result, per second. failed: the store; refused: not of that node, or not to be understood.", RATE, width=10),
            lines("Time of calls", quantiles("perfd_hook_seconds")
                  + [q(f"cluster:perfd_hook_seconds:p99_1h{{{OURS}}}", "99 %, last hour, {{cluster}}", "C")],
                  "In perfd, from arrival to answer. A prolog waits 300 ms in all, then its job starts without being counted.",
                  SECONDS, width=10),
        ]),
        ("Archive", [
            stat("Archive writes", f"min(perfd_archive_healthy{{{OURS}}})",
                 "1: the last attempt succeeded. This row is of perfd with --archive.", width=4, height=8,
                 colours=((RED, None), (GREEN, 1))),
            lines("Reports", [
                q(f"sum(increase(perfd_archive_written_total{{{OURS}}}[1h]))", "written"),
                q(f"sum(increase(perfd_archive_failures_total{{{OURS}}}[1h]))", "attempts that failed", "B"),
                q(f"sum(increase(perfd_archive_dropped_total{{{OURS}}}[1h]))", "left out", "C"),
                q(f"sum(increase(perfd_archive_deleted_total{{{OURS}}}[1h]))", "deleted for age or room", "D")],
                "Within an hour.", width=8),
            lines("Waiting", [q(f"perfd_archive_pending{{{OURS}}}", "{{cluster}}")],
                  "To be written. Above 4096 the oldest are left out.", width=4),
            lines("Files", [q(f"perfd_archive_files{{{OURS}}}", "{{cluster}}")], "In the folder, as of the last ten minutes.", width=4),
            lines("Size", [q(f"perfd_archive_bytes{{{OURS}}}", "{{cluster}}")], "Of these files.", BYTES, width=4),
        ]),
        ("perfd itself", [
            lines("CPU", [q(f'rate(process_cpu_seconds_total{{job="perfd", {OURS}}}[$__rate_interval])', "{{cluster}}")],
                  "CPUs.", "none", width=6),
            lines("Memory", [q(f'process_resident_memory_bytes{{job="perfd", {OURS}}}', "{{cluster}}")], "Resident.", BYTES,
                  width=6),
            lines("Open descriptors", [q(f'process_open_fds{{job="perfd", {OURS}}}', "{{cluster}}")], "One an agent, and some.",
                  width=6),
            lines("Store", [q(f"perfd_store_bytes{{{OURS}}}", "{{cluster}}"),
                            q(f"perfd_audit_bytes{{{OURS}}}", "audit log, {{cluster}}", "B")],
                  "Database and its log, and what of it is the audit log.", BYTES, width=6),
            lines("Commits", quantiles("perfd_store_commit_seconds")
                  + [q(f"cluster:perfd_store_commit_seconds:p99_5m{{{OURS}}}", "99 %, 5 min, {{cluster}}", "C")],
                  "Time of one group commit.", SECONDS, width=8),
            lines("Windows under way", [q(f"perfd_ingest_queue_windows{{{OURS}}}", "{{cluster}}")],
                  "Between arrival and merge; above 4096 agents wait.", width=8),
            lines("HTTP requests refused", [q(f"sum by (cluster) (rate(perfd_http_refused_total{{{OURS}}}[$__rate_interval]))",
                                              "{{cluster}}")],
                  "Answered with 400 and above, or cut off to make room. Pages that do not exist or have no key.", RATE, width=8),
            lines("Limits that refused somebody", [rate("perfd_limit_hits_total", "limit")],
                  "By limit (docs/limits.md), per second.", RATE, width=8),
        ]),
        ("Alerts", [
            panel("alertlist", "perfd's alerts", [], 24, 8, "Pending and firing.",
                  options={"viewMode": "list", "alertName": "Perfd", "stateFilter": {"firing": True, "pending": True},
                           "groupMode": "default", "maxItems": 20, "sortOrder": 1}),
        ]),
    ])


def files():
    for make in (fleet, job, loops, imbalance, health):
        made = make()
        yield OUT / f"{made['uid'].removeprefix('perfd-')}.json", json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    wanted = dict(files())
    if sys.argv[1:]:
        stale = [p.name for p, content in wanted.items() if not p.exists() or p.read_text() != content]
        stale += [p.name for p in OUT.glob("*.json") if p not in wanted]
        if stale:
            sys.exit(f"not as make_dashboards.py writes them: {', '.join(sorted(stale))}")
        return
    OUT.mkdir(parents=True, exist_ok=True)
    for path, content in wanted.items():
        path.write_text(content)


if __name__ == "__main__":
    main()
