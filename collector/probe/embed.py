"""embed.py - presets/*.probes as one C file, so that mlprof carries them with it: embed.py OUTPUT FILE..."""
import os
import sys


def literal(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '\\n"'


def main():
    output, *files = sys.argv[1:]
    rows, parts = [], ["/* presets.c - made by embed.py from the files in presets */", '#include "probe/probe.h"', "", "#include <stddef.h>"]
    for name, path in sorted((os.path.basename(path).removesuffix(".probes"), path) for path in files):
        text = open(path, encoding="ascii").read()
        variable = "text_" + name.replace("-", "_")
        parts += ["", f"static const char {variable}[] ="] + ["\t" + literal(line) for line in text.splitlines()] + ["\t;"]
        rows.append(f'\t{{ "{name}", {variable}, sizeof({variable}) - 1 }},')
    parts += ["", "const struct probe_preset probe_presets[] = {", *rows, "\t{ NULL, NULL, 0 }", "};", ""]
    with open(output, "w", encoding="ascii") as file:
        file.write("\n".join(parts))


if __name__ == "__main__":
    main()
