// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pellucid-mcp/pellucid/platform/scripttest"
)

// tests stops what the tests have started.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	defer databases.Stop()
	return t.m.Run()
}

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"pellucid": scripttest.AsUser(main)})
}

func TestScripts(t *testing.T) { scripttest.Run(t) }
