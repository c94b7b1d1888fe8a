#!/usr/bin/env python3
"""licences.py SBOM: the licences of what an image contains, as CSV on standard output, one line a component."""
import csv
import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        components = json.load(file)["components"]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["origin", "name", "version", "licence"])
    for component in components:
        licences = "; ".join(entry["license"]["name"] for entry in component.get("licenses", [])) or "unknown"
        writer.writerow([component["bom-ref"].split("/")[0], component["name"], component["version"], licences])


if __name__ == "__main__":
    main()
