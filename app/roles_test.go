// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// roleVariable says which server the test binary plays.
const roleVariable = "TEST_ROLE"

func init() {
	switch os.Getenv(roleVariable) {
	case "dying":
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // reads one request and ends
		fmt.Fprintln(os.Stderr, "no room left")
		os.Exit(7)
	case "legacy":
		serveLegacy()
		os.Exit(0)
	}
}

// serveLegacy is a server of the legacy era with a tool that repeats what it gets.
func serveLegacy() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments struct{ Text string } }
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := `"error":{"code":-32601,"message":"no such method"}`
		switch m.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		case "tools/list":
			answer = `"result":{"tools":[{"name":"echo","description":"Repeats.","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			answer = fmt.Sprintf(`"result":{"content":[{"type":"text","text":%q}]}`, m.Params.Arguments.Text)
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
	}
}
