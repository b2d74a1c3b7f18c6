// SPDX-License-Identifier: Apache-2.0

package href_test

import (
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/text/href"
)

func ExampleParse() {
	for _, s := range []string{
		"https://example.org/paper?id=7",
		"javascript:alert(1)",
		"https://127.0.0.1/",
		"https://example.org/%E2%80%AE",
	} {
		u, err := href.Parse(s)
		var refusal *href.Refusal
		if errors.As(err, &refusal) {
			fmt.Println(refusal.Code, "at byte", refusal.Offset)
			continue
		}
		fmt.Println(u, u.Host())
	}
	// Output:
	// https://example.org/paper?id=7 example.org
	// uri-scheme at byte 0
	// uri-host at byte 8
	// uri-hidden-character at byte 20
}

// A person reads the host first.
func ExampleURI_Rendered() {
	u, err := href.Parse("https://example.org/login.bank.example")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(u.Rendered())
	again, ok := href.Bare(u.Rendered())
	fmt.Println(again, ok)
	// Output:
	// [example.org] → https://example.org/login.bank.example
	// https://example.org/login.bank.example true
}
