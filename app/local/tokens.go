// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// ReadTokens reads a token file.
func ReadTokens(name string, secret func(ref string) (string, error)) (auth.Authenticator, error) {
	b, err := terminal.ReadInput(name, strings.NewReader(""))
	if err != nil {
		return nil, err
	}
	return auth.ParseTokens(b, secret)
}
