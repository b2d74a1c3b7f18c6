// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/valueref"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// One says which server alone is compiled, and what a command line says that goes before the
// configuration.
type One struct {
	Name string
	// Command or URL is that of the command line, and Dir the directory that it names. What the
	// configuration says of the name counts for the same command or URL only: a name is no secret.
	Command  []string
	URL, Dir string
	Settings []Setting
	Policy   *Policy // in place of that of the configuration
}

// A Setting is a value that a command line gives a member.
type Setting struct {
	Flag  string // as messages name it, "--set" or "--profile"
	Path  string // of a member of the server, or of the configuration
	Value string // as a file spells it; a list may be words with commas between them
}

// ErrNoServer says that neither the command line nor the configuration names a command or a URL.
var ErrNoServer = errors.New("rules: the server has neither a command nor a URL")

// Members of the configuration of which one server depends. Of exceptions, servers and classifiers
// it depends on its own.
var (
	ofOne = []string{"version", "store", "tokens", "review", "evidence", "quarantine", "captures", "policy", "telemetry",
		"admission", "classifiers", "defaults", "servers", "exceptions"}
	ofGatewayOnly = []string{"prefix", "scopes", "share"} // members of a server
	ofUpstream    = []string{"command", "url", "mcp_json"}
)

// LoadOne compiles one server: its own entry of the configuration at path, and what that depends
// on. With path "" there is no configuration. elsewhere are the mistakes in the rest of the file, on
// which the server does not depend; a variable that is not set there counts as no mistake. The error wraps Problems,
// ErrNoServer or why the file cannot be read.
func LoadOne(path string, o Options, one One) (r *Rules, elsewhere Problems, err error) {
	src := []byte("version: " + FormatVersion + "\n")
	if path != "" {
		if src, o, err = readConfiguration(path, o); err != nil {
			return nil, nil, err
		}
	}
	o = o.orSystem()
	root, problems := parseYAML(src)
	c := &compiler{src: string(src), opt: o, out: newRules(), one: &one, reader: reader{problems: problems}}
	if problems == nil && c.version(place{node: root}) && c.problems == nil {
		if err := c.compileOne(root); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case len(c.problems) > 0 && path == "":
		return nil, nil, c.problems.sorted()
	case len(c.problems) > 0:
		return nil, nil, fmt.Errorf("%s: %w", finding.Quote(path), c.problems.sorted())
	case path != "":
		elsewhere = faultsOf(root, src, o)
	}
	return c.out.dumped(), elsewhere, nil
}

// compileOne compiles the part of a file that c.one depends on.
func (c *compiler) compileOne(root *node) error {
	entry := root.element("servers").element(c.one.Name)
	part := c.one.copyPart(root, c.opt)
	if c.out.Foreign = c.one.isForeign(entry, c.opt); entry != nil && c.one.namesUpstream() && !hasUpstream(entry) {
		c.reportUnbound(place{entry, "servers." + pathName(c.one.Name)})
	}
	for _, s := range c.one.Settings {
		c.set(part, s)
	}
	server := part.element("servers").element(c.one.Name)
	if !c.one.namesUpstream() && !hasUpstream(server) {
		return ErrNoServer
	}
	if all := part.element("classifiers"); all != nil {
		named := namedClassifiers(part.element("defaults"), server)
		*all = *all.only(func(name string) bool { return name == Local || named[name] })
	}
	c.root = place{node: part}
	c.object(c.root, c.out.members())
	if c.one.Policy != nil {
		c.out.Policy = c.one.Policy
	}
	for _, compileTools := range c.last {
		compileTools()
	}
	return nil
}

// copyPart copies the part of a file that the server depends on, with an entry of the server.
func (one *One) copyPart(root *node, o Options) *node {
	part := root.only(func(name string) bool { return slices.Contains(ofOne, name) && (name != "policy" || one.Policy == nil) })
	if part.element("evidence") == nil {
		part.put("evidence", &node{kind: isObject}).put("mode", &node{kind: isText, text: "off"})
	}
	if t := part.element("telemetry"); t != nil {
		part.put("telemetry", t.only(func(name string) bool { return name == "log" || name == "log_format" }))
	}
	server := part.element("servers").element(one.Name)
	foreign := one.isForeign(server, o)
	if list := part.element("exceptions"); list != nil && list.kind == isList {
		own := *list
		own.elements = slices.DeleteFunc(slices.Clone(list.elements), func(e *node) bool {
			server := e.element("server")
			return foreign || server == nil || server.text != one.Name
		})
		part.put("exceptions", &own)
	}
	if server == nil || foreign {
		server = &node{kind: isObject, setting: ofCommandLine}
	}
	server = server.only(func(name string) bool {
		return !slices.Contains(ofGatewayOnly, name) && !(one.namesUpstream() && hasUpstream(server) && slices.Contains(ofUpstream, name))
	})
	servers := &node{kind: isObject}
	servers.put(one.Name, server)
	part.put("servers", servers)
	return part
}

// namesUpstream reports whether the command line names the command or the URL.
func (one *One) namesUpstream() bool { return len(one.Command) > 0 || one.URL != "" }

// isForeign reports whether an entry of the file names another command or URL than the command line.
func (one *One) isForeign(entry *node, o Options) bool {
	if !one.namesUpstream() || !hasUpstream(entry) {
		return false
	}
	if one.URL != "" {
		at := entry.textOf("url")
		if isReference(at) {
			at, _ = o.resolve(at)
		}
		return at == "" || withoutQuery(at) != withoutQuery(one.URL)
	}
	var words []string
	for _, word := range entry.element("command").list() {
		words = append(words, word.text)
	}
	dir := entry.textOf("cwd")
	return !slices.Equal(words, one.Command) || one.Dir != "" && (dir == "" || o.locate(dir) != filepath.Clean(one.Dir))
}

// withoutQuery removes the query of a URL, which may hold keys.
func withoutQuery(url string) string {
	at, _, _ := strings.Cut(url, "?")
	return at
}

// boundMembers hold secrets or trust, which are for a command or URL and not for a name.
var boundMembers = []string{"headers", "tls", "env", "admission", "dangerously_allow_sampling"}

// reportUnbound reports the members that an entry without a command or URL may not have.
func (c *compiler) reportUnbound(entry place) {
	const needsOne = "needs the command or url of the server beside it: any server may have this name"
	for _, name := range boundMembers {
		if n := entry.element(name); n != nil {
			c.report(entry.join(name, n), needsOne)
		}
	}
	places := []place{entry}
	if tools := entry.element("tools"); tools != nil {
		for i, tool := range tools.elements {
			places = append(places, entry.join("tools", tools).join(tools.names[i].text, tool))
		}
	}
	for _, p := range places {
		for name, loosens := range looseningMembers {
			if n := p.element(name); n != nil && loosens(n) {
				c.report(p.join(name, n), needsOne)
			}
		}
	}
}

// looseningMembers are members that may make an entry laxer than the defaults, each with the values that do.
var looseningMembers = map[string]func(n *node) bool{
	"frame":          func(n *node) bool { return n.text != "fence" },
	"hold":           isEmptyList,
	"classify":       isEmptyList,
	"validate":       func(n *node) bool { return n.text == "audit" || n.text == "off" },
	"profile":        func(n *node) bool { return n.text == "veritas-0.1" },
	"control_tokens": func(n *node) bool { return n.text == "keep" },
}

func isEmptyList(n *node) bool { return n.kind == isList && len(n.elements) == 0 }

// hasUpstream reports whether an entry names its server.
func hasUpstream(entry *node) bool {
	return slices.ContainsFunc(ofUpstream, func(name string) bool { return entry.element(name) != nil })
}

// namedClassifiers are those that the defaults, a server and its tools name.
func namedClassifiers(of ...*node) map[string]bool {
	named := map[string]bool{}
	var add func(n *node, depth int)
	add = func(n *node, depth int) {
		for _, name := range n.element("classify").list() {
			named[name.text] = true
		}
		if tools := n.element("tools"); tools != nil && depth == 0 {
			for _, tool := range tools.elements {
				add(tool, depth+1)
			}
		}
	}
	for _, n := range of {
		add(n, 0)
	}
	return named
}

// faultsOf are the mistakes in a whole file, but for those that another environment mends. Its policy was
// compiled already.
func faultsOf(root *node, src []byte, o Options) Problems {
	o.OfClients = true
	c := &compiler{src: string(src), opt: o, out: newRules()}
	c.root = place{node: root.only(func(name string) bool { return name != "policy" })}
	c.object(c.root, c.out.members())
	c.reach()
	c.hosts()
	for _, compileTools := range c.last {
		compileTools()
	}
	return slices.DeleteFunc(c.problems.sorted(), func(p Problem) bool { return strings.HasSuffix(p.Fault, valueref.NotSet) })
}

// ofCommandLine is the setting of what the command line says without naming a member.
const ofCommandLine = "-"

// set puts a setting in its place: a member of the server, or else of the configuration.
func (c *compiler) set(part *node, s Setting) {
	names := strings.Split(s.Path, ".")
	if names[0] == "servers" && len(names) > 2 && names[1] == c.one.Name {
		names = names[2:]
	}
	at, table := part, newRules().members()
	of := (&Server{}).members(newRules())
	ofServer := slices.ContainsFunc(of, func(m member) bool { return m.name == names[0] })
	flag := s.Flag + " " + s.Path
	if s.Flag != "--set" {
		flag = s.Flag
	}
	refuse := func(fault string, args ...any) {
		c.report(place{node: &node{setting: flag}}, fault, args...)
	}
	switch {
	case slices.Contains(names, ""):
		refuse("want PATH=VALUE, such as max_chars=4000000")
		return
	case names[0] == "version":
		refuse("is that of a file: a command line has none")
		return
	case ofServer && slices.Contains(ofUpstream, names[0]), ofServer && slices.Contains(ofGatewayOnly, names[0]):
		refuse("is not set here: a command stands behind --, a URL behind --url, and what only a gateway uses in its configuration")
		return
	case !ofServer && slices.Contains(ofOne, names[0]) && names[0] != "servers":
	case !ofServer && slices.ContainsFunc(table, func(m member) bool { return m.name == names[0] }):
		refuse("is not a setting of this server: pellucid up reads it in its configuration")
		return
	default:
		at, table = part.element("servers").element(c.one.Name), of
		if !ofServer {
			table = append(slices.Clone(of), table...) // so that either may be meant
		}
	}
	m := memberAt(table, names)
	if m == nil {
		refuse("there is no such member%s", nearest(names[len(names)-1], tableAt(table, names)))
		return
	}
	value, fault := m.value.fromSetting(s.Value)
	if fault != "" {
		refuse("%s", fault)
		return
	}
	if c.opt.Dir != "" {
		value.absolute()
	}
	value.mark(flag)
	for _, name := range names[:len(names)-1] {
		next := at.element(name)
		if next == nil || next.kind != isObject {
			next = at.put(name, &node{kind: isObject, setting: flag})
		} else {
			next = at.put(name, next.only(func(string) bool { return true })) // the file's own stays as it is
		}
		at = next
	}
	at.put(names[len(names)-1], value)
}

// tableAt are the members that the last of names may be; nil where a name before it is not known.
func tableAt(table []member, names []string) []member {
	for len(names) > 1 {
		i := slices.IndexFunc(table, func(m member) bool { return m.name == names[0] })
		if i < 0 || table[i].value.form == scalar || table[i].value.form == listForm {
			return nil
		}
		if table[i].value.form == mapForm {
			names = names[1:] // the author chooses the name
		}
		table, names = table[i].value.sample(), names[1:]
	}
	if len(names) == 0 {
		return nil
	}
	return table
}

// memberAt returns the member at a path, or nil.
func memberAt(table []member, names []string) *member {
	table, last := tableAt(table, names), names[len(names)-1]
	if i := slices.IndexFunc(table, func(m member) bool { return m.name == last }); i >= 0 {
		return &table[i]
	}
	return nil
}

// fromSetting is the node of a value on a command line. A string needs no quotes there, and a list no
// brackets.
func (v value) fromSetting(text string) (n *node, fault string) {
	_, choice := v.schema["anyOf"] // a word, or a list
	takesList := v.schema["type"] == "array" || choice && text != "all"
	switch {
	case text == "" && takesList && v.form == scalar:
		return &node{kind: isList}, ""
	case text == "", !takesList && (choice || v.words != nil || v.form == scalar && v.schema["type"] == "string"):
		return &node{kind: isText, text: text}, ""
	case takesList && v.form == scalar && !strings.HasPrefix(text, "["):
		out := &node{kind: isList}
		for _, word := range strings.Split(text, ",") {
			out.elements = append(out.elements, &node{kind: isText, text: strings.TrimSpace(word)})
		}
		return out, ""
	}
	root, problems := parseYAML([]byte("value: " + text + "\n"))
	if problems != nil || len(root.elements) != 1 {
		return nil, "the value is not valid: a file would spell it " + v.kind
	}
	return root.elements[0], ""
}

// element returns the value of a member of an object, or nil.
func (n *node) element(name string) *node {
	if n == nil || n.kind != isObject {
		return nil
	}
	return place{node: n}.member(name)
}

// string returns the text of a member of an object, or "".
func (n *node) textOf(name string) string {
	if m := n.element(name); m != nil {
		return m.text
	}
	return ""
}

func (n *node) list() []*node {
	if n == nil || n.kind != isList {
		return nil
	}
	return n.elements
}

// only is a copy of an object with some of its members; any other node stays as it is.
func (n *node) only(keep func(name string) bool) *node {
	if n.kind != isObject {
		return n
	}
	out := *n
	out.names, out.elements = nil, nil
	for i, name := range n.names {
		if keep(name.text) {
			out.names, out.elements = append(out.names, name), append(out.elements, n.elements[i])
		}
	}
	return &out
}

// put sets a member of an object, and returns its value.
func (n *node) put(name string, value *node) *node {
	for i, have := range n.names {
		if have.text == name {
			n.elements[i] = value
			return value
		}
	}
	n.names = append(n.names, &node{kind: isText, text: name, line: value.line, col: value.col, setting: value.setting})
	n.elements = append(n.elements, value)
	return value
}

// mark notes by which setting a value was given.
func (n *node) mark(setting string) {
	n.setting, n.line, n.col = setting, 0, 0
	for _, part := range slices.Concat(n.names, n.elements) {
		part.mark(setting)
	}
}

// absolute has the files of references begin in the working directory, as on every command line.
func (n *node) absolute() {
	if name, isFile := strings.CutPrefix(n.text, "file:"); isFile && n.kind == isText && !strings.HasPrefix(name, "~/") {
		if path, err := filepath.Abs(name); err == nil {
			n.text = "file:" + path
		}
	}
	for _, part := range n.elements {
		part.absolute()
	}
}
