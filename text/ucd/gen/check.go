// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
)

// check verifies what package scrub relies on. A new Unicode version may break
// any of it, and then scrub's reasoning must be looked at again, not the check.
func (d *data) check() error {
	var errs []error
	fail := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }

	d.checkHidden(fail)
	d.checkFixPoint(fail)
	d.checkQuick(fail)

	reachable := 0
	for r := range d.prototype {
		if d.confusable(r) != 0 {
			reachable++
		}
	}
	if reachable != 562 {
		fail("%d reachable confusables of one ASCII character, not 562", reachable)
	}
	if len(d.prototype) != 6311 {
		fail("%d confusables, not 6311", len(d.prototype))
	}
	// A confusable that is a non-starter: replacing it splits a run of marks.
	if d.props[0x1D16D]&(confusable|nonStarter) != confusable|nonStarter {
		fail("U+1D16D is no confusable non-starter")
	}
	return errors.Join(errs...)
}

// checkHidden: everything that Unicode calls a format, control or ignorable
// character, in either version, is hidden, but what a reader sees; and their number is known.
func (d *data) checkHidden(fail func(string, ...any)) {
	visible := "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\t\n"
	count := 0
	for r := rune(0); r < numRunes; r++ {
		for _, c := range []string{d.category[r], d.newest.category[r]} {
			want := c == "Cf" || c == "Cc" || c == "Zl" || c == "Zp" || d.nonchar[r] ||
				d.ignorable[r] || d.bidiFormat[r] || d.newest.ignorable[r] || d.newest.bidiFormat[r]
			if strings.ContainsRune(visible, r) && c != "Cs" {
				want = false
			}
			if want && !d.hidden[r] {
				fail("%U (%s) is not in hiddenRanges", r, c)
			}
		}
		if d.hidden[r] {
			count++
		}
	}
	if count != numHidden {
		fail("%d hidden code points, not %d", count, numHidden)
	}
}

const numHidden = 4325

// checkFixPoint: normalise, replace confusables, remove hidden characters, twice,
// is a fix point of doing it. After the first pass nothing decomposes any more
// and no confusable or hidden character is left; so the second normalisation can
// only reorder and compose, and if no composite is confusable or hidden, then the
// rest of the second pass does nothing and its result is normal.
func (d *data) checkFixPoint(fail func(string, ...any)) {
	for _, c := range d.pairs {
		if d.props[c]&(hidden|confusable) != 0 {
			fail("composite %U is hidden or confusable", c)
		}
	}
	for r := rune(0xAC00); r <= 0xD7A3; r++ {
		if d.props[r]&(hidden|confusable) != 0 {
			fail("Hangul syllable %U is hidden or confusable", r)
		}
	}
	for r := rune(0); r < numRunes; r++ {
		// Replacements are printable ASCII: they do not decompose, nor are they hidden.
		if c := d.confusable(r); c != 0 && (c < 0x20 || c >= 0x7F) {
			fail("%U is replaced by %#x", r, c)
		}
		if d.hidden[r] && d.ccc[r] != 0 {
			fail("%U is hidden and a non-starter", r)
		}
	}
}

// checkQuick: a character is inactive exactly if it is a starter, unchanged by
// the form, and does not join; so text can be cut before it.
func (d *data) checkQuick(fail func(string, ...any)) {
	for form, active := range []uint16{nfc: nfcActive, nfkc: nfkcActive} {
		joins := []uint16{nfc: nfcJoins, nfkc: nfkcJoins}[form]
		for r := rune(0); r < numRunes; r++ {
			if d.category[r] == "Cs" {
				continue
			}
			changed := string(d.normal(form, []rune{r})) != string(r)
			want := changed || d.props[r]&joins != 0
			if got := d.props[r]&active != 0; got != want {
				fail("%U: form %d active is %v, not %v", r, form, got, want)
			}
		}
	}
}
