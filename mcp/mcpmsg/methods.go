// SPDX-License-Identifier: Apache-2.0

package mcpmsg

import "github.com/pellucid-mcp/pellucid/text/strictjson"

// Methods of requests, of any revision, that code outside the table has to know.
const (
	Initialize    = "initialize"
	Discover      = "server/discover"
	Ping          = "ping"
	SetLevel      = "logging/setLevel"
	ListTools     = "tools/list"
	CallTool      = "tools/call"
	ListPrompts   = "prompts/list"
	GetPrompt     = "prompts/get"
	ListResources = "resources/list"
	ListTemplates = "resources/templates/list"
	ReadResource  = "resources/read"
	Subscribe     = "resources/subscribe"
	Unsubscribe   = "resources/unsubscribe"
	Complete      = "completion/complete"
	Listen        = "subscriptions/listen"
	ListTasks     = "tasks/list"
	GetTask       = "tasks/get"
	TaskResult    = "tasks/result"

	Tasks = "tasks/" // what every method about tasks begins with

	// Of servers.
	ListRoots = "roots/list"
	Sample    = "sampling/createMessage"
	Elicit    = "elicitation/create"
)

// Notifications.
const (
	Initialized         = "notifications/initialized"
	Cancelled           = "notifications/cancelled"
	Progress            = "notifications/progress"
	LogMessage          = "notifications/message"
	ToolsChanged        = "notifications/tools/list_changed"
	PromptsChanged      = "notifications/prompts/list_changed"
	ResourcesChanged    = "notifications/resources/list_changed"
	ResourceUpdated     = "notifications/resources/updated"
	RootsChanged        = "notifications/roots/list_changed"
	Acknowledged        = "notifications/subscriptions/acknowledged"
	ElicitationComplete = "notifications/elicitation/complete"
	TaskStatus          = "notifications/tasks/status"
	TaskChanged         = "notifications/tasks"
)

// Members of _meta that the protocol has reserved.
const (
	KeyVersion    = "io.modelcontextprotocol/protocolVersion"
	KeyClientInfo = "io.modelcontextprotocol/clientInfo"
	KeyClientCaps = "io.modelcontextprotocol/clientCapabilities"
	KeyServerInfo = "io.modelcontextprotocol/serverInfo"
	KeySubscriber = "io.modelcontextprotocol/subscriptionId"
	KeyLogLevel   = "io.modelcontextprotocol/logLevel"
)

// Modern is the first revision without sessions.
const Modern = "2026-07-28"

// ResultTypes are the values of resultType that a result may have; any other is invalid.
var ResultTypes = []string{"complete", "input_required", ResultTask}

// ResultTask is the resultType of an answer that is a task.
const ResultTask = "task"

// AppendListParams appends the params that ask for a page of a list: the one behind
// cursor, "" for the first, with _meta if it is not nil.
func AppendListParams(dst []byte, cursor string, meta []byte) []byte {
	dst = append(dst, '{')
	if cursor != "" {
		dst = strictjson.AppendQuote(append(dst, `"cursor":`...), cursor)
	}
	if meta != nil {
		if cursor != "" {
			dst = append(dst, ',')
		}
		dst = append(append(dst, `"_meta":`...), meta...)
	}
	return append(dst, '}')
}

// NoSampling is what a server is told that asks for it without being allowed to.
const NoSampling = "pellucid: sampling is not allowed to this server; the operator can allow it with " +
	"dangerously_allow_sampling: true in the configuration, or wrap --set dangerously_allow_sampling=true"
