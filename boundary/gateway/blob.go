// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/blob"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// blob treats base64. spec: inspect/1
//
// What decoders read differently is refused; any other spelling
// than the canonical one is replaced by it. Text is scrubbed in its own character set,
// and stays as it is where nothing is found. What is not text is reported as not inspected.
func (w *walker) blob(v strictjson.Value, mimeType string) finding.Code {
	s := w.plainText(v)
	if u, isURI := blob.ParseDataURI(s); isURI {
		return w.blobOfURI(v, &u)
	}
	form := blob.FormOf(s)
	if form == blob.Ambiguous {
		return finding.AmbiguousEncoding
	}
	clean, code := w.content(blob.ReadBase64(s, mimeType), mimeType, w.text)
	if code == ok {
		w.addPiece(piece{value: v, text: w.inside, in: onlyTexts | typed | named | all, kind: pieceBlob})
	}
	switch {
	case code != ok:
		return code
	case clean != nil:
		w.replace(v, blob.Encode(clean))
	case form != blob.Canonical:
		w.addFinding(finding.EncodingRepaired, 1, nil)
		w.replace(v, blob.Encode(blob.Decode(s)))
	}
	return ok
}

// blobOfURI puts the content of a data: URI in its place: servers write one where base64
// belongs, and decoders read its head as base64.
func (w *walker) blobOfURI(v strictjson.Value, u *blob.DataURI) finding.Code {
	if u.Ambiguous || len(u.Contents) != 1 {
		return finding.AmbiguousEncoding
	}
	clean, code := w.content(u.Contents[0], u.MediaType, w.text)
	if code != ok {
		return code
	}
	w.addPiece(piece{value: v, text: w.inside, in: onlyTexts | typed | named | all, kind: pieceBlob})
	if clean == nil {
		clean = u.Plain()
	}
	w.addFinding(finding.EncodingRepaired, 1, nil)
	w.replace(v, blob.Encode(clean))
	return ok
}

func (w *walker) replace(v strictjson.Value, text string) {
	w.edited = true
	w.replaceText(v, text)
}

// maxReadings bounds how often the bytes of a blob are cleaned, each time for
// another reader.
const maxReadings = 4

// content scrubs what readers see in a blob. It returns the clean bytes, nil where nothing is
// to be changed, and why the blob must be refused, or ok.
func (w *walker) content(c blob.Content, mediaType string, with *scrub.Scrubber) (clean []byte, code finding.Code) {
	if c.Unknown {
		w.skip(finding.UnknownCharset)
	} else if len(c.Readings) == 0 {
		w.skip(finding.BlobNotInspected)
	}
	if len(c.Readings) > 0 {
		w.inspected++
	}
	w.inside = ""
	cut := "" // the line that says so
	for range maxReadings {
		i := 0
		for i < len(c.Readings) && !w.mustClean(strings.TrimSuffix(c.Readings[i].Text(), cut), &c.Readings[i], with) {
			if i == 0 {
				w.inside = ends(w.res.Clean.String())
			}
			i++
		}
		if i == len(c.Readings) {
			return clean, ok
		}
		w.noteEvents()
		w.noteCut(len(c.Readings[i].Text()))
		cut = string(w.cut.AppendLine([]byte(cut)))
		plain, spelled := c.Readings[i].Encode(w.res.Clean.String() + cut)
		if !spelled {
			return nil, finding.AmbiguousEncoding
		}
		clean = plain
		c = blob.Read(plain, mediaType)
	}
	return nil, finding.AmbiguousEncoding
}

// mustClean scrubs text, which one reader sees, and reports whether something must go.
func (w *walker) mustClean(text string, r *blob.Reading, with *scrub.Scrubber) bool {
	if !r.UTF8() {
		with = w.keep // NFKC makes characters that a small character set cannot spell
	}
	// A client does not restore what it writes back in base64, and what is clean is read again.
	w.scrubCounted(text, w.scrubs.again(with))
	switch r.Weight {
	case blob.Whole:
		return w.res.Changed()
	case blob.Tokens:
		return w.res.Tokens > 0
	}
	if w.res.Tokens > 0 {
		return true
	}
	for _, e := range w.res.Edits {
		if e.Class.Hidden() && e.Class != scrub.Control {
			return true
		}
	}
	return false
}

// emptyURI takes the place of a data: URI that cannot be made safe.
const emptyURI = "data:,"

// dataURI treats a string that may be a data: URI. It returns what has to take its place, or the
// string itself.
func (w *walker) dataURI(s string, with *scrub.Scrubber) string {
	u, isURI := blob.ParseDataURI(s)
	if !isURI || len(u.Contents) == 0 && !u.Ambiguous {
		return s
	}
	if u.Ambiguous {
		w.addFinding(finding.AmbiguousEncoding, 1, nil)
		return emptyURI
	}
	for _, c := range u.Contents {
		clean, code := w.content(c, u.MediaType, with)
		switch {
		case code != ok:
			w.addFinding(code, 1, nil)
			return emptyURI
		case clean != nil && len(u.Contents) > 1:
			return emptyURI
		case clean != nil:
			return u.Canonical(clean)
		}
	}
	return s
}

// checkURI reports whether a data: URI may pass as it is, in a place that is never
// rewritten.
func (w *walker) checkURI(s string) bool { return w.dataURI(s, w.strict) == s }

// readable returns what a model may read of a blob or data: URI, for a classifier.
func readable(c []blob.Content) string {
	var b strings.Builder
	seen := ""
	for _, c := range c {
		for _, r := range c.Readings {
			if text := r.Text(); text != seen {
				seen = text
				b.WriteString(text)
				b.WriteByte('\n')
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
