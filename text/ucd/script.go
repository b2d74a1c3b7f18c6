// SPDX-License-Identifier: Apache-2.0

package ucd

import "math/bits"

// A Script is a value of the Script property.
type Script uint8

// String returns the long name of the script, as in "Old_Italic".
func (s Script) String() string {
	if int(s) < len(scriptNames) {
		return scriptNames[s]
	}
	return "invalid"
}

// ScriptOf returns the script of r: ScriptCommon for what many scripts use,
// ScriptInherited for marks that take the script of their base, ScriptUnknown for
// what is not assigned.
func ScriptOf(r rune) Script { return Script(lookupScript(r)) }

// Extensions returns the scripts that use r (Script_Extensions). The set holds
// ScriptCommon or ScriptInherited only where no script is named.
func Extensions(r rune) ScriptSet {
	if at := lookupScriptSet(r); at != 0 {
		return scriptSets[at-1]
	}
	return SetOf(ScriptOf(r))
}

// PinnedScript is ScriptOf in Version. A canonical hash can depend on it (the scope `mixed` of
// veritas-0.1 replaces a letter by the scripts of its word), so it must not change.
func PinnedScript(r rune) Script {
	if c := changeOf(r); c != nil {
		return c.script
	}
	return ScriptOf(r)
}

// PinnedExtensions is Extensions in Version.
func PinnedExtensions(r rune) ScriptSet {
	c := changeOf(r)
	switch {
	case c == nil:
		return Extensions(r)
	case c.set != 0:
		return pinnedScriptSets[c.set-1]
	}
	return SetOf(c.script)
}

// A scriptChange says what Version had where NewestVersion has something else.
type scriptChange struct {
	lo, hi rune
	script Script
	set    uint8 // place in pinnedScriptSets + 1, 0 = the script alone
}

func changeOf(r rune) *scriptChange {
	lo, hi := 0, len(scriptChanges)
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); scriptChanges[m].hi < r {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo < len(scriptChanges) && scriptChanges[lo].lo <= r {
		return &scriptChanges[lo]
	}
	return nil
}

// A ScriptSet is a set of scripts; the zero ScriptSet is empty.
type ScriptSet [3]uint64

// SetOf returns the set of these scripts.
func SetOf(scripts ...Script) (s ScriptSet) {
	for _, x := range scripts {
		if int(x) < numScripts {
			s[x/64] |= 1 << (x % 64)
		}
	}
	return s
}

// Has reports whether x is in the set.
func (s ScriptSet) Has(x Script) bool { return int(x) < numScripts && s[x/64]>>(x%64)&1 != 0 }

// And returns the scripts in both sets.
func (s ScriptSet) And(t ScriptSet) ScriptSet {
	return ScriptSet{s[0] & t[0], s[1] & t[1], s[2] & t[2]}
}

// Or returns the scripts in either set.
func (s ScriptSet) Or(t ScriptSet) ScriptSet {
	return ScriptSet{s[0] | t[0], s[1] | t[1], s[2] | t[2]}
}

// Len returns the number of scripts in the set.
func (s ScriptSet) Len() int {
	return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) + bits.OnesCount64(s[2])
}
