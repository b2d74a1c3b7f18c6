// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/keychain"
	"github.com/pellucid-mcp/pellucid/platform/login"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// loginServer says which server and whose login a person means.
type loginServer struct {
	Config string `short:"c" placeholder:"FILE" help:"Configuration where servers are looked up first (default: pellucid.yaml in your configuration folder)."`
	tlsFlags
	Principal string `placeholder:"NAME" help:"For sessions of this principal of a gateway only; without it the login is for every session that has none of its own."`
}

// loginCmd logs in to a remote server.
type loginCmd struct {
	loginServer
	List         bool          `help:"List the logins instead."`
	Device       bool          `help:"Log in with a browser on another device, by a code."`
	NoBrowser    bool          `help:"Open no browser: print the address only."`
	Scope        []string      `sep:"none" placeholder:"SCOPE" help:"Ask for this scope, and not for those that the server names; may be repeated."`
	Issuer       string        `placeholder:"URL" help:"The authorization server, where the server names several."`
	ClientID     string        `name:"client-id" placeholder:"ID" help:"Client ID that the authorization server knows, or the https URL of a client ID metadata document; without it the program registers itself."`
	ClientSecret string        `name:"client-secret" placeholder:"REF" help:"Secret of that client: env:NAME or file:PATH."`
	Port         int           `placeholder:"PORT" help:"Port of the redirect on 127.0.0.1, where the client is registered with one."`
	Timeout      time.Duration `default:"5m" help:"How long to wait for the user."`
	KeyFile      bool          `help:"Keep the key of the login in a file of the state directory, and not in the system's keychain."`
	JSON         bool          `name:"json" help:"Print the result as JSON."`

	Server string `arg:"" optional:"" help:"The server: its name in the configuration or in a client's file, or its URL."`
}

func (loginCmd) Help() string {
	return `Asks the server who authorizes for it, opens the user's browser there, and stores the
tokens encrypted, with the key in the system's keychain. From then on pellucid wrap, up and
check use and renew them, for this server only. A server with an Authorization header
in its configuration gets that header and no token. Exit codes: 0 done; 1 the login failed, was refused
or took too long; 2 wrong usage; 3 the state directory, the keychain or a configuration cannot be used.`
}

func (c *loginCmd) Run(e *env) error {
	if c.List {
		if c.Server != "" {
			return exit.With(exit.Usage, errors.New("login: --list takes no server"))
		}
		return c.list(e)
	}
	if err := c.check(); err != nil {
		return exit.With(exit.Usage, err)
	}
	at, err := c.loginServer.find(e, c.Server)
	if err != nil {
		return err
	}
	secret, err := e.secrets().optional("login: --client-secret", c.ClientSecret)
	if err != nil {
		return err
	}
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	store := login.OpenStore(dir)
	page := app.OpenPage{Dir: dir, Life: c.Timeout}
	defer page.Remove()
	place, err := c.place(store)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	before, err := store.Get(at.url, c.Principal)
	if err != nil && !errors.Is(err, login.ErrNone) {
		before = nil // it is replaced
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	l, err := login.Run(ctx, login.Options{Server: at.url, Name: at.name, Principal: c.Principal, Header: at.header, Roots: at.tls.Authorities(), TLS: at.tls.Config(nil),
		Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: secret, Scopes: c.Scope, Before: before,
		Device: c.Device, Port: c.Port, Wait: c.Timeout, Show: func(p login.Prompt) { c.show(ctx, e, &page, at.url, p) }})
	if err != nil {
		return err
	}
	if err := store.Put(l, place); err != nil {
		return exit.With(exit.Config, err)
	}
	if place == login.File && !c.KeyFile {
		fmt.Fprintln(e.Stderr, "This session has no keychain: the key of the login is kept in a file that only you can read.")
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, loginRow(login.Entry{Login: l, Place: place}))
	}
	fmt.Fprintf(e.Stderr, "Logged in to %s.\n", terminal.Inline(at.called()))
	return nil
}

func (c *loginCmd) check() error {
	switch {
	case c.Server == "":
		return errors.New("login: say which server: its name, or its URL; pellucid login --list shows the logins")
	case c.Timeout <= 0:
		return errors.New("login: --timeout must be positive")
	case c.Port < 0 || c.Port > 65535:
		return errors.New("login: --port must be 1 to 65535")
	case c.ClientSecret != "" && c.ClientID == "":
		return errors.New("login: --client-secret goes with --client-id")
	case c.Device && (c.Port != 0 || c.NoBrowser):
		return errors.New("login: --port and --no-browser are not for --device")
	case len(c.Principal) > 256:
		return errors.New("login: --principal is longer than 256 bytes")
	}
	return nil
}

// place is where the key of the login is to lie. Without a keychain it is a file.
func (c *loginCmd) place(store *login.Store) (login.Place, error) {
	if c.KeyFile {
		return login.File, store.Prepare(login.File)
	}
	err := store.Prepare(login.Keychain)
	switch {
	case errors.Is(err, keychain.ErrAbsent):
		return login.File, store.Prepare(login.File)
	case err != nil:
		return "", fmt.Errorf("%w: unlock it, or say --key-file", err)
	}
	return login.Keychain, nil
}

// show tells the person where to log in, and opens the browser there.
func (c *loginCmd) show(ctx context.Context, e *env, page *app.OpenPage, server string, p login.Prompt) {
	server, _, _ = strings.Cut(server, "?") // a query may hold a key
	// A name may stand in a project's file, and mean a server that the person does not expect.
	fmt.Fprintf(e.Stderr, "Server that gets the token: %s\n", terminal.Inline(server))
	fmt.Fprintf(e.Stderr, "Authorization server: %s\n", terminal.Inline(p.Issuer))
	if len(p.Scopes) > 0 {
		fmt.Fprintf(e.Stderr, "It is asked for: %s\n", terminal.Inline(strings.Join(p.Scopes, " ")))
	}
	if p.Code != "" {
		fmt.Fprintf(e.Stderr, "Open this page on any device, and enter the code %s:\n%s\n", p.Code, terminal.Inline(p.URL))
		return
	}
	fmt.Fprintf(e.Stderr, "Open this page to log in:\n%s\n", terminal.Inline(p.URL))
	if c.NoBrowser {
		return
	}
	file, err := page.Write(p.URL) // the address has the state and the challenge of this login
	if err != nil {
		fmt.Fprintf(e.Stderr, "No browser is opened, since the file for it cannot be written: %s\n", terminal.Inline(err.Error()))
		return
	}
	openBrowser(ctx, file)
}

// openBrowser opens a file of ours (app.OpenPage). Every user of the machine can read the arguments of a program, so
// an address with a secret never is one. Where opening fails the person has the address on the screen.
func openBrowser(ctx context.Context, file string) {
	var cmd *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		cmd = exec.CommandContext(ctx, "/usr/bin/open", file)
	case "windows":
		cmd = exec.CommandContext(ctx, "rundll32.exe", "url.dll,FileProtocolHandler", file)
	default:
		cmd = exec.CommandContext(ctx, "xdg-open", file)
	}
	if cmd.Start() == nil {
		go cmd.Wait()
	}
}

// list shows every login.
func (c *loginCmd) list(e *env) error {
	store, err := openLogins()
	if err != nil {
		return err
	}
	all, err := store.List()
	if err != nil {
		return exit.With(exit.Config, err)
	}
	if c.JSON {
		return terminal.WriteJSONLines(e.Stdout, all, func(x *login.Entry) loginReport { return loginRow(*x) })
	}
	if len(all) == 0 {
		fmt.Fprintln(e.Stderr, "There are no logins.")
		return nil
	}
	for _, x := range all {
		if err := loginRow(x).write(e); err != nil {
			return err
		}
	}
	return nil
}

// loginReport is what may be shown of a login.
type loginReport struct {
	Server    string    `json:"server,omitempty"`
	Name      string    `json:"name,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Issuer    string    `json:"issuer,omitempty"`
	Scopes    []string  `json:"scopes,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
	Renewable bool      `json:"renewable"`
	Usable    bool      `json:"usable"`
	Key       string    `json:"key,omitempty"`
	Problem   string    `json:"problem,omitempty"`
}

func loginRow(x login.Entry) loginReport {
	if x.Login == nil {
		return loginReport{Key: string(x.Place), Problem: x.Err.Error()}
	}
	l := x.Login
	server, _, _ := strings.Cut(l.Server, "?") // a query may hold a key
	return loginReport{Server: server, Name: l.Name, Principal: l.Principal, Issuer: l.Issuer, Scopes: l.Scopes, Expires: l.Expires,
		Renewable: l.Refresh != "", Usable: l.Usable(time.Now()), Key: string(x.Place)}
}

// write shows a login to a person.
func (r loginReport) write(e *env) error {
	if r.Problem != "" {
		_, err := fmt.Fprintf(e.Stdout, "a login that cannot be read: %s\n", r.Problem)
		return err
	}
	state := "usable"
	switch {
	case !r.Usable:
		state = "over: log in again"
	case !r.Renewable && !r.Expires.IsZero():
		state = "until " + terminal.Minute(r.Expires)
	}
	called := r.Server
	if r.Name != "" && r.Name != r.Server {
		called = r.Name + " " + r.Server
	}
	if r.Principal != "" {
		called += " for " + r.Principal
	}
	_, err := fmt.Fprintf(e.Stdout, "%s: %s; issuer %s; key in %s\n", terminal.Inline(called), state, terminal.Inline(r.Issuer), map[string]string{"keychain": "the keychain", "file": "a file"}[r.Key])
	return err
}

// logoutCmd ends a login.
type logoutCmd struct {
	loginServer
	Server string `arg:"" help:"The server: its name in the configuration or in a client's file, or its URL."`
}

func (logoutCmd) Help() string {
	return `Asks the authorization server to revoke the tokens, where it can, and removes them here in any
case. Exit codes: 0 done; 1 there is no such login, or it was removed here and could not be revoked; 2 wrong usage;
3 the state directory or a configuration cannot be used.`
}

func (c *logoutCmd) Run(e *env) error {
	store, err := openLogins()
	if err != nil {
		return err
	}
	server, err := c.server(e, store)
	if err != nil {
		return err
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	l, err := store.Get(server, c.Principal)
	if errors.Is(err, login.ErrNone) {
		return fmt.Errorf("logout: there is no login to %s", finding.Quote(c.Server))
	}
	read := err
	if err := store.Remove(server, c.Principal); err != nil {
		return exit.With(exit.Config, err)
	}
	if read != nil {
		return fmt.Errorf("logout: the login was removed here, but it cannot be revoked: %w", read)
	}
	tls, err := c.tls()
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("logout: --ca: %w", err))
	}
	told, err := login.Revoke(ctx, l, tls.Authorities())
	switch {
	case err != nil:
		return fmt.Errorf("logout: the login was removed here, but: %w", err)
	case !told:
		fmt.Fprintln(e.Stderr, "The login was removed here. The authorization server offers no revocation: the access token works until its end.")
	default:
		fmt.Fprintln(e.Stderr, "The login was revoked and removed.")
	}
	return nil
}

// server is the URL of the login that is meant: that of a login of the name, else of a configured server.
func (c *logoutCmd) server(e *env, store *login.Store) (string, error) {
	all, err := store.List()
	if err != nil {
		return "", exit.With(exit.Config, err)
	}
	var urls []string
	for _, x := range all {
		if l := x.Login; l != nil && l.Name == c.Server && l.Principal == c.Principal && !slices.Contains(urls, l.Server) {
			urls = append(urls, l.Server)
		}
	}
	switch len(urls) {
	case 0:
		at, err := c.loginServer.find(e, c.Server)
		return at.url, err
	case 1:
		return urls[0], nil
	}
	return "", exit.With(exit.Usage, fmt.Errorf("logout: logins to several servers are called %s: say which one by its URL", finding.Quote(c.Server)))
}

func openLogins() (*login.Store, error) {
	dir, err := local.OpenState()
	if err != nil {
		return nil, err
	}
	return login.OpenStore(dir), nil
}
