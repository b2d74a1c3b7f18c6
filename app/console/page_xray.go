// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// maxXray is the length of the longest text that the page takes, in bytes.
const maxXray = 1 << 20

var xrayRoutes = []route{
	{pattern: "GET xray", least: Viewer, handle: func(*Console, *request) answer { return emptyXray() }, rail: entry{30, "X-ray", "xray", "x"}},
	// A page of code points sends the text again, in base64: nothing is kept between two requests.
	{pattern: "POST xray", least: Viewer, handle: (*Console).xray, body: maxXray*3/2 + 64<<10},
}

// An xrayView is the page: Looked says whether there was a text.
type xrayView struct {
	As         []asView
	AsName     Own // what it is read as
	AsWord     Own
	AsFate     fateView
	Looked     bool
	Bytes      Own
	Characters Own
	Hidden     Own
	Messages   []messageView
	More       Own // of messages; "": none
	Ribbon     []markView
	Seen       marked.Text
	Read       marked.Text
	Profiles   []Own
	Found      []foundView
	Fates      []fateView
	Alike      []alikeView
	Points     []pointView
	From, To   Own
	All        Own
	Encoded    marked.Plain
	Next, Back Own // "": no such page
}

func (xrayView) template() string { return "xray" }

type messageView struct {
	Says  marked.Text
	Where Own
	Kind  Own
}

// A markView is a mark on the ribbon, in thousandths of the text.
type markView struct {
	X, Width int
	Class    Own
}

type foundView struct {
	Code  Own
	Where Own
	Times Own
	Shown marked.Text
	Does  []verbView
}

type verbView struct{ Word, Class Own }

type fateView struct {
	Profile Own
	Size    Own
	Refused Own // the code; "": it is delivered
	Same    bool
	Text    marked.Text
}

type alikeView struct {
	Shown marked.Text
	Point Own
	As    marked.Text
	Word  marked.Text
	Times Own
}

type pointView struct {
	At    Own
	Point Own
	Shown marked.Text
	Class Own
}

var verbs = [...]verbView{keeps: {"kept", ""}, notes: {"noted", ""}, changes: {"changed", "v-changed"}, removes: {"removed", "v-denied"}, refuses: {"refused", "v-denied"}}

// xray looks at a text that the person has pasted or dropped. It is not logged and not kept.
func (c *Console) xray(q *request) answer {
	if err := c.waitForMemory(q, intake.BodyCost*max(maxForm, q.ContentLength)); err != nil {
		return overloadedState(err)
	}
	form, err := xrayForm(q.Request)
	if err == nil {
		if no := c.waitForText(q, len(form.text)); no != nil {
			return no
		}
	}
	switch {
	case errors.Is(err, errXrayLarge):
		return tooLarge(maxXray)
	case err != nil:
		return failed(err)
	}
	x, err := looked(form.text)
	if err != nil {
		return failed(err)
	}
	v := x.view(form.first)
	v.showReading(x, form.as)
	return page("X-ray", v)
}

var errXrayLarge = errors.New("console: the text is too large")

// A sentXray is what a form has.
type sentXray struct {
	text  string
	first int    // row of the code points
	as    string // what it is read as
}

// xrayForm reads the text of a form: pasted, as a file, or encoded by an earlier page.
func xrayForm(r *http.Request) (form sentXray, err error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return form, nil // not our form: there is no text
	}
	for {
		p, err := parts.NextPart()
		if err == io.EOF {
			return form, nil
		}
		if err != nil {
			return form, err
		}
		var b bytes.Buffer
		if r.ContentLength > longText && len(p.FormName()) == 1 { // it may be the text
			b.Grow(int(min(r.ContentLength, maxXray*3/2)) + bytes.MinRead)
		}
		if _, err := b.ReadFrom(io.LimitReader(p, maxXray*3/2)); err != nil {
			return form, err
		}
		if err := form.part(p, b.Bytes()); err != nil {
			return form, err
		}
	}
}

func (form *sentXray) part(p *multipart.Part, b []byte) error {
	switch p.FormName() {
	case "t": // a browser sends each line break of a field as CR LF
		b = []byte(strings.ReplaceAll(string(b), "\r\n", "\n"))
	case "f":
	case "b":
		n, err := base64.StdEncoding.Decode(b, b)
		if err != nil {
			return nil
		}
		b = b[:n]
	case "from":
		form.first, _ = strconv.Atoi(string(b))
		form.first = min(max(form.first, 0), maxXray)
		return nil
	case "as":
		form.as = string(b[:min(len(b), 64)])
		return nil
	default:
		return nil
	}
	if len(b) > maxXray {
		return errXrayLarge
	}
	if len(b) > 0 {
		form.text = string(b)
	}
	return nil
}

// pointsPerPage is the number of rows of code points on a page.
const pointsPerPage = 50

func (x *xray) view(first int) xrayView {
	v := xrayView{Looked: true, Bytes: counted(int64(len(x.text)), "byte"), Characters: counted(int64(x.characters), "character"), Hidden: count(int64(x.hidden)),
		Seen: marked.Of(withoutHidden(x.text)), Read: marked.Received(x.text, x.profiles[0].edits), Encoded: marked.Base64(x.text)}
	for i, m := range x.messages {
		if i == maxMessages {
			v.More = counted(int64(len(x.messages)-i), "more message") + ", not shown"
			break
		}
		v.Messages = append(v.Messages, messageView{marked.Of(m.Message), bytesAt(m.Start, m.End), kindOf(m.Kind)})
	}
	v.Ribbon = x.ribbon()
	for _, f := range x.profiles {
		v.Profiles = append(v.Profiles, profileName(f.profile))
		v.Fates = append(v.Fates, fateView{profileName(f.profile), counted(int64(len(f.clean)), "byte"), optionalCode(f.refused), len(f.edits) == 0, marked.Delivered(f.clean, f.edits)})
	}
	for _, f := range x.found {
		row := foundView{Code: codeName(f.code), Where: bytesAt(f.at, f.end), Times: count(int64(max(f.times, 1))), Shown: marked.Of(short(x.text[f.at:f.end]))}
		for _, does := range f.does {
			row.Does = append(row.Does, verbs[does])
		}
		v.Found = append(v.Found, row)
	}
	for _, a := range x.alike {
		v.Alike = append(v.Alike, alikeView{marked.Of(string(a.shown)), pointName(a.shown), marked.Of(string(rune(a.as))), marked.Of(a.word), count(int64(a.times))})
	}
	rows, all := pointsOf(x.text, first, pointsPerPage)
	for _, p := range rows {
		v.Points = append(v.Points, pointView{bytesAt(p.at, p.end), pointNames(x.text[p.at:p.end]), marked.Of(x.text[p.at:p.end]), p.class})
	}
	v.From, v.To, v.All = count(int64(min(first+1, all))), count(int64(first+len(rows))), count(int64(all))
	if first > 0 {
		v.Back = plainNumber(max(first-pointsPerPage, 0))
	}
	if first+len(rows) < all {
		v.Next = plainNumber(first + len(rows))
	}
	return v
}

// withoutHidden is the text without what shows nothing.
func withoutHidden(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		at, p, n := ucd.Scan(text, i, ucd.Hidden)
		b.WriteString(text[i:at])
		if at < len(text) && p&ucd.Hidden == 0 { // ill-formed: a reader sees a replacement character
			b.WriteString(text[at : at+n])
		}
		i = at + n
	}
	return b.String()
}

// ribbon returns the marks of the text, at most 400.
func (x *xray) ribbon() (out []markView) {
	scale := func(n int) int { return n * 1000 / max(len(x.text), 1) }
	add := func(at, end int, class Own) {
		m := markView{scale(at), max(scale(end)-scale(at), 4), class}
		if n := len(out); n > 0 && out[n-1].X+out[n-1].Width >= m.X && out[n-1].Class == class {
			out[n-1].Width = max(out[n-1].Width, m.X+m.Width-out[n-1].X)
			return
		}
		if len(out) < 400 {
			out = append(out, m)
		}
	}
	for _, e := range x.profiles[0].edits {
		class := Own("f-denied")
		if e.Class.Hidden() {
			class = "f-light"
		}
		add(e.Start, e.End, class)
	}
	for _, n := range x.profiles[0].notes {
		add(n.Start, n.End, "f-held")
	}
	return out
}
