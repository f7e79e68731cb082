# SPDX-License-Identifier: GPL-2.0
"""What each driver did in the scenarios, side by side: for people as a table, for programs as JSON."""

import json


def word(job):
    """What a driver did, in a word or two."""
    if job.status == "ok":
        return job.did
    return "NOT RUN" if job.status == "skipped" else "FAILED"


def by_column(jobs):
    """The jobs of scenarios, by kernel and driver: in-tree beside ours, kernel by kernel."""
    columns = {}
    for job in sorted(jobs, key=lambda job: (float(job.kernel), job.driver)):
        if job.test.compare:
            columns.setdefault((job.kernel, job.driver), {})[job.test] = job
    return columns


def table(jobs):
    """Lines of a Markdown table, one a scenario, with how many passed at the end."""
    columns = by_column(jobs)
    tests = sorted({job.test for job in jobs if job.test.compare}, key=lambda test: test.name)
    rows = [["scenario", "what is provoked", *(" ".join(key) for key in columns)]]
    rows += [
        [test.name, test.compare, *(word(column[test]) if test in column else "-" for column in columns.values())]
        for test in tests
    ]
    passed = [sum(word(job) == "pass" for job in column.values()) for column in columns.values()]
    rows.append(["", "passed", *(f"{n} of {len(c)}" for n, c in zip(passed, columns.values()))])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines


def write(jobs, folder, top):
    """results.json and table.md."""
    folder.mkdir(parents=True, exist_ok=True)
    results = [
        {
            "scenario": job.test.name,
            "provoked": job.test.compare,
            "kernel": job.kernel,
            "driver": job.driver,
            "did": word(job),
            "status": job.status,
            "reason": job.reason,
            "notes": job.notes,
            "kernel reports": job.splats,
            "seconds": round(job.seconds, 1),
            "log": str(job.log.relative_to(top)),
        }
        for job in jobs
    ]
    (folder / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    (folder / "table.md").write_text("\n".join(table(jobs)) + "\n")
