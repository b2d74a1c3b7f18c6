// SPDX-License-Identifier: Apache-2.0

package protect

import "strings"

// A remote is an entry with a URL, while it is rewritten.
type remote struct {
	*entry
	address *node
	secret  bool  // the URL may hold a secret
	headers *node // nil: none
	holder  *node // has headers as a member; nil if no object does
	env     *node

	front     []string
	variables []string // NAME, VALUE, …: to be written into env
	inherit   []string // variables that the client is to pass on
	taken     map[string]bool
}

// urlVariable holds a URL that may have a secret in it.
const urlVariable = "PELLUCID_URL"

// fromEnv reports whether the client takes headers from its environment.
func (r *remote) fromEnv() bool {
	return r.v.get(r.dialect.bearer).exists() || len(r.v.get(r.dialect.fromEnv).all()) > 0
}

func (r *remote) rewrite(kind *node) (why string) {
	d := r.dialect
	r.taken = map[string]bool{}
	r.front = append(r.entry.front(), "--url", r.address.str())
	if r.secret {
		r.front[len(r.front)-1] = "env:" + urlVariable
		r.variables = append(r.variables, urlVariable, string(r.t.raw(r.address)))
		if r.t.syntax != JSON {
			r.variables[1] = quote(r.address.str())
		}
	}
	if strings.EqualFold(kind.str(), kindSSE) {
		r.front = append(r.front, "--transport", kindSSE)
	}
	// The names of the headers' own object change, if env is not one that there is already.
	rename := r.headers.exists() && !r.env.exists() && d.nested == ""
	for _, m := range r.headers.all() {
		variable, ok := headerVariable(m.name, r.taken)
		switch {
		case !ok || !m.value.is('"') || m.value.str() == "":
			return whyVariable
		case d.fills && strings.Contains(m.value.str(), "$"):
			return whyFilled
		}
		r.front = append(r.front, "--header", m.name+"=env:"+variable)
		if rename {
			if m.spread {
				return whyParts
			}
			r.replace(m.key, r.t.key(variable))
		} else {
			r.variables = append(r.variables, variable, quote(m.value.str()))
		}
	}
	if why := r.clientVariables(); why != "" {
		return why
	}
	into := r.env
	if rename {
		m := r.holder.holding(r.headers)
		if m.spread {
			return whyParts
		}
		r.replace(m.key, r.t.key(d.env))
		into = r.headers
	}
	return r.write(into)
}

// clientVariables is for headers that the client takes from its environment. The member that
// names them becomes the one that has the client pass them on.
func (r *remote) clientVariables() (why string) {
	d := r.dialect
	bearer, headers := r.v.get(d.bearer), r.v.get(d.fromEnv)
	switch {
	case !r.fromEnv():
		return ""
	case bearer.exists() && headers.exists(), r.v.get(d.inherit).exists(), headers.exists() && !headers.flow:
		return whyShape
	case bearer.exists() && (!bearer.is('"') || !isVariable(bearer.str())):
		return whyVariable
	case bearer.exists():
		r.front = append(r.front, "--bearer", "env:"+bearer.str())
		r.inherit = append(r.inherit, bearer.str())
	}
	for _, m := range headers.all() {
		if _, ok := headerVariable(m.name, r.taken); !ok || !m.value.is('"') || !isVariable(m.value.str()) {
			return whyVariable
		}
		r.front = append(r.front, "--header", m.name+"=env:"+m.value.str())
		r.inherit = append(r.inherit, m.value.str())
	}
	old := headers
	if bearer.exists() {
		old = bearer
	}
	m := r.v.holding(old)
	r.edits = append(r.edits, splice{m.key.start, old.end, []byte(r.t.pair(d.inherit, list(r.inherit, ", ")))})
	return ""
}

// write writes the command in the place of the URL, and variables into the object that there
// is, or into one beside it.
func (r *remote) write(into *node) (why string) {
	d, t := r.dialect, r.t
	members := []string{t.pair(d.command, quote(r.options.Binary)), t.pair(d.args, list(r.front, ", "))}
	if d.whole {
		members = []string{t.pair(d.command, list(append([]string{r.options.Binary}, r.front...), ", "))}
	}
	var pairs []string
	for i := 0; i < len(r.variables); i += 2 {
		pairs = append(pairs, t.pair(r.variables[i], r.variables[i+1]))
	}
	switch {
	case len(pairs) == 0:
	case !into.exists():
		inline := "{" + strings.Join(pairs, ", ") + "}"
		members = append(members, t.pair(d.env, inline))
	case into.is('{') && into.flow && into.known():
		moved := strings.Join(pairs, ", ")
		if len(into.all()) > 0 {
			moved += ", "
		}
		r.edits = append(r.edits, splice{into.start + 1, into.start + 1, []byte(moved)})
	case into.is('{') && len(into.all()) > 0:
		first := into.all()[0]
		sep := t.between(into, &first)
		r.edits = append(r.edits, splice{first.key.start, first.key.start, []byte(strings.Join(pairs, sep) + sep)})
	default:
		return whyShape
	}
	m := r.v.holding(r.address)
	sep := t.between(r.v, m)
	r.edits = append(r.edits, splice{m.key.start, r.address.end, []byte(strings.Join(members, sep))})
	return ""
}

// headerVariable names the variable for a header.
func headerVariable(header string, taken map[string]bool) (string, bool) {
	var b strings.Builder
	b.WriteString("PELLUCID_HEADER_")
	for i := range len(header) {
		switch c := header[i]; {
		case 'a' <= c && c <= 'z':
			b.WriteByte(c - 'a' + 'A')
		case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			b.WriteByte(c)
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
			b.WriteByte('_')
		default:
			return "", false
		}
	}
	name := b.String()
	for n := 2; taken[name]; n++ {
		name = b.String() + "_" + itoa(n)
	}
	taken[name] = true
	return name, header != "" && len(header) <= 256
}
