// SPDX-License-Identifier: Apache-2.0

package ground

import _ "embed"

// outputSchema is the JSON Schema (2020-12) of what the tools return.
//
// It names no $schema: 2020-12 is what MCP supposes, and some clients hold a
// validator of an older draft, for which every keyword in it means the same.
//
//go:embed schema.json
var outputSchema []byte
