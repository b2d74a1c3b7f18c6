// SPDX-License-Identifier: Apache-2.0

// Package finding defines the codes of what is found in third-party text, and the
// severity of each. The list is closed: no code holds text that a third party chose.
// Only Quote shows such text, escaped and cut.
//
// It is part of the public API: the other public packages report what they found with
// its codes.
//
//	code.Severity()       // info, warn or error
//	finding.Quote(text)   // third-party text for an error or a log line
package finding

// A Code names one kind of thing that was found or done. The set is closed: a
// Code is a constant of this package, never text that a third party chose, so it
// may stand in a log line, a metric label or an answer that a model reads.
type Code string

// What scrub finds in text.
const (
	HiddenBidi        Code = "hidden-bidi"                // reorders what a person sees
	HiddenZeroWidth   Code = "hidden-zero-width"          // joiner, space of no width, byte order mark
	HiddenOperator    Code = "hidden-invisible-operator"  // invisible mathematics, deprecated format
	HiddenVariation   Code = "hidden-variation-selector"  // variation selector
	HiddenTag         Code = "hidden-tag"                 // tag character: ASCII in disguise
	HiddenFiller      Code = "hidden-filler"              // letter without a glyph, soft hyphen
	HiddenAnnotation  Code = "hidden-annotation"          // interlinear annotation
	HiddenFormat      Code = "hidden-format"              // shorthand, music, hieroglyph layout
	ControlCharacter  Code = "control-character"          // C0, DEL, C1
	LineBreak         Code = "line-break"                 // CR LF, NEL, VT, FF, U+2028, U+2029 became LF
	OddSpace          Code = "odd-space"                  // a space of the removed set became U+0020
	OddWhiteSpace     Code = "odd-white-space"            // kept: white space that pushes text out of sight, or carries a message
	Noncharacter      Code = "noncharacter"               // never a character
	AnsiEscape        Code = "ansi-escape"                // terminal control sequence
	ControlToken      Code = "control-token"              // a chat template's own token
	AmbiguousToken    Code = "ambiguous-token"            // kept: spelled like a control token, and like honest text
	RoleMarker        Code = "role-marker"                // a line that claims a role of the conversation
	EncodedToken      Code = "encoded-token"              // a control token behind percent or JSON escapes
	HiddenReference   Code = "hidden-character-reference" // &#x202E; and the like
	ContentCredential Code = "content-credential"         // a C2PA manifest: removed, its digest kept
	Confusable        Code = "confusable"                 // looks like an ASCII character
	NFKC              Code = "nfkc"                       // changed by compatibility normalisation
	NFKCLossy         Code = "nfkc-lossy"                 // … so that a number reads otherwise
	CombiningFlood    Code = "combining-flood"            // more than 5 non-starters on one base; those beyond 8 are removed
	Truncated         Code = "truncated"                  // cut at the cap
	IllFormedUTF8     Code = "ill-formed-utf8"            // bytes that are no UTF-8 became U+FFFD
	SurrogateMended   Code = "lone-surrogate"             // half a character became U+FFFD
	MarkupTag         Code = "markup-tag"                 // an HTML tag, comment or lone "<"
	MarkupLink        Code = "markup-link"                // a link, image or reference definition
	PrivateUse        Code = "private-use"                // kept: private-use character
	Unassigned        Code = "unassigned"                 // kept: not in the pinned Unicode version
	BlankSymbol       Code = "blank-symbol"               // kept: U+2800, U+FFFC
	SuspiciousUnicode Code = "suspicious-unicode"         // a description must not hold it
	SplitAcrossBlocks Code = "split-token"                // a token whose parts stood in two texts
)

// What href finds in a URI.
const (
	URISyntax  Code = "uri-syntax"
	URIScheme  Code = "uri-scheme"
	URIHost    Code = "uri-host"
	URILength  Code = "uri-length"
	URIHidden  Code = "uri-hidden-character"
	URIDecodes Code = "uri-decodes-to-syntax"
)

// What the boundary finds in messages, and why it withholds or passes unread.
const (
	RefusedName        Code = "name-refused"               // hidden character or token in what is never rewritten
	CaseVariant        Code = "case-variant"               // a member that some readers take for another
	Misshapen          Code = "misshapen"                  // not the type that the protocol gives it
	TooLong            Code = "too-long"                   // over a limit, and not to be cut
	ForgedProvenance   Code = "forged-provenance"          // an upstream's member under our own prefix
	FenceLookalike     Code = "fence-lookalike"            // text that imitates our tags
	ShapeInvalid       Code = "shape-invalid"              // not what the protocol's schema allows
	ShapeRepaired      Code = "shape-repaired"             // made what the protocol's schema allows
	SchemaInvalid      Code = "schema-invalid"             // not what the declared outputSchema allows
	SchemaBroken       Code = "schema-broken"              // no longer, once it was made safe
	SchemaUnverifiable Code = "schema-unverifiable"        // the declared outputSchema cannot be evaluated
	NotStructured      Code = "structured-content-missing" // the declared outputSchema promises one
	Denied             Code = "denied"                     // policy forbids it
	Held               Code = "held"                       // a rule wants a reviewer to look at it
	Unapproved         Code = "unapproved"                 // not what was approved of what the server says of itself
	Suspected          Code = "suspected-injection"        // a classifier takes it for an injection
	Unjudged           Code = "not-judged"                 // a required classifier could not judge it
	Violation          Code = "violation"                  // a message that is not acceptable MCP
	Unsolicited        Code = "unsolicited"                // an answer or progress of no request that waits, or a log message below the level that was asked for
	NoRoom             Code = "no-room"                    // too much was under way to look at it
	QueueFull          Code = "queue-full"                 // it was to be held, and the queue for review has no room
	BlobNotInspected   Code = "binary"                     // not inspected: a blob that is no text
	Opaque             Code = "opaque"                     // not inspected: echoed, never read
	ApprovedPage       Code = "approved-page"              // not inspected: the page of an app, in the version that was approved
	UnknownCharset     Code = "unknown-charset"            // not inspected in its own character set, which is not known
	AmbiguousEncoding  Code = "ambiguous-encoding"         // base64, data: URI or text in it that readers decode differently
	EncodingRepaired   Code = "encoding-repaired"          // base64 was put into its canonical spelling
)

// Why attest refuses an attestation.
const (
	NotJSON           Code = "not-json"            // no strict JSON
	TooDeep           Code = "too-deep"            // nested beyond the limit
	TooMany           Code = "too-many"            // more values than the limit
	UnknownContext    Code = "unknown-context"     // an @context that is not bundled
	UndefinedTerm     Code = "undefined-term"      // a member that the context does not define
	MissingMember     Code = "missing-member"      // a member that must be there
	UnknownVerdict    Code = "unknown-verdict"     // not in the registry of verdicts
	UnknownDomain     Code = "unknown-domain"      // not in the registry of consensus domains
	TypedTag          Code = "typed-tag"           // plain text only: HTML, SVG or MathML
	TypedLink         Code = "typed-link"          // … a Markdown link, image or definition
	TypedFence        Code = "typed-fence"         // … a closed code fence
	TypedJSON         Code = "typed-json"          // … a JSON object or array
	TypedEncoded      Code = "typed-encoded"       // … base64, base32 or hex that decodes to text
	TypedEscapes      Code = "typed-escapes"       // … escapes that decode to text
	TypedDataURI      Code = "typed-data-uri"      // … a data: URI
	ClaimHashMismatch Code = "claim-hash-mismatch" // claim_hash is not the claim's
	ProofMissing      Code = "proof-missing"       // not signed
	ProofForm         Code = "proof-form"          // a proof of another kind or purpose
	ProofKey          Code = "proof-key"           // signed with a key that is not the validator's
	ProofTime         Code = "proof-time"          // signed in the future, or expired
	ProofInvalid      Code = "proof-invalid"       // the signature does not verify
	KeyUnavailable    Code = "key-unavailable"     // the key cannot be looked up now
	Duplicate         Code = "duplicate"           // the same has been said already
)

// A Severity orders findings as SEP-2624 does.
type Severity uint8

const (
	Info  Severity = iota // nothing is wrong: normalised, kept, noted
	Warn                  // odd in honest text: removed or to be looked at
	Error                 // no honest use: an attack or broken data
)

// String returns "info", "warn" or "error".
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warn:
		return "warn"
	}
	return "error"
}

var severities = map[Code]Severity{
	HiddenBidi: Error, HiddenZeroWidth: Warn, HiddenOperator: Error, HiddenVariation: Warn,
	HiddenTag: Error, HiddenFiller: Warn, HiddenAnnotation: Error, HiddenFormat: Warn,
	ControlCharacter: Warn, LineBreak: Info, OddSpace: Info, OddWhiteSpace: Warn, Noncharacter: Error,
	AnsiEscape: Warn, ControlToken: Error, AmbiguousToken: Info, RoleMarker: Warn, EncodedToken: Warn,
	HiddenReference: Error, ContentCredential: Info, Confusable: Info, NFKC: Info, NFKCLossy: Warn,
	CombiningFlood: Warn, Truncated: Warn, IllFormedUTF8: Warn, SurrogateMended: Warn,
	MarkupTag: Warn, MarkupLink: Info, PrivateUse: Warn, Unassigned: Warn, BlankSymbol: Info,
	SuspiciousUnicode: Error, SplitAcrossBlocks: Error,
	URISyntax: Error, URIScheme: Error, URIHost: Error, URILength: Error,
	URIHidden: Error, URIDecodes: Error,
	RefusedName: Error, CaseVariant: Error, Misshapen: Error, TooLong: Error,
	ForgedProvenance: Error, FenceLookalike: Error, ShapeInvalid: Error, ShapeRepaired: Info, SchemaInvalid: Error, SchemaBroken: Warn, SchemaUnverifiable: Warn, NotStructured: Info, Denied: Info, Held: Info, Unapproved: Warn, Suspected: Warn, Unjudged: Info, Violation: Error,
	Unsolicited: Warn, NoRoom: Warn, QueueFull: Warn, BlobNotInspected: Info, Opaque: Info, ApprovedPage: Info,
	UnknownCharset: Warn, AmbiguousEncoding: Error, EncodingRepaired: Info,
	NotJSON: Error, TooDeep: Error, TooMany: Error, UnknownContext: Error, UndefinedTerm: Error,
	MissingMember: Error, UnknownVerdict: Error, UnknownDomain: Error, TypedTag: Error,
	TypedLink: Error, TypedFence: Error, TypedJSON: Error, TypedEncoded: Error, TypedEscapes: Error,
	TypedDataURI: Error, ClaimHashMismatch: Error, ProofMissing: Error, ProofForm: Error,
	ProofKey: Error, ProofTime: Error, ProofInvalid: Error, KeyUnavailable: Warn, Duplicate: Info,
}

// Severity returns how severe c is, Error for a Code that is not of this package.
func (c Code) Severity() Severity {
	if s, ok := severities[c]; ok {
		return s
	}
	return Error
}

// Known reports whether c is a constant of this package.
func (c Code) Known() bool {
	_, ok := severities[c]
	return ok
}
