// SPDX-License-Identifier: Apache-2.0

package mcpmsg

import "slices"

// Words of the protocol.
var (
	roles      = []string{"user", "assistant"}
	taskStates = []string{"working", "input_required", "completed", "failed", "cancelled"}
	blockTypes = []string{"text", "image", "audio", "resource", "resource_link", "tool_use", "tool_result"}
)

// Fields that many shapes share.
var (
	meta = Field{Name: "_meta", Treat: Meta}
	// requestState is between a server and itself: a client must echo it byte
	// for byte and never reads it, so it cannot mislead a reader.
	requestState  = Field{Name: "requestState", Treat: Opaque}
	inputRequests = Field{Name: "inputRequests", Shape: inputRequest, Arity: Map}
	resultType    = Field{Name: "resultType", Treat: Name, Words: ResultTypes}
	cacheScope    = Field{Name: "cacheScope", Treat: Name, Words: []string{"public", "private"}}
	nextCursor    = Field{Name: "nextCursor", Treat: Name}
	// task is what a server answers instead of a result that takes its time.
	task = Field{Name: "task", Shape: taskShape}
	// isError and the like hold no text, if a server keeps to the protocol.
	isError = Field{Name: "isError", Treat: Data}
	ttl     = Field{Name: "ttlMs", Treat: Data}
	icons   = Field{Name: "icons", Shape: icon, Arity: List, Unit: Entry}
)

func name(n string) Field       { return Field{Name: n, Treat: Name} }
func text(n string) Field       { return Field{Name: n, Treat: Text} }
func link(n string) Field       { return Field{Name: n, Treat: Link} }
func definition(n string) Field { return Field{Name: n, Treat: Definition} }
func schema(n string) Field     { return Field{Name: n, Treat: Schema} }
func data(n string) Field       { return Field{Name: n, Treat: Data} }

// params and result make the shape of a message's root.
func params(n string, fields ...Field) *Shape { return shape(n, Data, append(fields, meta)...) }

func result(n string, rest Treatment, fields ...Field) *Shape {
	return shape(n, rest, append(fields, meta, resultType, inputRequests, requestState, cacheScope, ttl, nextCursor, task)...)
}

// list is the shape of a definitions list whose entries stand or fall alone.
func list(n, member string, entry *Shape) *Shape {
	return result(n, Schema, Field{Name: member, Shape: entry, Arity: List, Unit: Entry})
}

// What definitions are made of. A client sends back names and URIs, so they are
// never rewritten.
var (
	icon = shape("Icon", Schema, name("src"), name("mimeType"), schema("sizes"), name("theme"))

	implementation = shape("Implementation", Schema,
		definition("name"), definition("title"), definition("version"), definition("description"), name("websiteUrl"), icons)

	tool = shape("Tool", Schema, name("name"), definition("title"), definition("description"),
		schema("inputSchema"), schema("outputSchema"), schema("annotations"), schema("execution"), icons, meta)

	resource = shape("Resource", Schema, name("uri"), name("name"), definition("title"), definition("description"),
		name("mimeType"), schema("annotations"), icons, meta)

	resourceTemplate = shape("ResourceTemplate", Schema, name("uriTemplate"), name("name"), definition("title"),
		definition("description"), name("mimeType"), schema("annotations"), icons, meta)

	promptArgument = shape("PromptArgument", Schema, name("name"), definition("title"), definition("description"))

	prompt = shape("Prompt", Schema, name("name"), definition("title"), definition("description"),
		Field{Name: "arguments", Shape: promptArgument, Arity: List}, icons, meta)
)

// What results are made of. There is one shape for content blocks of every
// type: a reader that ignores the type finds nothing that was treated as another's.
var (
	annotations = shape("Annotations", Data, Field{Name: "audience", Treat: Name, Arity: List, Words: roles}, text("lastModified"), data("priority"))

	toolContent   = content("ToolContent", ToolText)
	promptContent = content("PromptContent", PromptText)
	plainContent  = content("Content", Text)

	promptMessage   = message("PromptMessage", promptContent)
	samplingMessage = message("SamplingMessage", plainContent)

	toolFields = []Field{{Name: "content", Shape: toolContent, Arity: List, Unit: Block}, data("structuredContent"), isError}
	toolResult = result("CallToolResult", Data, toolFields...)

	taskShape = shape("Task", Data, taskFields...)
)

var taskFields = []Field{name("taskId"), {Name: "status", Treat: Name, Words: taskStates}, text("statusMessage"), text("createdAt"), text("lastUpdatedAt"),
	{Name: "result", Shape: toolResultOfTask}, {Name: "error", Shape: toolError}}

// toolResultOfTask is a finished task's result inside another message. It is
// not toolResult because Go's initialisation allows no circle.
var toolResultOfTask = shape("TaskToolResult", Data,
	Field{Name: "content", Shape: toolContent, Arity: List, Unit: Block}, data("structuredContent"), isError, resultType, meta)

// resourceContents is the shape of a resource's contents. Where its text is framed, that
// depends on its type.
func resourceContents(t Treatment) *Shape {
	return shape("ResourceContents", Data, name("uri"), name("mimeType"), Field{Name: "text", Treat: t, Typed: true},
		Field{Name: "blob", Treat: Blob}, meta)
}

func message(n string, content *Shape) *Shape {
	return shape(n, Data, Field{Name: "role", Treat: Name, Words: roles},
		Field{Name: "content", Shape: content, Arity: OneOrMany, Unit: Block}, meta)
}

func content(n string, t Treatment) *Shape {
	s := shape(n, Data)
	s.set(Field{Name: "type", Treat: Name, Words: blockTypes}, Field{Name: "text", Treat: t}, Field{Name: "data", Treat: Blob},
		name("mimeType"), name("uri"), name("name"), text("title"), text("description"),
		Field{Name: "resource", Shape: resourceContents(t)}, Field{Name: "annotations", Shape: annotations}, icons, meta,
		name("id"), name("toolUseId"), data("input"), data("structuredContent"), isError, data("size"),
		Field{Name: "content", Shape: s, Arity: List, Unit: Block})
	return s
}

// What a server asks of a client.
var (
	elicitation = params("ElicitRequestParams", text("message"), name("mode"), link("url"), name("elicitationId"),
		schema("requestedSchema"), data("task"))

	sampling = params("CreateMessageRequestParams",
		Field{Name: "messages", Shape: samplingMessage, Arity: List}, text("systemPrompt"), name("includeContext"),
		Field{Name: "stopSequences", Treat: Text, Arity: List}, data("modelPreferences"), data("metadata"),
		Field{Name: "tools", Shape: tool, Arity: List, Unit: Entry}, data("toolChoice"), data("task"))

	taskID = params("TaskRequestParams", name("taskId"), name("cursor"))

	// inputRequest is a request inside a result. Its params may be those of any
	// of the three methods, which share no member with two meanings.
	inputRequest = shape("InputRequest", Data, name("method"), Field{Name: "params", Shape: inputParams})
	inputParams  = shape("InputRequestParams", Data, append(elicitation.Fields[:5:5], sampling.Fields...)...)
)

// Roots of messages that have nothing of their own.
var (
	plainParams = params("Params")
	plainResult = result("Result", Data)

	urlElicitation = shape("URLElicitation", Data, text("message"), name("mode"), link("url"), name("elicitationId"), meta)
	errorData      = shape("ErrorData", Data, Field{Name: "elicitations", Shape: urlElicitation, Arity: List, Unit: Entry},
		Field{Name: "requiredCapabilities", Treat: Schema}, Field{Name: "supported", Treat: Name, Arity: List}, text("requested"))
	rpcError = shape("Error", Data, text("message"), Field{Name: "data", Shape: errorData})
	// An error that answers a tool's call is read as the tool's answer.
	toolError = shape("ToolError", Data, Field{Name: "message", Treat: ToolText}, Field{Name: "data", Shape: errorData})
)

// rows is the table.
var rows = []Row{
	// Definitions: what a server says of itself.
	{Method: Initialize, Part: Result, Definitions: true, Instructions: true,
		Shape: result("InitializeResult", Schema, name("protocolVersion"), schema("capabilities"),
			Field{Name: "serverInfo", Shape: implementation}, definition("instructions"))},
	{Method: Discover, Part: Result, Definitions: true, Instructions: true,
		Shape: result("DiscoverResult", Schema, Field{Name: "supportedVersions", Treat: Name, Arity: List},
			schema("capabilities"), Field{Name: "serverInfo", Shape: implementation}, definition("instructions"))},
	{Method: ListTools, Part: Result, Definitions: true, Shape: list("ListToolsResult", "tools", tool)},
	{Method: ListResources, Part: Result, Definitions: true, Shape: list("ListResourcesResult", "resources", resource)},
	{Method: ListTemplates, Part: Result, Definitions: true,
		Shape: list("ListResourceTemplatesResult", "resourceTemplates", resourceTemplate)},
	{Method: ListPrompts, Part: Result, Definitions: true, Shape: list("ListPromptsResult", "prompts", prompt)},

	// Results: what a server found elsewhere.
	{Method: CallTool, Part: Result, Mark: Always, Shape: toolResult},
	{Method: CallTool, Part: Error, Shape: toolError},
	{Method: TaskResult, Part: Result, Mark: Always, Shape: toolResult},
	{Method: TaskResult, Part: Error, Shape: toolError},
	{Method: ReadResource, Part: Result, Mark: Always,
		Shape: result("ReadResourceResult", Data, Field{Name: "contents", Shape: resourceContents(ResourceText), Arity: List})},
	{Method: GetPrompt, Part: Result, Mark: Always,
		Shape: result("GetPromptResult", Data, text("description"), Field{Name: "messages", Shape: promptMessage, Arity: List})},
	{Method: Complete, Part: Result, Mark: Always,
		Shape: result("CompleteResult", Data, Field{Name: "completion",
			Shape: shape("Completion", Data, Field{Name: "values", Treat: Text, Arity: List}, data("total"), data("hasMore"))})},
	{Method: GetTask, Part: Result, Shape: result("GetTaskResult", Data, taskFields...)},
	{Method: "tasks/cancel", Part: Result, Shape: result("CancelTaskResult", Data, taskFields...)},
	{Method: "tasks/update", Part: Result, Shape: result("UpdateTaskResult", Data, taskFields...)},
	{Method: ListTasks, Part: Result,
		Shape: result("ListTasksResult", Data, Field{Name: "tasks", Shape: taskShape, Arity: List, Unit: Entry})},

	// Requests: words put before the user or the model.
	{Method: Elicit, Part: Params, Mark: Always, Shape: elicitation},
	{Method: Sample, Part: Params, Mark: Always, sampling: true, Shape: sampling},
	{Method: GetTask, Part: Params, Shape: taskID},
	{Method: TaskResult, Part: Params, Shape: taskID},
	{Method: "tasks/cancel", Part: Params, Shape: taskID},
	{Method: ListTasks, Part: Params, Shape: taskID},

	// Notifications.
	{Method: LogMessage, Part: Params,
		Shape: params("LoggingMessageParams", name("level"), text("logger"), data("data"))},
	{Method: Progress, Part: Params, Shape: params("ProgressParams", name("progressToken"), text("message"))},
	{Method: Cancelled, Part: Params, Shape: params("CancelledParams", name("requestId"), text("reason"))},
	{Method: ResourceUpdated, Part: Params,
		Shape: params("ResourceUpdatedParams", name("uri"), text("title"))},
	{Method: ElicitationComplete, Part: Params,
		Shape: params("ElicitationCompleteParams", name("elicitationId"))},
	{Method: Acknowledged, Part: Params,
		Shape: params("AcknowledgedParams", Field{Name: "notifications",
			Shape: shape("SubscriptionFilter", Data, Field{Name: "resourceSubscriptions", Treat: Name, Arity: List})})},
	{Method: TaskStatus, Part: Params, Shape: params("TaskStatusParams", append(taskFields, inputRequests)...)},
	{Method: TaskChanged, Part: Params, Shape: params("TaskParams", append(taskFields, inputRequests)...)},
}

// created answers a call with a task of the extension, which may have ended already. It is a row of its own:
// members of another result that have these names may be anything.
var created = Row{Method: CallTool, Part: Result, Mark: Always,
	Shape: result("CreateTaskResult", Data, slices.Concat(toolFields, taskFields)...)}
