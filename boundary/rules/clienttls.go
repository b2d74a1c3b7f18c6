// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/egress"
)

// ClientTLS is how connections to a server at a URL are secured beside what the system says.
type ClientTLS struct {
	Cert, Key Value // PEM: a client certificate and its key; empty: none
	CA        Value // PEM: whose certificates of servers are accepted; empty: those of the system

	cert, key string // paths of the files
	roots     *x509.CertPool
}

const maxPEM = 1 << 20 // bytes

// NewClientTLS reads PEM files; "" names no file. It returns nil where no file is named.
func NewClientTLS(cert, key, ca string) (*ClientTLS, error) {
	if cert == "" && key == "" && ca == "" {
		return nil, nil
	}
	o := Options{}.orSystem()
	x := &ClientTLS{}
	for _, f := range []struct {
		to   *Value
		path *string
		name string
	}{{&x.Cert, &x.cert, cert}, {&x.Key, &x.key, key}, {&x.CA, new(string), ca}} {
		if f.name == "" {
			continue
		}
		src, err := o.read(f.name, maxPEM)
		if err != nil {
			return nil, err
		}
		*f.to, *f.path = Value{ref: "file:" + f.name, text: string(src)}, o.locate(f.name)
	}
	return x, x.finish()
}

func (x *ClientTLS) members() []member {
	return []member{
		{"cert", ends, pemFile(&x.Cert, &x.cert), "client certificate with its chain, as PEM; read again for each new connection"},
		{"key", ends, pemFile(&x.Key, &x.key), "key of the client certificate, as PEM; read again as it is"},
		{"ca", ends, pemFile(&x.CA, new(string)), "certificates of the authorities that the server's certificate may come from, as PEM, in place of those of the system"},
	}
}

// pemFile is a reference to a PEM file, file:PATH.
func pemFile(v *Value, path *string) value {
	return value{
		read: func(c *compiler, p place) {
			ref := c.text(p, maxText)
			name, isFile := strings.CutPrefix(ref, "file:")
			switch {
			case ref == "":
			case !isFile:
				c.report(p, "want file:PATH of a PEM file")
			default:
				src, err := c.opt.read(name, maxPEM)
				if err != nil {
					c.report(p, "%v", err)
					return
				}
				*v, *path = Value{ref: ref, text: string(src)}, c.opt.locate(name)
			}
		},
		write: func(d *dumper, name string) {
			if v.ref != "" {
				d.word(name, quoted(v.ref))
				d.hidden(name, v.text)
			}
		},
		kind: "`file:PATH`", schema: schema{"type": "string", "pattern": "^file:"},
	}
}

// finish checks that the files fit together.
func (x *ClientTLS) finish() error {
	switch {
	case (x.Cert.text == "") != (x.Key.text == ""):
		return errors.New("cert and key go together")
	case x.Cert.text != "":
		if _, err := tls.X509KeyPair([]byte(x.Cert.text), []byte(x.Key.text)); err != nil {
			return errors.New("cert and key are not a PEM certificate and its key")
		}
	}
	if x.CA.text != "" {
		if x.roots = x509.NewCertPool(); !x.roots.AppendCertsFromPEM([]byte(x.CA.text)) {
			return errors.New("ca holds no PEM certificate")
		}
	}
	return nil
}

// clientTLS finishes the section of a server.
func (c *compiler) clientTLS(p place, x *ClientTLS, sound bool) bool {
	if !sound {
		return false
	}
	if len(p.names) == 0 && p.kind == isObject {
		c.report(p, "says nothing: want cert and key, ca, or all of them")
		return false
	}
	if err := x.finish(); err != nil {
		c.report(p, "%v", err)
		return false
	}
	return true
}

// Config is for connections to the server; nil: that of the system.
func (x *ClientTLS) Config(notice func(string)) *tls.Config {
	if x == nil {
		return nil
	}
	return egress.ClientTLS{Cert: x.cert, Key: x.key, Roots: x.roots, Notice: notice}.Config()
}

// Authorities are those of the system and of CA: for the authorization server, which may have a
// certificate of either. nil: those of the system.
func (x *ClientTLS) Authorities() *x509.CertPool {
	if x == nil || x.CA.text == "" {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM([]byte(x.CA.text))
	return pool
}

// Identity is what connections to the server depend on. A new pair in the same files is no change.
func (x *ClientTLS) Identity() []string {
	if x == nil {
		return nil
	}
	return []string{x.cert, x.key, x.CA.text}
}
