// SPDX-License-Identifier: Apache-2.0

package finding_test

import (
	"fmt"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

func ExampleCode_Severity() {
	fmt.Println(finding.ControlToken, finding.ControlToken.Severity())
	fmt.Println(finding.OddSpace, finding.OddSpace.Severity())
	// A code from a later version counts as severe.
	later := finding.Code("not-yet-known")
	fmt.Println(later, later.Known(), later.Severity())
	// Output:
	// control-token error
	// odd-space info
	// not-yet-known false error
}

// An error or a log line holds third-party text only in this form: escaped, and cut.
func ExampleQuote() {
	fmt.Println(finding.Quote("files\u202e\nERROR all is well"))
	// Output: "files\u202e\nERROR all is well"
}
