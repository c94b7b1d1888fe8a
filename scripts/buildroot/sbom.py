#!/usr/bin/env python3
"""sbom.py SHOW-INFO PACKAGE-LOCK NAME VERSION NODE: what an image contains, as CycloneDX 1.5 JSON on standard output.

The packages of the target come from Buildroot's `show-info`, those inside the server from the lock file (not the ones for development); NODE is the version
of the Node.js that the server's executable is made of. Deterministic: the same input gives the same output."""
import json
import sys
import uuid


def target_packages(info):
    """Buildroot's packages that end up in the image: those for the target, without the virtual ones."""
    for name, package in sorted(info.items()):
        if package.get("type") != "target" or package.get("virtual"):
            continue
        version = package.get("version") or "0"
        component = {
            "type": "application" if package.get("install_target") else "library",
            "bom-ref": f"buildroot/{name}",
            "name": package.get("name", name),
            "version": version,
            "purl": f"pkg:generic/{package.get('name', name)}@{version}",
        }
        if package.get("licenses"):
            component["licenses"] = [{"license": {"name": package["licenses"]}}]
        if package.get("cpe-id"):
            component["cpe"] = package["cpe-id"]
        hashes = []
        for download in package.get("downloads", []):
            for uri in download.get("uris", [])[:1]:
                hashes.append({"type": "distribution", "url": uri.split("+", 1)[-1]})
        if hashes:
            component["externalReferences"] = hashes
        yield component


def npm_packages(lock):
    """The packages of npm that the server's executable holds."""
    for path, package in sorted(lock.get("packages", {}).items()):
        if not path or package.get("dev") or package.get("devOptional") or package.get("optional"):
            continue
        name = package.get("name") or path.split("node_modules/")[-1]
        component = {
            "type": "library",
            "bom-ref": f"npm/{path}",
            "name": name,
            "version": package["version"],
            "purl": f"pkg:npm/{name.replace('@', '%40')}@{package['version']}",
        }
        if package.get("license"):
            component["licenses"] = [{"license": {"name": package["license"]}}]
        yield component


def node_runtime(version):
    """Node.js, of which Buildroot knows nothing: it comes with the server's executable."""
    return {
        "type": "application",
        "bom-ref": "server/nodejs",
        "name": "nodejs",
        "version": version,
        "purl": f"pkg:generic/nodejs@{version}",
        "cpe": f"cpe:2.3:a:nodejs:node.js:{version}:*:*:*:*:*:*:*",
        "licenses": [{"license": {"name": "MIT"}}],
    }


def dependencies(info, components):
    """Who needs whom, as far as both are listed."""
    known = {component["bom-ref"] for component in components}
    for name, package in sorted(info.items()):
        if f"buildroot/{name}" in known:
            needs = sorted(f"buildroot/{need}" for need in package.get("dependencies", []) if f"buildroot/{need}" in known)
            yield {"ref": f"buildroot/{name}", "dependsOn": needs}


def bill(info, lock, name, version, node):
    components = [*target_packages(info), node_runtime(node), *npm_packages(lock)]
    root = f"firmware/{name}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{name}/{version}/' + json.dumps(components, sort_keys=True))}",
        "version": 1,
        "metadata": {"component": {"type": "firmware", "bom-ref": root, "name": name, "version": version}},
        "components": components,
        "dependencies": [{"ref": root, "dependsOn": [component["bom-ref"] for component in components]}]
        + list(dependencies(info, components)),
    }


def main():
    info_file, lock_file, name, version, node = sys.argv[1:]
    with open(info_file, encoding="utf-8") as info, open(lock_file, encoding="utf-8") as lock:
        json.dump(bill(json.load(info), json.load(lock), name, version, node), sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
