// SPDX-License-Identifier: Apache-2.0

package era

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// published holds what is said to either side against the published schemas of
// the revision that this side speaks.
type published struct {
	version map[string]string // by side
	asked   map[string]string // method by side and raw id
}

func newPublished(t *testing.T, client, server string) *published {
	if _, err := datatest.Find("../..", schemas); err != nil {
		t.Logf("messages are not held against the schemas: %v", err)
	}
	return &published{version: map[string]string{"c< ": client, "s< ": server}, asked: map[string]string{}}
}

// schemas is the folder of the published ones.
const schemas = "mcp-schema"

func (p *published) asks(side, line string) {
	if m, err := wire.Decode([]byte(line), testLimits); err == nil && m.Kind == wire.Request {
		p.asked[side+string(m.ID.Append(nil))] = m.Method
	}
}

// names of the schemas' definitions, without Request, Notification or Result.
var defined = map[string]string{
	mcpmsg.Initialize: "Initialize", mcpmsg.Discover: "Discover", mcpmsg.Listen: "SubscriptionsListen",
	mcpmsg.Initialized: "Initialized", mcpmsg.SetLevel: "SetLevel", mcpmsg.Subscribe: "Subscribe", mcpmsg.Unsubscribe: "Unsubscribe",
	mcpmsg.Ping: "Ping", mcpmsg.ListTools: "ListTools", mcpmsg.CallTool: "CallTool", mcpmsg.ReadResource: "ReadResource",
	mcpmsg.GetPrompt: "GetPrompt", mcpmsg.Elicit: "Elicit", mcpmsg.ListRoots: "ListRoots", mcpmsg.Sample: "CreateMessage",
	mcpmsg.Progress: "Progress", mcpmsg.LogMessage: "LoggingMessage", mcpmsg.Cancelled: "Cancelled",
	mcpmsg.Acknowledged: "SubscriptionsAcknowledged", mcpmsg.ToolsChanged: "ToolListChanged", mcpmsg.ResourceUpdated: "ResourceUpdated",
}

func (p *published) check(t *testing.T, lines []string) {
	t.Helper()
	for _, line := range lines {
		side, raw := line[:3], line[3:]
		m, err := wire.Decode([]byte(raw), testLimits)
		if err != nil {
			t.Errorf("no message: %v: %s", err, line)
			continue
		}
		p.asks(side, raw)
		version, name, value := p.version[side], defined[m.Method], []byte(raw)
		switch m.Kind {
		case wire.Request:
			name += "Request"
		case wire.Notification:
			name += "Notification"
		case wire.Response:
			method := p.asked[side+string(m.ID.Append(nil))]
			name, value = defined[method]+"Result", m.Result.Raw()
			switch {
			case m.Result.Get("resultType").Text() == "input_required":
				name = "InputRequiredResult"
			case method == mcpmsg.Ping || method == mcpmsg.SetLevel || method == mcpmsg.Subscribe || method == mcpmsg.Unsubscribe:
				name = "EmptyResult"
			case side == "s< ": // a client's own words
				continue
			}
			if m.Result.Get("protocolVersion").Exists() { // a legacy client after all
				continue
			}
		case wire.ErrorResponse:
			continue // the same in every revision, and wire's to check
		}
		if m.Kind == wire.Response && name == "EmptyResult" && version == modernVersion {
			t.Errorf("a result that the revision does not have: %s", line)
		}
		if err := conforms(version, name, value); err != nil {
			t.Errorf("%s %s: %v\n%s", version, name, err, line)
		}
	}
}

var compiled struct {
	sync.Mutex
	compilers map[string]*jsonschema.Compiler
	schemas   map[string]*jsonschema.Schema
}

// conforms reports what is wrong with a message; nothing where there are no schemas.
func conforms(version, name string, raw []byte) error {
	s, err := definition(version, name)
	if err != nil || s == nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

func definition(version, name string) (*jsonschema.Schema, error) {
	compiled.Lock()
	defer compiled.Unlock()
	if s := compiled.schemas[version+name]; s != nil {
		return s, nil
	}
	path, err := datatest.Find("../..", schemas+"/"+version+".json")
	if err != nil {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if compiled.compilers == nil {
		compiled.compilers, compiled.schemas = map[string]*jsonschema.Compiler{}, map[string]*jsonschema.Schema{}
	}
	url := "mem:///" + version
	if compiled.compilers[version] == nil {
		c := jsonschema.NewCompiler()
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		if err := c.AddResource(url, doc); err != nil {
			return nil, err
		}
		compiled.compilers[version] = c
	}
	key := "$defs"
	if strings.Contains(string(b[:200]), "draft-07") {
		key = "definitions"
	}
	s, err := compiled.compilers[version].Compile(url + "#/" + key + "/" + name)
	if err != nil {
		return nil, errors.New("no such definition")
	}
	compiled.schemas[version+name] = s
	return s, nil
}

// TestConformsCanFail proves that the schemas are consulted.
func TestConformsCanFail(t *testing.T) {
	if _, err := datatest.Find("../..", schemas); err != nil {
		t.Skip(err)
	}
	if conforms(modernVersion, "CallToolResult", []byte(`{"content":[]}`)) == nil {
		t.Error("a result without resultType conforms")
	}
	if err := conforms("2025-06-18", "CallToolResult", []byte(`{"content":[]}`)); err != nil {
		t.Error(err)
	}
	if conforms(modernVersion, "NoSuch", []byte(`{}`)) == nil {
		t.Error("a definition that is not there")
	}
}
