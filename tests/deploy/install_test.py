#!/usr/bin/env python3
"""cmake --install into a folder of its own, under another name of the client: everything is there, runs, and only the client
carries that name."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PERFD_BUILD_DIR", ROOT / "build/ci"))
NAME = "lightprof"
USUAL = "perf" + "ctl"
PROGRAMS = ["perfd", "perf-agent", "perf-agent-reader", "perf-agent-tracer"]


def run(*command, env=None, **kwargs):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=90,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, **kwargs)


def install(prefix, name, destdir=None):
    env = {"PERFD_CLI_NAME": name}
    if destdir:
        env["DESTDIR"] = str(destdir)
    done = run("cmake", "--install", BUILD, "--prefix", prefix, env=env)
    return done, done.stdout + done.stderr


def main():
    missing = [p for p in (*PROGRAMS, USUAL) if not (BUILD / "bin" / p).exists()]
    if missing or not shutil.which("cmake"):
        print(f"SKIPPED: not built: {', '.join(missing) or 'cmake is missing'}")
        return 77
    failed = []

    def check(what, good, detail=""):
        print(f"{'ok   ' if good else 'FAIL '} {what} {'' if good else detail}")
        if not good:
            failed.append(what)

    with tempfile.TemporaryDirectory(prefix="perfd-install-") as folder:
        prefix = pathlib.Path(folder) / "site"
        done, said = install(prefix, NAME)
        check("cmake --install works", done.returncode == 0 and "WARNING" not in said.upper(), said)
        files = {p.relative_to(prefix).as_posix() for p in prefix.rglob("*") if p.is_file()}
        for wanted in [f"bin/{p}" for p in (*PROGRAMS, NAME)] + [
                "lib/systemd/system/perfd.service", "lib/systemd/system/perf-agent.service", "lib/sysusers.d/perfd.conf",
                "lib/tmpfiles.d/perfd.conf", "share/perfd/config/perfd.yaml", "share/perfd/config/agent.yaml",
                "share/perfd/make-certs.sh", "share/perfd/observability/prometheus.yml", "share/perfd/SHA256SUMS",
                f"share/bash-completion/completions/{NAME}", f"share/zsh/site-functions/_{NAME}",
                f"share/fish/vendor_completions.d/{NAME}.fish"]:
            check(f"{wanted} is installed", wanted in files)
        check("no path carries the usual name", not [f for f in files if USUAL in f])

        # Under its new name.
        client = prefix / "bin" / NAME
        version = run(client, "version", "--client")
        check("the client runs", version.returncode == 0 and version.stdout.startswith(f"{NAME} "),
              version.stdout + version.stderr)
        asked = run(client, "--help")
        check("its help uses its name", NAME in asked.stdout and USUAL not in asked.stdout)
        script = (prefix / f"share/bash-completion/completions/{NAME}").read_text()
        check("so does its completion", f"-F _{NAME} {NAME}" in script and USUAL not in script)
        sourced = run("bash", "-n", prefix / f"share/bash-completion/completions/{NAME}")
        check("which bash can read", sourced.returncode == 0, sourced.stderr)
        texts = [f for f in files if f.startswith("share/") and USUAL in (prefix / f).read_text(errors="replace")]
        check("texts for people use it too", not texts, texts)

        # Everything else is without it.
        for program in PROGRAMS:
            check(f"{program} does not carry the usual name", USUAL.encode() not in (prefix / "bin" / program).read_bytes())
        check("the client's file would (the check can fail)", USUAL.encode() in client.read_bytes())
        sources = [p for top in ("daemon", "proto") for p in (ROOT / top).rglob("*") if p.suffix in (".cc", ".h", ".proto")]
        spoken = [p.relative_to(ROOT).as_posix() for p in sources
                  if re.search(r'"[^"\n]*' + USUAL, p.read_text())]
        check("no text or metric of the daemon names it", not spoken, spoken)

        # All are of one version, and the agent finds its helpers where they were installed.
        versions = {p: run(prefix / "bin" / p, "--version") for p in (*PROGRAMS, NAME)}
        said = {p: (v.returncode, v.stdout.split()) for p, v in versions.items()}
        number = said["perfd"][1][-1]
        check("every program tells its version", said == {p: (0, [p, number]) for p in said}, said)
        doctor = run(prefix / "bin/perf-agent", "doctor").stdout
        for helper in PROGRAMS[2:]:
            check(f"the agent's doctor finds {helper}", re.search(rf"(?m)^ok +{helper} +{prefix}/bin/{helper} runs$", doctor), doctor)

        # What an administrator compares.
        sums = dict(reversed(line.split("  ")) for line in (prefix / "share/perfd/SHA256SUMS").read_text().splitlines())
        real = {f"bin/{p}": hashlib.sha256((prefix / "bin" / p).read_bytes()).hexdigest() for p in (*PROGRAMS, NAME)}
        check("SHA256SUMS is right", sums == real, sums)

        # Units name the programs where they are.
        for unit, program in (("perfd", "perfd"), ("perf-agent", "perf-agent")):
            text = (prefix / f"lib/systemd/system/{unit}.service").read_text()
            check(f"{unit}.service starts what was installed", f"ExecStart={prefix}/bin/{program} --config" in text)
            check(f"{unit}.service has no hole left", "@" not in re.sub(r"@(system-service|privileged|resources|debug)", "", text))
        if shutil.which("systemd-analyze"):
            for unit in ("perfd", "perf-agent"):
                verified = run("systemd-analyze", "verify", "--man=no", prefix / f"lib/systemd/system/{unit}.service")
                said = (verified.stdout + verified.stderr).strip()
                check(f"systemd accepts the installed {unit}.service", verified.returncode == 0 and not said, said)
        for program, example in (("perfd", "perfd.yaml"), ("perf-agent", "agent.yaml")):
            checked = run(prefix / "bin" / program, "--config", prefix / "share/perfd/config" / example, "--check-config")
            check(f"{program} accepts its example configuration", checked.returncode == 0, checked.stderr)

        # A package: DESTDIR goes before every path, and into none of them.
        stage = pathlib.Path(folder) / "stage"
        done, said = install("/usr", NAME, stage)
        unit = stage / "usr/lib/systemd/system/perfd.service"
        check("DESTDIR is honoured", done.returncode == 0 and unit.exists() and "ExecStart=/usr/bin/perfd" in unit.read_text(), said)
        for name in ("perfd", "a b", "../x", "-x"):
            done, said = install(pathlib.Path(folder) / "bad", name)
            check(f"the name {name!r} is refused", done.returncode != 0 and "PERFD_CLI_NAME" in said, said)
    print(f"{len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
