#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes attestations of published fact checks, one JSON line each, for `pellucid-ground import`.

    pellucid-ground attest new --out checker.key
    claimreview.py --key checker.key feed.json | pellucid-ground import

The feed is schema.org ClaimReview as JSON-LD (one, a list, a graph or a feed), or an answer of Google's Fact Check
Tools API (claims:search). The key is yours: each attestation says that you have read this rating there, and not that
the publisher has signed it. A rating whose words are not in RATINGS becomes UNVERIFIED: add those of your feed."""
import argparse, hashlib, json, subprocess, sys, urllib.parse

RATINGS = {
    "SUPPORTED": ["true", "correct", "accurate", "wahr", "richtig", "vrai", "verdadero", "verdadeiro"],
    "QUALIFIED": ["mostly true", "partly true", "half true", "missing context", "teilweise wahr", "plutôt vrai"],
    "DISPUTED": ["mostly false", "partly false", "misleading", "out of context", "irreführend", "trompeur", "engañoso"],
    "FALSE": ["false", "fake", "incorrect", "pants on fire", "falsch", "faux", "falso"],
}
VERDICTS = {words: verdict for verdict, all_words in RATINGS.items() for words in all_words}


def reviews(node):
    """Yields every ClaimReview below a JSON value, in the members of schema.org."""
    if isinstance(node, list):
        for item in node:
            yield from reviews(item)
    elif isinstance(node, dict):
        kinds = node.get("@type", [])
        if "ClaimReview" in (kinds if isinstance(kinds, list) else [kinds]):
            yield node
        elif "claimReview" in node and "text" in node:  # of Google's answer
            for review in node["claimReview"]:
                yield {"claimReviewed": node["text"], "url": review.get("url"), "headline": review.get("title"),
                       "datePublished": review.get("reviewDate") or node.get("claimDate"),
                       "inLanguage": review.get("languageCode"),
                       "reviewRating": {"alternateName": review.get("textualRating")}}
        else:
            for name in ("@graph", "itemListElement", "dataFeedElement", "item", "mainEntity", "claims"):
                yield from reviews(node.get(name))


def verdict_of(rating):
    """Returns the verdict that a rating stands for, and the publisher's words. Words go before numbers."""
    words = rating.get("alternateName") or rating.get("name")
    if words:
        return VERDICTS.get(" ".join(words.lower().split()).strip(" .!"), "UNVERIFIED"), words
    try:
        value, worst, best = (float(rating.get(k, d)) for k, d in (("ratingValue", "x"), ("worstRating", 1), ("bestRating", 5)))
        share = (value - worst) / (best - worst)
    except (ValueError, TypeError, ZeroDivisionError):
        return "UNVERIFIED", "Not rated."
    said = f"Rated {value:g} on a scale from {worst:g} to {best:g}."
    if not 0 <= share <= 1:
        return "UNVERIFIED", said
    return ("FALSE" if share == 0 else "DISPUTED" if share < 0.5 else "QUALIFIED" if share < 1 else "SUPPORTED"), said


def attestation(review, domain):
    """Makes the unsigned attestation for a review. Raises ValueError if a member is missing."""
    claim, url, issued = review.get("claimReviewed"), review.get("url"), review.get("datePublished")
    if not claim or not url or not urllib.parse.urlsplit(url).hostname or not issued:
        raise ValueError("want claimReviewed, url and datePublished")
    verdict, words = verdict_of(review.get("reviewRating") or {})
    issued = issued if "T" in issued else issued + "T00:00:00"
    out = {
        "@context": "https://veritas-protocol.example/attestation/v0.3", "@type": "veritas:Attestation",
        "id": "urn:sha256:" + hashlib.sha256(json.dumps([url, claim]).encode()).hexdigest(),
        "canonicalisation_version": "0.3", "claim": {"text": claim}, "verdict": verdict, "consensus_domain": domain,
        "qualifications": words, "evidence": [{"uri": url, "role": "review"}],
        "issued": issued if issued.endswith("Z") or "+" in issued[10:] or "-" in issued[10:] else issued + "Z",
        "depends_on": [url],
    }
    if review.get("inLanguage"):
        out["claim"]["language"] = review["inLanguage"]
    if review.get("reviewBody"):
        out["rationale"] = review["reviewBody"]
    if review.get("headline"):
        out["cited_works"] = [{"uri": url, "title": review["headline"]}]
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--key", required=True, help="file of your key, as `pellucid-ground attest new` writes it")
    p.add_argument("--domain", default="journalism-default", help="consensus domain (default: %(default)s)")
    p.add_argument("feed", nargs="?", type=argparse.FileType("rb"), default=sys.stdin.buffer)
    a = p.parse_args()
    left_out = 0
    for n, review in enumerate(reviews(json.load(a.feed)), 1):
        try:
            line = json.dumps(attestation(review, a.domain), ensure_ascii=False).encode()
            done = subprocess.run(["pellucid-ground", "attest", "sign", "--key", a.key], input=line, stdout=subprocess.PIPE)
            if done.returncode:
                raise ValueError("pellucid-ground attest sign refuses it")
            sys.stdout.buffer.write(done.stdout)
        except (ValueError, AttributeError, TypeError) as e:  # nothing of the feed is repeated
            left_out += 1
            print(f"review {n} is left out: {e if isinstance(e, ValueError) else 'a member has another type'}", file=sys.stderr)
    sys.exit(1 if left_out else 0)


if __name__ == "__main__":
    main()
