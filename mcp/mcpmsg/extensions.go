// SPDX-License-Identifier: Apache-2.0

package mcpmsg

import (
	"mime"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Passage says what becomes of a capability and of what it brings.
type Passage uint8

// The passages. The zero value is the strict choice.
const (
	Withheld  Passage = iota // not announced; its methods, members of _meta and URIs are refused
	Inspected                // every string goes through the table of messages
)

func (p Passage) String() string { return [...]string{"withheld", "inspected"}[p] }

// An Extension is a capability of servers or clients, or an extension of the protocol, and
// what it brings. What comes of it passes in no other way than the table of messages allows.
type Extension struct {
	Name       string   // as people call it
	Capability []string // where it stands in capabilities of servers; nil: no server announces it
	Methods    []string // requests and notifications; "/" at the end: all that begin so
	Meta       []string // keys of _meta
	Schemes    []string // of URIs
	Alone      Passage  // at a single server
	Union      Passage  // at all servers as one
	// pinned: what its URIs name is read with the surface and is part of it. A change is held.
	pinned bool
}

// Key names the capability: its path.
func (e *Extension) Key() string { return strings.Join(e.Capability, "/") }

// In is the capability among those that a server announces; absent if it is not there.
func (e *Extension) In(capabilities strictjson.Value) strictjson.Value {
	v := capabilities
	for _, name := range e.Capability {
		v = v.Get(name)
	}
	return v
}

// Names of extensions.
const (
	ExtensionApps  = "io.modelcontextprotocol/ui"
	ExtensionTasks = "io.modelcontextprotocol/tasks"
)

// Extensions is the table of capabilities. Its last row is for what no other row names.
var Extensions = []Extension{
	{Name: "the protocol itself", Alone: Inspected, Union: Inspected,
		Methods: []string{Initialize, Initialized, Discover, Ping, Cancelled, Progress, Listen, Acknowledged}},
	{Name: "tools", Capability: []string{"tools"}, Methods: []string{ListTools, CallTool, ToolsChanged}, Alone: Inspected, Union: Inspected},
	{Name: "prompts", Capability: []string{"prompts"}, Methods: []string{ListPrompts, GetPrompt, PromptsChanged}, Alone: Inspected, Union: Inspected},
	{Name: "resources", Capability: []string{"resources"}, Alone: Inspected, Union: Inspected,
		Methods: []string{ListResources, ListTemplates, ReadResource, Subscribe, Unsubscribe, ResourcesChanged, ResourceUpdated}},
	{Name: "logging", Capability: []string{"logging"}, Methods: []string{SetLevel, LogMessage}, Alone: Inspected, Union: Inspected},
	{Name: "completions", Capability: []string{"completions"}, Methods: []string{Complete}, Alone: Inspected, Union: Inspected},
	{Name: "roots", Methods: []string{ListRoots, RootsChanged}, Alone: Inspected, Union: Inspected},
	{Name: "sampling", Methods: []string{Sample}, Alone: Inspected, Union: Inspected},
	{Name: "elicitation", Methods: []string{Elicit, ElicitationComplete}, Alone: Inspected, Union: Inspected},
	{Name: "tasks of 2025-11-25", Capability: []string{"tasks"}, Methods: []string{Tasks, TaskStatus},
		Meta: []string{"io.modelcontextprotocol/related-task"}, Alone: Inspected, Union: Inspected},
	{Name: "Tasks", Capability: []string{"extensions", ExtensionTasks}, Methods: []string{Tasks, TaskChanged}, Alone: Inspected, Union: Inspected},
	{Name: "Apps", Capability: []string{"extensions", ExtensionApps}, Meta: []string{"ui", "ui/resourceUri"}, Schemes: []string{"ui"},
		Alone: Inspected, Union: Inspected, pinned: true},
	{Name: "experimental", Capability: []string{"experimental", "*"}, Alone: Inspected, Union: Withheld},
	{Name: "any other", Capability: []string{"*"}, Alone: Inspected, Union: Withheld},
}

// AppType is the type of an app's page.
const AppType = "text/html;profile=mcp-app"

// IsApp reports whether a URI is that of an app.
func IsApp(uri string) bool { return pinnedSchemes[scheme(uri)] }

// IsAppRead reports whether the answer to a read of a resource is an app: by the URI
// that was asked for, or by what the answer calls itself.
func IsAppRead(uri string, result strictjson.Value) bool {
	if !result.Get("contents").Exists() {
		return false
	}
	if IsApp(uri) {
		return true
	}
	for c := range result.Get("contents").Elements() {
		kind, params, err := mime.ParseMediaType(c.Get("mimeType").Text())
		if IsApp(c.Get("uri").Text()) || err == nil && kind == "text/html" && params["profile"] == "mcp-app" {
			return true
		}
	}
	return false
}

// AppsOf are the URIs of the apps that a tool names, in both spellings of its _meta.
func AppsOf(tool strictjson.Value) (list []string) {
	meta := tool.Get("_meta")
	for _, v := range []strictjson.Value{meta.Get("ui").Get("resourceUri"), meta.Get("ui/resourceUri")} {
		if v.Kind() == '"' {
			list = append(list, v.Text())
		}
	}
	return list
}
