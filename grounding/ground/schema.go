// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	_ "embed"
)

//go:embed schema.json
var outputSchema []byte

// OutputSchema is the JSON Schema (2020-12) of what Ground and Attestation return.
//
// It names no $schema: 2020-12 is what MCP supposes, and some clients hold a
// validator of an older draft, for which every keyword in it means the same.
func OutputSchema() []byte { return bytes.Clone(outputSchema) }
