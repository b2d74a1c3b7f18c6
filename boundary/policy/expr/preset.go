// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"embed"
	"slices"
)

// Presets are the names of the policies that come with this package, the mildest
// first.
var Presets = []string{"observe", "standard", "strict"}

//go:embed presets/*.yaml
var presets embed.FS

// Preset returns the file of a preset, in the format of the section policy of
// pellucid.yaml; false for a name that is not one of Presets.
func Preset(name string) ([]byte, bool) {
	if !slices.Contains(Presets, name) {
		return nil, false
	}
	b, err := presets.ReadFile("presets/" + name + ".yaml")
	return b, err == nil
}
