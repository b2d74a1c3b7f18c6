# SPDX-License-Identifier: Apache-2.0
"""Asks one detector of prompt injections from PyPI, by name.

Standard input has one JSON string a line. The first line of the answer is an object that
describes the detector: name, version, licence, bytes installed. Then one object a text:
flagged, score (null where the detector says only yes or no), ms (CPU time in the detector).
Each is used as its own documentation begins with, and says yes at its own limit. Without a
name it lists the names.
"""
import contextlib
import importlib.metadata as metadata
import json
import logging
import os
import sys
import time


def stackone():
    from stackone_defender import create_prompt_defense
    defense = create_prompt_defense(block_high_risk=True, require_tier2=True)
    defense.warmup_tier2()

    def ask(text):
        r = defense.defend_tool_result(text, "read_file")
        return not r.allowed, r.tier2_score or 0.0  # None: the model was not asked
    return ask


def plumblint():
    from plumblint import scan

    def ask(text):
        v = scan(text)
        return v.verdict == "injection", v.score
    return ask


def promptsafe():
    import promptsafe as package

    def ask(text):
        r = package.scan(text, log=False)
        return not r["isSafe"], r["score"]
    return ask


def guardify():
    import guardify as package

    def ask(text):
        r = package.detect(text)
        yes = r["label"] == "injection"
        return yes, r["score"] if yes else 1 - r["score"]
    return ask


def bulwark_guard():
    from bulwark import scan

    def ask(text):
        r = scan(text)
        return r.injected, r.score
    return ask


def bulwark_mcp():
    from pathlib import Path
    import bulwark_mcp as package
    from bulwark_mcp.detectors.rules import RulesEngine
    rules = RulesEngine.from_directory(Path(package.__file__).parent / "rules" / "builtin")

    def ask(text):
        score = rules.detect(text, direction="server_to_client").score
        return score >= 0.85, score  # the limit of its default policy
    return ask


def aicordon():
    from aicordon import picket
    detector = picket.load()
    return lambda text: (detector.check(text).flagged, None)


def injectionguard():
    from injectionguard import detect
    return lambda text: (not detect(text).is_safe, None)


def injectionshield():
    from injectionshield import scan_tool_result

    def ask(text):
        r = scan_tool_result("read_file", text)
        return not r.safe, r.risk_score
    return ask


def safepaste():
    from safepaste import scan_prompt

    def ask(text):
        r = scan_prompt(text)
        return r.flagged, r.score
    return ask


def ai_injection_guard():
    from prompt_shield import PromptScanner
    scanner = PromptScanner(threshold="MEDIUM")

    def ask(text):
        r = scanner.scan(text)
        return r.severity in ("MEDIUM", "HIGH", "CRITICAL"), r.risk_score
    return ask


def clawguard():
    from clawguard_core import Scanner
    scanner = Scanner()

    def ask(text):
        r = scanner.scan(text)
        return r.detected, r.risk_score
    return ask


def prompt_injection_defense():
    from prompt_injection_defense import detect_prompt_injection

    def ask(text):
        r = detect_prompt_injection(text)
        return r["label"] != "benign", r["score"]
    return ask


def forcefield():
    import forcefield as package
    guard = package.Guard(telemetry=False)

    def ask(text):
        r = guard.scan(text)
        return r.blocked, r.risk_score
    return ask


def lightguard():
    from lightguard import LightGuardAgent
    agent = LightGuardAgent()

    def ask(text):
        r = agent.process_observation(text)
        return bool(r["is_untrusted"]), r["risk_score"]
    return ask


def toolwall():
    from toolwall.detect import CompositeDetector
    from toolwall.policy import Policy
    limit = Policy().response_ipi_threshold
    detector = CompositeDetector(use_judge=False)

    def ask(text):
        score, _ = detector.score(text)
        return score >= limit, score
    return ask


def rebuff():
    import importlib.util
    # The package's own __init__ wants a vector store and a model provider; the heuristics need neither.
    path = metadata.distribution("rebuff").locate_file("rebuff/detect_pi_heuristics.py")
    spec = importlib.util.spec_from_file_location("heuristics", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def ask(text):
        score = module.detect_prompt_injection_using_heuristic_on_input(text)
        return score > 0.75, score
    return ask


def cisco():
    import yara
    from pathlib import Path
    folder = Path(metadata.distribution("cisco-ai-mcp-scanner").locate_file("mcpscanner/data/yara_rules"))
    rules = yara.compile(sources={p.name: p.read_text(encoding="utf-8") for p in sorted(folder.glob("*.yara"))})
    return lambda text: (bool(rules.match(data=text)), None)


DETECTORS = {
    "stackone-defender": stackone,
    "plumblint": plumblint,
    "promptsafe": promptsafe,
    "prompt-guardrail": guardify,
    "bulwark-guard": bulwark_guard,
    "bulwark-mcp": bulwark_mcp,
    "aicordon": aicordon,
    "injectionguard": injectionguard,
    "injectionshield": injectionshield,
    "safepaste": safepaste,
    "ai-injection-guard": ai_injection_guard,
    "clawguard-core": clawguard,
    "prompt-injection-defense": prompt_injection_defense,
    "forcefield": forcefield,
    "lightguard-agent": lightguard,
    "toolwall-guard": toolwall,
    "rebuff": rebuff,
    "cisco-ai-mcp-scanner": cisco,
}


def described(name):
    dist = metadata.distribution(name)
    about = dist.metadata
    licence = about.get("License-Expression") or about.get("License") or ""
    if not licence:
        licence = next((c.rsplit("::", 1)[1].strip() for c in about.get_all("Classifier", []) if c.startswith("License ::")), "not stated")
    if licence == "not stated" and any("Apache License" in f.read_text() for f in dist.files or [] if f.name == "LICENSE"):
        licence = "Apache-2.0"
    size = sum(f.locate().stat().st_size for f in dist.files or [] if f.locate().is_file() and f.suffix != ".pyc")
    return {"name": name, "version": dist.version, "licence": licence.splitlines()[0], "bytes": size}


def main():
    if len(sys.argv) != 2:
        print("\n".join(DETECTORS))
        return
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What a detector prints is no answer.
    os.dup2(2, 1)
    logging.disable(logging.CRITICAL)

    def answer(value):
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    with contextlib.redirect_stdout(sys.stderr):
        ask = DETECTORS[sys.argv[1]]()
        answer(described(sys.argv[1]))
        for line in sys.stdin:
            text = json.loads(line)
            start = time.process_time()
            flagged, score = ask(text)
            ms = (time.process_time() - start) * 1000
            answer({"flagged": bool(flagged), "score": None if score is None else float(score), "ms": ms})


main()
