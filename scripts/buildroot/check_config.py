#!/usr/bin/env python3
"""Checks of the Buildroot configurations, without and with a Buildroot tree:

  check_config.py common DEFCONFIG…        what is no matter of the board is the same in all of them
  check_config.py loaded CONFIG DEFCONFIG  no symbol of DEFCONFIG is lost in the CONFIG made of it, none is of an older Buildroot
  check_config.py hashes SHOW-INFO TREE    every download has a hash (hash files are named relative to TREE)
  check_config.py grub DEFCONFIG MODULES   the modules built into GRUB are those of the list
  check_config.py applets CONFIG FRAGMENT SCRIPT…  no script calls an applet that busybox is built without

Prints what is wrong, one line each; exit status 1 where anything is."""
import json
import os
import re
import sys

# What a board may have of its own: processor, kernel, boot loader, firmware, and how its slots are compressed.
OF_A_BOARD = re.compile(
    r"BR2_(aarch64|x86_64|cortex_|x86_|PACKAGE_HOST_LINUX_HEADERS_CUSTOM_|ROOTFS_OVERLAY$|ROOTFS_POST_SCRIPT_ARGS$"
    r"|LINUX_KERNEL_(CUSTOM_|DEFCONFIG$|USE_|DTS_|INTREE_|CONFIG_FRAGMENT_FILES$|NEEDS_HOST_PYTHON3$)"
    r"|TARGET_(UBOOT|GRUB2|ARM_TRUSTED_FIRMWARE)|TARGET_ROOTFS_SQUASHFS4_|PACKAGE_(HOST_)?UBOOT_TOOLS|PACKAGE_RPI_FIRMWARE)"
)
LINE = re.compile(r"^(?:(BR2_\w+)=|# (BR2_\w+) is not set$)")


def symbols(file):
    """The lines of a configuration that say something, by symbol."""
    found = {}
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            match = LINE.match(line)
            if match:
                found[match[1] or match[2]] = line.strip()
    return found


def common(*files):
    blocks = {file: {line for name, line in symbols(file).items() if not OF_A_BOARD.match(name)} for file in files}
    everything = set().union(*blocks.values())
    for file, lines in blocks.items():
        for line in sorted(everything - lines):
            yield f"{file}: not the same as in the others: {line}"


def loaded(config, defconfig):
    have = symbols(config)
    for name, line in symbols(defconfig).items():
        # A symbol that is off may be absent as well: then something else keeps it off.
        if have.get(name, f"# {name} is not set") != line:
            yield f"{defconfig}: lost: {line}"
    if "BR2_LEGACY" in have and have["BR2_LEGACY"].endswith("=y"):
        yield f"{defconfig}: has a symbol that was removed from Buildroot"


def hashes(info_file, tree):
    with open(info_file, encoding="utf-8") as file:
        info = json.load(file)
    for name, package in sorted(info.items()):
        known = set()
        for hash_file in package.get("hashes", []):
            path = os.path.join(tree, hash_file)
            if os.path.exists(path):
                with open(path, encoding="utf-8") as lines:
                    known |= {words[2] for words in map(str.split, lines) if len(words) == 3 and words[0].startswith("sha")}
        for download in package.get("downloads", []):
            source = download.get("source")
            local = any(uri.startswith("local+") for uri in download.get("uris", []))
            if source and not local and source not in known:
                yield f"{name}: no hash of {source}"


def grub(defconfig, modules):
    match = re.search(r'"(.*)"', symbols(defconfig).get("BR2_TARGET_GRUB2_BUILTIN_MODULES_EFI", '""'))
    with open(modules, encoding="utf-8") as file:
        wanted = set(re.sub(r"#.*", "", file.read()).split())
    have = set(match[1].split())
    for name in sorted(wanted ^ have):
        yield f"{defconfig}: GRUB module {name} is {'missing' if name in wanted else 'not in ' + modules}"


# Where a command begins: a line, behind an operator, a keyword or an assignment. A name alone before `|` or `)` is none: it may be a pattern of `case`.
COMMAND = r"(?:^|[|&;(`!]|\b(?:then|do|else|if|elif|until|while|exec|-v)\s)\s*(?:\w+=\S*\s+)*(?:/bin/)?{}(?=\s+[^\s|)]|\s*(?:;|&&|$))"
BUSYBOX = re.compile(r"^(?:# )?CONFIG_(\w+)(=y| is not set)$", re.MULTILINE)


def applets(config, fragment, *scripts):
    built = {}
    for file in (config, fragment):
        with open(file, encoding="utf-8") as text:
            found = BUSYBOX.findall(text.read())
        if file == fragment:
            yield from (f"{fragment}: busybox knows no {name}" for name, _ in found if name not in built)
        built.update(found)
    missing = [name.lower() for name, state in built.items() if state != "=y" and "_" not in name]
    for script in scripts:
        with open(script, encoding="utf-8") as text:
            code = re.sub(r"(^|\s)#.*", "", text.read())
        for name in missing:
            if re.search(COMMAND.format(re.escape(name)), code, re.MULTILINE):
                yield f"{script}: calls {name}, which busybox is built without"


def main():
    checks = {"common": common, "loaded": loaded, "hashes": hashes, "grub": grub, "applets": applets}
    faults = list(checks[sys.argv[1]](*sys.argv[2:]))
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
