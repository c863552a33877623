"""The figures of a run of tools/bench/run, and its conditions, as a JSON file."""

import datetime
import json
import math
import os
import platform
import subprocess

FORMAT = 1
FIGURES = ("rate", "p50_us", "p99_us", "p999_us", "server_us")


def first_line_with(path, begin):
    try:
        with open(path, encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file
                         if line.startswith(begin)), "")
    except OSError:
        return ""


def version(root):
    done = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip()


def conditions(root, options):
    """The conditions that are needed to interpret the figures."""
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "processor": first_line_with("/proc/cpuinfo", "model name"),
            "cores": len(os.sched_getaffinity(0)),
            "memory": first_line_with("/proc/meminfo", "MemTotal"),
            "kernel": platform.release(),
            "load before": round(os.getloadavg()[0], 2),
            "version": version(root),
            "rounds": options.rounds,
            "a round": f"{options.measure_ms} ms",
            "cores used": f"server on {options.server_core}, client on {options.client_core}",
            "layout": options.layout,
            "realtime": options.realtime}


def table(title, rounds_of, median_of, against):
    """The medians of each row; figures that a row does not have are absent."""
    rows = []
    for name, rounds in rounds_of.items():
        figures = {key: median_of(rounds, key) for key in FIGURES}
        rows.append({"name": name, "rounds": len(rounds),
                     **{key: value for key, value in figures.items() if not math.isnan(value)}})
    return {"title": title, "against": list(against), "rows": rows}


def save(path, told, tables, notes):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"format": FORMAT, "conditions": told, "tables": tables, "notes": notes}, file,
                  indent=1)
        file.write("\n")


def load(path):
    """Reads the file; exits with a message if it is not a file of results."""
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
        if results["format"] != FORMAT:
            raise SystemExit(f"{path} has format {results['format']}, not {FORMAT}")
        return results
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{path} is not a file of tools/bench/run --save: {error}") from error
