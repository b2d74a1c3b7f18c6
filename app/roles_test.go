// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"fmt"
	"os"
)

// roleVariable says that the test binary plays a server that ends.
const roleVariable = "PELLUCID_TEST_ROLE"

func init() {
	if os.Getenv(roleVariable) != "dying" {
		return
	}
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // reads one request and ends
	fmt.Fprintln(os.Stderr, "no room left")
	os.Exit(7)
}
