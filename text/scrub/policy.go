// SPDX-License-Identifier: Apache-2.0

package scrub

import "fmt"

// A Profile is a list of steps with a name.
type Profile uint8

const (
	MCP      Profile = iota // NFKC, every hidden character and control token removed
	Faithful                // removals, and gaps where they would join words; what languages and emoji need is kept
	Veritas                 // "veritas-0.1": RFC section 4 in its order
	Surface                 // changes nothing, refuses SUSPICIOUS_UNICODE
	numProfiles
)

var profileNames = [numProfiles]string{"mcp", "faithful", "veritas-0.1", "surface"}

// String returns the profile's name in evidence and on the command line.
func (p Profile) String() string {
	if p < numProfiles {
		return profileNames[p]
	}
	return "invalid"
}

// Version is the sanitation_version of what p has cleaned. That of veritas-0.1 is the
// version of the RFC whose steps it runs: it does not change with the other profiles.
func (p Profile) Version() string {
	if p == Veritas {
		return "0.1"
	}
	return Version
}

// ParseProfile returns the profile of that name.
func ParseProfile(name string) (Profile, bool) {
	for p, n := range profileNames {
		if n == name {
			return Profile(p), true
		}
	}
	return 0, false
}

// Confusables says what veritas-0.1 does with a character that is taken for an
// ASCII one (RFC 4.3).
type Confusables uint8

const (
	Replace Confusables = iota // by the ASCII character
	Reject                     // the text is refused
	Flag                       // left in place and noted
)

// Scope says which confusable characters veritas-0.1 acts on.
type Scope uint8

const (
	Literal Scope = iota // every one: alters most Russian and Greek text
	Mixed                // those in words that mix scripts, or that only pretend to be of another
)

// TokenAction says what mcp and faithful do with control tokens. spec: scrub/4.8
type TokenAction uint8

const (
	ProfileTokens TokenAction = iota // as the profile has it: faithful defuses, mcp removes
	DefuseTokens                     // the delimiters become look-alikes that no tokenizer reads
	RemoveTokens                     // nothing of a token stays
	KeepTokens                       // tokens are noted and left
)

var tokenActionNames = [...]string{"profile", "defuse", "remove", "keep"}

// String returns the name of the action in a configuration, "profile" for the zero value.
func (a TokenAction) String() string {
	if int(a) < len(tokenActionNames) {
		return tokenActionNames[a]
	}
	return "invalid"
}

// Policy is the source form of a Scrubber; the zero value is the strict choice.
type Policy struct {
	Profile Profile

	// MaxChars is the ceiling of mcp and faithful in code points; 0 means
	// DefaultMaxChars. It counts the marker of a cut, so it is at least 8.
	MaxChars int
	// MaxBytes is the cap of veritas-0.1 in UTF-8 bytes; 0 means
	// DefaultMaxBytes, which suits a rationale; a quote has QuoteMaxBytes.
	MaxBytes int

	// Confusables and Scope rule veritas-0.1's step 4.3.
	Confusables Confusables
	Scope       Scope
	// Ellipsis ends a text that veritas-0.1 cut with U+2026 instead of "...",
	// which is what RFC 4.2 makes of 4.1's marker.
	Ellipsis bool

	// Strict has faithful keep only the hidden characters that it keeps without a limit: a person
	// sees what they do. It changes no visible character.
	Strict bool

	// Wide makes surface refuse every hidden character, but for those of emoji
	// and of languages, instead of the verifier's 151 code points.
	Wide bool

	// ControlTokens is what mcp and faithful do with control tokens.
	ControlTokens TokenAction

	// Tokens are the control tokens; nil means Builtin.
	Tokens *TokenTable

	// DangerouslyRFCSetOnly limits veritas-0.1's step 4.4 to the 156 code points
	// that the RFC names. Thousands of invisible characters then pass.
	DangerouslyRFCSetOnly bool
}

// The defaults of a Policy's limits.
const (
	DefaultMaxChars = 1 << 20
	DefaultMaxBytes = 2000
	QuoteMaxBytes   = 1000

	minChars = 8
	minBytes = 16
	// maxSize keeps every offset, also that of an NFKC form 18 times as long, in
	// 32 bits.
	maxSize = 1 << 27
)

// Compile checks p and makes a Scrubber of it. The error names every fault.
func Compile(p Policy) (*Scrubber, error) {
	var faults []string
	fault := func(format string, a ...any) { faults = append(faults, fmt.Sprintf(format, a...)) }
	if p.Profile >= numProfiles {
		fault("no profile %d", p.Profile)
	}
	if p.MaxChars == 0 {
		p.MaxChars = DefaultMaxChars
	}
	if p.MaxBytes == 0 {
		p.MaxBytes = DefaultMaxBytes
	}
	if p.Tokens == nil {
		p.Tokens = Builtin()
	}
	if p.MaxChars < minChars || p.MaxChars > maxSize {
		fault("MaxChars %d is not in [%d, %d]", p.MaxChars, minChars, maxSize)
	}
	if p.MaxBytes < minBytes || p.MaxBytes > maxSize {
		fault("MaxBytes %d is not in [%d, %d]", p.MaxBytes, minBytes, maxSize)
	}
	if p.Confusables > Flag {
		fault("no confusables policy %d", p.Confusables)
	}
	if p.Scope > Mixed {
		fault("no confusables scope %d", p.Scope)
	}
	veritas := p.Confusables != 0 || p.Scope != 0 || p.Ellipsis || p.DangerouslyRFCSetOnly
	if veritas && p.Profile != Veritas {
		fault("an option of veritas-0.1 is set for %s", p.Profile)
	}
	if p.Wide && p.Profile != Surface {
		fault("Wide is set for %s", p.Profile)
	}
	if p.Strict && p.Profile != Faithful {
		fault("Strict is set for %s", p.Profile)
	}
	if p.ControlTokens > KeepTokens {
		fault("no action %d for control tokens", p.ControlTokens)
	}
	if p.ControlTokens != ProfileTokens && p.Profile > Faithful {
		fault("ControlTokens is set for %s", p.Profile)
	}
	if len(faults) > 0 {
		return nil, &PolicyError{Faults: faults}
	}
	s := &Scrubber{p: p, steps: profileSteps[p.Profile]}
	s.quick, s.limit = p.Profile != Surface, p.MaxChars
	if p.Profile == Veritas {
		s.limit = p.MaxBytes
	}
	return s, nil
}

// tokenAction returns what s does with control tokens.
func (s *Scrubber) tokenAction() TokenAction {
	switch {
	case s.p.ControlTokens != ProfileTokens:
		return s.p.ControlTokens
	case s.p.Profile == Faithful:
		return DefuseTokens
	}
	return RemoveTokens
}

// DefusesTokens reports whether s defuses control tokens, so that what is written back must
// go through TokenTable.Restore.
func (s *Scrubber) DefusesTokens() bool { return s.tokenAction() == DefuseTokens }

// A PolicyError lists everything that is wrong with a Policy.
type PolicyError struct{ Faults []string }

func (e *PolicyError) Error() string {
	s := "scrub: policy"
	for i, f := range e.Faults {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		s += sep + f
	}
	return s
}

// Deviations names the options of the policy that loosen a profile's promise.
// While the list is not empty, evidence must not claim the profile's version.
func (p Policy) Deviations() []string {
	var d []string
	if p.DangerouslyRFCSetOnly {
		d = append(d, "dangerously_rfc_set_only")
	}
	if p.ControlTokens == KeepTokens {
		d = append(d, "control_tokens: keep")
	}
	return d
}
