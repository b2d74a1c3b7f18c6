// SPDX-License-Identifier: Apache-2.0

package wire

import "testing"

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version         string
		legacy, batches bool
	}{
		{"2024-11-05", true, false}, {"2025-03-26", true, true}, {"2025-06-18", true, false}, {"2025-11-25", true, false},
		{"2026-07-28", false, false}, {"2025-01-01", false, false}, {"", false, false}, {"1", false, false},
	} {
		if IsLegacy(tt.version) != tt.legacy || HasBatches(tt.version) != tt.batches {
			t.Errorf("%q: legacy %v, batches %v", tt.version, IsLegacy(tt.version), HasBatches(tt.version))
		}
	}
}
