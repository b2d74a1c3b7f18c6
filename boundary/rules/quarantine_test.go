// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
)

func TestQuarantine(t *testing.T) {
	const ann, bob = "age1lrd44xqjr4aqzvllz8eyhzcj8w3rqa8rqfc38cfd653ffan72ukqfzzy0x", "age1kwwr5ka203hcjmv4jk0r0nnn5e4cwmgumx2f448z5x9zx4mr7dds85cr52"
	for src, want := range map[string]string{
		"{}":                          "",
		"{recipients: [" + ann + "]}": "",
		"{recipients: [" + ann + "," + bob + "]}": "",
		"{recipients: []}":                        "",
		"{recipients: [age1x]}":                   "want a public key of age",
		"{recipients: [" + ann + "," + ann + "]}": "a second time",
		"{recipients: [AGE-SECRET-KEY-1DF6NKLNXAL3S4G08MD0VUGKVSLYDK0Y9GT5UYLV5DCCFVE00S9QQ5E6TNY]}": "want a public key of age",
		"{keys: []}": "keys",
	} {
		r, err := Parse([]byte("version: 1\nquarantine: "+src+"\n"), Options{})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", src, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", src, err, want)
		case want != "":
		case (r.Reviewers != nil) != strings.Contains(src, ann):
			t.Errorf("%s: %v", src, r.Reviewers)
		case r.Reviewers != nil:
			again, err := Parse(r.Effective(), Options{})
			if err != nil || !Equal(r, again) || Equal(r, newRules().dumped()) {
				t.Errorf("%s is written as\n%s: %v", src, r.Effective(), err)
			}
			if sealed, err := r.Reviewers.Seal([]byte("x")); err != nil || len(sealed) == 0 {
				t.Errorf("%s: %v", src, err)
			}
		}
	}
}
