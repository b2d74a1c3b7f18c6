// SPDX-License-Identifier: Apache-2.0

package counterfactual

// TransformVersion names the rules by which a variant is made of an assembly. It
// changes whenever the same [Variant] gives other bytes.
const TransformVersion = "ccr-1"

// A Kind names a perturbation.
type Kind string

// The perturbations.
const (
	KindBase      Kind = "base"      // everything shown; only the agent's own earlier text is blanked
	KindRemove    Kind = "remove"    // a group and its descendants withheld
	KindKeepOnly  Kind = "keep-only" // everything withheld but a group: capsule isolation
	KindAttenuate Kind = "attenuate" // a group shown in a weaker form
	KindReorder   Kind = "reorder"   // rounds of calls and results in another order
	KindMaskUser  Kind = "mask-user" // the user's task withheld
	KindSpan      Kind = "span"      // one segment cut to a span of itself
	KindWithhold  Kind = "withhold"  // spans of segments withheld
)

// A Level is a rung of the attenuation ladder, weaker from rung to rung.
type Level uint8

// The rungs.
const (
	LevelPlain    Level = iota // as it is
	LevelFramed                // behind a notice, between tags
	LevelQuoted                // as a quoted string that is said to be data
	LevelMasked                // quoted, and sentences that sound like control masked
	LevelWithheld              // not shown
)

// A Span is a piece of a segment's text, in bytes. The zero Span means no piece.
type Span struct {
	Segment int `json:"segment"`
	Start   int `json:"start"`
	End     int `json:"end"`
}

// A Variant says how an assembly is shown. It is comparable; two variants that
// differ only in Kind are the same bytes, and a [Plan] asks for them once.
type Variant struct {
	Kind Kind `json:"kind"`

	// Kept are the segments that are shown. One is shown only if everything that it
	// derives from is shown too.
	Kept Set `json:"kept"`
	// Weak are the segments that are shown at Level instead of plainly.
	Weak  Set   `json:"weak,omitempty"`
	Level Level `json:"level,omitempty"`
	// Order is the seed of another order; 0 keeps it.
	Order uint64 `json:"order,omitempty,string"`
	// MaskUser withholds the user's task.
	MaskUser bool `json:"mask_user,omitempty"`
	// Span, if it is not zero, is all that is shown of its segment.
	Span Span `json:"span,omitzero"`
	// Without are pieces that are withheld of segments which are shown.
	Without Spans `json:"without,omitempty"`
}

// KeepOnly withholds everything but the group.
func KeepOnly(group Set) Variant { return Variant{Kind: KindKeepOnly, Kept: group} }

// Attenuate shows all of n segments, and those of the group at a level.
func Attenuate(n int, group Set, l Level) Variant {
	return Variant{Kind: KindAttenuate, Kept: AllOf(n), Weak: group, Level: l}
}

// Reorder shows all of n segments in the order that seed gives.
func Reorder(n int, seed uint64) Variant {
	return Variant{Kind: KindReorder, Kept: AllOf(n), Order: seed}
}

// MaskUser shows all of n segments and not the user's task.
func MaskUser(n int) Variant { return Variant{Kind: KindMaskUser, Kept: AllOf(n), MaskUser: true} }

// same is v without what makes no difference to its bytes.
func (v Variant) same() Variant {
	v.Kind = ""
	if v.Level == LevelPlain || v.Weak == "" {
		v.Weak, v.Level = "", LevelPlain
	}
	if v.Level == LevelWithheld {
		v.Kept, v.Weak, v.Level = v.Kept.Minus(v.Weak), "", LevelPlain
	}
	return v
}

// plain are those of kept that are shown as they are.
func (v Variant) plain(kept Set) Set {
	if v.Level != LevelPlain {
		kept = kept.Minus(v.Weak)
	}
	if v.Span != (Span{}) {
		kept = kept.Minus(SetOf(v.Span.Segment))
	}
	for i := range v.Without.bySegment() {
		kept = kept.Minus(SetOf(i))
	}
	return kept
}

// Weaken is v with those of the group that it shows as quoted data, unless v weakens segments
// already.
func (v Variant) Weaken(group Set) Variant {
	if group = group.Minus(group.Minus(v.Kept)); group != "" && v.Weak == "" {
		v.Weak, v.Level = group, LevelQuoted
	}
	return v
}
