// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/record/webhook"
)

// A Webhook is a receiver that is told what waits for a reviewer.
type Webhook struct {
	url       Value
	secrets   []Value
	types     []webhook.Type
	private   bool // dangerously_private_network
	plainHTTP bool // dangerously_plain_http
}

const (
	maxWebhooks = 16
	maxRotated  = 4 // secrets of one receiver
)

// webhooks are the receivers of a file, by name.
func webhooks(r *Rules) value {
	fresh := func() *Webhook {
		x := &Webhook{}
		reset(x.members())
		return x
	}
	return named(maxWebhooks, isName, (*Webhook).members, fresh,
		func(c *compiler, name string, _, val place) {
			x, before := fresh(), len(c.problems)
			c.object(val, x.members())
			if len(c.problems) == before {
				if made, err := x.Receiver(name); err != nil {
					c.report(val, "%v", err)
				} else {
					made.Close()
				}
			}
			c.out.Webhooks[name] = x
		},
		func(yield func(string, *Webhook) bool) {
			for _, name := range slices.Sorted(maps.Keys(r.Webhooks)) {
				if !yield(name, r.Webhooks[name]) {
					return
				}
			}
		})
}

func (x *Webhook) members() []member {
	types := make([]string, len(webhook.Types))
	for i, t := range webhook.Types {
		types[i] = string(t)
	}
	return []member{
		{"url", needed, urlValue(&x.url), "https, or http on this machine; redirects are not followed"},
		{"secrets", needed, references(&x.secrets, maxRotated, func(s string) bool {
			_, err := webhook.ParseSecret(s)
			return err == nil
		}, "a secret of Standard Webhooks: whsec_ and 24 to 64 bytes in base64"),
			"that sign each message, the new one beside the old one while you replace it: `whsec_…` (HMAC-SHA-256)"},
		{"events", live, list(&x.types, webhook.Types, len(types), "`"+strings.Join(types, "`, `")+"`",
			func(s string) bool { return slices.Contains(types, s) }), "what the receiver is told"},
		{"dangerously_private_network", live, boolean(&x.private, false), "allow addresses that are not on the public network"},
		{"dangerously_plain_http", live, boolean(&x.plainHTTP, false), "allow an http URL beyond this machine"},
	}
}

// attemptTime is how long one attempt to deliver a message may take.
const attemptTime = 10 * time.Second

// Receiver is the receiver of that name. The caller closes it.
func (x *Webhook) Receiver(name string) (*webhook.Receiver, error) {
	o := webhook.Options{Name: name, URL: x.url.text, Types: x.types, Timeout: attemptTime,
		DangerouslyPrivateNetwork: x.private, DangerouslyPlainHTTP: x.plainHTTP}
	for _, v := range x.secrets {
		s, err := webhook.ParseSecret(v.text)
		if err != nil {
			return nil, err
		}
		o.Secrets = append(o.Secrets, s)
	}
	return webhook.NewReceiver(o)
}

// Equal reports whether two mean the same, secrets included.
func (x *Webhook) Equal(y *Webhook) bool {
	return x.url == y.url && slices.Equal(x.secrets, y.secrets) && slices.Equal(x.types, y.types) &&
		x.private == y.private && x.plainHTTP == y.plainHTTP
}

// references is a list of secrets that valid holds for; what they stand for is in no dump.
func references(v *[]Value, most int, valid func(string) bool, want string) value {
	return value{
		reset: func() { *v = nil },
		read: func(c *compiler, p place) {
			*v = []Value{}
			c.list(p, most, func(p place) {
				switch x := c.reference(p); {
				case x.text == "": // a problem was reported
				case !valid(x.text):
					c.report(p, "does not hold %s", want)
				default:
					*v = append(*v, x)
				}
			})
		},
		write: func(d *dumper, name string) {
			if len(*v) == 0 {
				return
			}
			var refs, texts []string
			for _, x := range *v {
				refs, texts = append(refs, x.String()), append(texts, x.text)
			}
			writeList(d, name, refs)
			d.hidden(name, texts...)
		},
		kind:   "list of at most " + thousands(most) + ": `env:NAME`, `file:PATH`",
		schema: schema{"type": "array", "minItems": 1, "maxItems": most, "items": schema{"type": "string", "pattern": "^(env|file):"}},
	}
}
