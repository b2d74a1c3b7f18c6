// SPDX-License-Identifier: Apache-2.0

package scrub

import "slices"

// A Step is one thing that a profile does. The runner, the table in
// docs/spec/scrub.md and a conformance report all read the same list.
type Step struct {
	Name   string
	Clause string // of docs/spec/scrub.md, or "RFC" and the clause of the RFC
	Does   string

	do    func(*pass)
	idle  func(*pass) bool // reports that do would change nothing, where do does not look itself
	feeds bool             // what it does can give an earlier step work
}

// The steps, each of which exists once. spec: scrub/3
var (
	stepUTF8 = Step{
		"utf8", "scrub/3.1", "ill-formed UTF-8 becomes U+FFFD, one per maximal subpart",
		mend, func(p *pass) bool { return !p.facts.illFormed }, false,
	}
	stepCeiling = Step{
		"ceiling", "scrub/3.2", "text beyond the ceiling is cut, and marked",
		ceiling, nil, false,
	}
	stepCeilingAgain = Step{
		"ceiling-again", "scrub/3.2", "the ceiling again: NFKC and defusing make text longer",
		ceiling, nil, true,
	}
	stepCredentials = Step{
		"credentials", "scrub/3.15", "content credentials (C2PA manifests) are removed, and their digests kept",
		dropCredentials, nil, true,
	}
	stepANSI = Step{
		"ansi", "scrub/3.3", "terminal control sequences are removed whole",
		dropEscapes, func(p *pass) bool { return !p.facts.hidden }, false,
	}
	stepOverstrike = Step{
		"overstrike", "scrub/3.12", "what backspaces take back is removed, and they with it",
		dropOverstruck, func(p *pass) bool { return !p.facts.hidden }, false,
	}
	stepLines = Step{
		"lines", "scrub/3.4", "CR LF, CR, NEL, VT, FF, U+2028 and U+2029 become LF, U+1680 a space",
		unifyLines, func(p *pass) bool { return !p.facts.hidden }, false,
	}
	stepHidden = Step{
		"hidden", "scrub/3.5", "hidden characters are removed",
		dropHidden, func(p *pass) bool { return !p.facts.hidden }, false,
	}
	stepHiddenFaithful = Step{
		"hidden-faithful", "scrub/3.6", "hidden characters are removed, except those that a language, an emoji or a file needs",
		dropHiddenFaithfully, func(p *pass) bool { return !p.facts.hidden }, false,
	}
	stepForeignMarks = Step{
		"foreign-marks", "scrub/3.6.2", "marks beyond their script, and blank signs there, are removed",
		dropForeignMarks, func(p *pass) bool { return !p.facts.bound && !(p.facts.nfkc && composedMark(p.text)) }, true,
	}
	stepNFKC = Step{
		"nfkc", "scrub/3.7", "Normalization Form KC",
		normalise, func(p *pass) bool { return !p.facts.nfkc }, false,
	}
	stepMarks = Step{
		"marks", "scrub/3.8", "non-starters beyond the eighth on one base are removed",
		thinMarks, func(p *pass) bool { return !p.facts.marks }, false,
	}
	stepReferences = Step{
		"references", "scrub/3.9", "character references to hidden characters are removed",
		dropReferences, nil, true,
	}
	stepCodedReferences = Step{
		"coded-references", "scrub/3.9", "character references that spell a message in hidden characters are removed",
		dropCodedReferences, nil, true,
	}
	stepEscaped = Step{
		"escaped", "scrub/3.14", "escapes of hidden characters in the strings of JSON are removed",
		dropEscaped, nil, true,
	}
	stepTokens = Step{
		"tokens", "scrub/3.10", "control tokens are removed or defused, to a fix point",
		actOnTokens, nil, false,
	}
	stepFlagTokens = Step{
		"flag-tokens", "scrub/3.10", "control tokens are counted and left",
		countTokens, nil, false,
	}
	stepCap = Step{
		"cap", "RFC 4.1", "text beyond the cap is cut at a normalisation boundary, and marked",
		func(p *pass) { cutBytes(p, false) }, nil, false,
	}
	stepStripEarly = Step{
		"strip-early", "RFC 4.4", "what 4.4 removes, before 4.2 too: it must not decide what 4.2 composes",
		func(p *pass) {
			if !p.policy.DangerouslyRFCSetOnly {
				strip(p)
			}
		}, func(p *pass) bool { return !p.facts.hidden }, false,
	}
	stepVeritasNFKC = Step{
		"nfkc", "RFC 4.2", "Normalization Form KC; what changes a number is recorded",
		normalise, func(p *pass) bool { return !p.facts.nfkc }, false,
	}
	stepConfusables = Step{
		"confusables", "RFC 4.3", "characters that are taken for ASCII are replaced, or refused, or noted",
		confusables, func(p *pass) bool { return !p.facts.confused }, true,
	}
	stepStrip = Step{
		"strip", "RFC 4.4", "hidden characters are removed; line and paragraph separators become LF",
		strip, func(p *pass) bool { return !p.facts.hidden }, true,
	}
	stepVeritasMarks = Step{
		"marks", "RFC 4.4", "non-starters beyond the eighth on one base are removed",
		thinMarks, func(p *pass) bool { return !p.facts.marks }, false,
	}
	stepMarkup = Step{
		"markup", "RFC 4.6", "tags are removed; links, images and definitions become text \u2014 url",
		dropMarkup, nil, true,
	}
	stepRecap = Step{
		"recap", "RFC 4.1", "the cap again, on the final text",
		func(p *pass) { cutBytes(p, true) }, nil, true,
	}
	stepSuspicious = Step{
		"suspicious", "scrub/3.11", "SUSPICIOUS_UNICODE is refused; nothing is changed",
		refuseSuspicious, nil, false,
	}
)

var profileSteps = [numProfiles][]Step{
	MCP: {
		stepUTF8, stepCeiling, stepCredentials, stepANSI, stepOverstrike, stepLines, stepHidden, stepNFKC, stepForeignMarks,
		stepEscaped, stepReferences, stepTokens, stepMarks, stepCeilingAgain,
	},
	Faithful: {
		stepUTF8, stepCeiling, stepCredentials, stepANSI, stepOverstrike, stepHiddenFaithful, stepForeignMarks,
		stepEscaped, stepCodedReferences, stepTokens, stepMarks, stepCeilingAgain,
	},
	Veritas: {
		stepUTF8, stepCap, stepStripEarly, stepVeritasNFKC, stepConfusables, stepStrip,
		stepReferences, stepMarkup, stepVeritasMarks, stepRecap, stepFlagTokens,
	},
	Surface: {stepSuspicious},
}

// Steps returns what the profile does, in order.
func Steps(p Profile) []Step {
	if p >= numProfiles {
		return nil
	}
	return slices.Clone(profileSteps[p])
}
