"""The documentation against the tree, without a build: flags of our programs, keys of their files, paths, tests, links."""
import re

PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "deploy/**/*.md")
FOLDERS = ("agent", "client", "cmake", "core", "daemon", "deploy", "docs", "proto", "tests", "tools")
SLURM = {"--profile"}
# One of our programs with the rest of its line, up to a separator of the shell, a comment, or `--` alone.
COMMAND = re.compile(r"(?:^|(?<=[\s`/\"(]))(perfd|perf-agent|perfctl)((?: +(?!(?:--|#)(?: |$))[^\s`;&]+)*)")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")


def flags_in(root, *patterns):
    text = "".join(path.read_text() for pattern in patterns for path in root.glob(pattern))
    return set(re.findall(r'"!?(--[a-z][\w-]*)["\',]', text)) | {"--help", "--version"}


def flags_of(root, program, arguments):
    if program != "perfctl":
        return flags_in(root, "daemon/perfd_flags.cc" if program == "perfd" else "agent/app/agent_flags.cc")
    name = next((word for word in arguments.split() if re.fullmatch(r"[a-z]+", word)), "*")
    return flags_in(root, "client/commands/command_line.cc", f"client/commands/{name}.cc", f"client/commands/{name}/*.cc")


def keys_in(root):
    text = "".join((root / f).read_text() for f in ("daemon/perfd_config.cc", "agent/app/agent_config.cc",
                                                    "core/spec/key_table.cc"))
    return set(re.findall(r'(?:\.path = |SpecKey\{)"([\w.]+)"', text)) | {
        f"{section}.{key}" for section, keys in (("quota", ("active", "per_day")), ("users", ("opt_in", "opt_out")))
        for key in keys}


def code_in(text):
    """The lines of blocks, with what a backslash continues, and what stands between backticks."""
    block = re.compile(r"(?ms)^```.*?^```|^ {4}.*?$")
    text = re.sub(r"\\\n\s*", "", text)
    return [line for part in block.findall(text) for line in part.splitlines()] + re.findall(
        r"`([^`\n]+)`", block.sub("", text))


def faults_in(root, page, text):
    flags = SLURM | flags_in(root, "daemon/*.cc", "agent/app/*.cc", "client/commands/**/*.cc", "tests/bench/*.*")
    flags |= {f"--{name}" for name in re.findall(r'\{"([\w-]+)",', (root / "deploy/slurm/spank_perfd.c").read_text())}
    keys = keys_in(root)
    for code in code_in(text):
        for program, rest in COMMAND.findall(code):
            yield from (f"{program} has no {flag}" for flag in set(FLAG.findall(rest)) - flags_of(root, program, rest))
        if code.startswith("--") and not set(FLAG.findall(code)) <= flags:
            yield f"no program of ours has {code}"
        key = re.fullmatch(r"(([a-z]\w*)\.[a-z_]+)(: .*)?", code)
        if key and any(k.startswith(key[2] + ".") for k in keys) and key[1] not in keys and not key[1].endswith(".yaml"):
            yield f"there is no key {code}"
        if re.fullmatch(r"[\w-]+(/[\w.-]+)+/?", code) and code.split("/")[0] in FOLDERS and not any(
                list(root.glob(code.rstrip("/") + end)) for end in ("", ".*")):
            yield f"there is no {code}"
        if (test := re.fullmatch(r"e2e_(\w+)", code)) and not (root / f"tests/e2e/{test[1]}_test.py").exists():
            yield f"there is no test {code}"
    yield from (f"a link to {link} leads nowhere" for link in re.findall(r"\]\((?!\w+:)([^)#\s]+)", text)
                if not (page.parent / link).exists())


def check(root):
    for page in sorted(path for pattern in PAGES for path in root.glob(pattern)):
        yield from (f"{page.relative_to(root)}: {fault}" for fault in faults_in(root, page, page.read_text()))
