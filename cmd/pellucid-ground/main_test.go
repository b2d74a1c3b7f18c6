// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pellucid-mcp/pellucid/platform/scripttest"
)

// asProgram is the variable that makes the test binary be the program.
const asProgram = "PELLUCID_GROUND_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"pellucid-ground": scripttest.AsUser(main)})
}

func TestScripts(t *testing.T) { scripttest.Run(t) }
