// SPDX-License-Identifier: Apache-2.0

package values

import (
	"strings"
	"testing"
)

func TestIsDecimal(t *testing.T) {
	longest := strings.Repeat("9", 300)
	for _, s := range []string{"0", "12", "+1", "-1.50", longest + "." + longest} {
		if !isDecimal(s) {
			t.Errorf("%q is not decimal", s)
		}
	}
	for _, s := range []string{"", "+", "-", ".5", "5.", "1.2.3", "--1", "1e3", "0x10", "1_000", "1,000", "NaN", "\u0661", "9" + longest, "1.9" + longest} {
		if isDecimal(s) {
			t.Errorf("%q is decimal", s)
		}
	}
}
