// SPDX-License-Identifier: Apache-2.0

package factcheck

import (
	"strconv"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// ratings are the words by which publishers rate claims, in lower case, and what
// they come to. Only a whole rating counts: "not false" holds "false". No word
// comes to VERIFIED: how a publisher has checked, a rating does not tell.
var ratings = sync.OnceValue(table)

var ratingWords = map[attest.Verdict]string{
	attest.Supported: `
true; correct; accurate; right; legit; legitimate; geppetto checkmark; fact; verified; confirmed; this is true; the claim is true
wahr; richtig; stimmt; korrekt
vrai; exact; c'est vrai
verdadero; verdad; cierto; es verdad; correcto
verdadeiro; fato; é verdade; verdade; certo
vero; corretto; waar; juist; prawda; prawdziwe; sant; totta
правда; верно; это правда; правдиво
doğru; benar; fakta; सही; सच
正確; 正确; 真實; 真实; 属实; 屬實; 正しい; 事実; 사실
\u0635\u062d\u064a\u062d`,
	attest.Qualified: `
mostly true; mostly correct; mostly accurate; partly true; partially true; half true; half-true; mixture; mixed
missing context; lacks context; needs context; needs more context
größtenteils wahr; größtenteils richtig; teilweise wahr; teilweise richtig; halbwahr; fehlender kontext; kontext fehlt
plutôt vrai; en partie vrai; partiellement vrai; à moitié vrai; manque de contexte
verdad a medias; mayormente verdadero; parcialmente verdadero; media verdad; falta contexto; sin contexto
parcialmente verdadeiro; meia verdade; falta contexto; sem contexto; verdadeiro, mas
parzialmente vero; contesto mancante; deels waar; grotendeels waar; mist context
częściowo prawda; półprawda; brak kontekstu
полуправда; частично правда; отчасти правда
kısmen doğru; karma; sebagian benar; आधा सच
部分正確; 部分正确; 缺乏背景; ほぼ正確; 절반의 사실; 대체로 사실`,
	attest.Disputed: `
mostly false; mostly incorrect; mostly inaccurate; inaccurate; barely true; partly false; partially false; half false; out of context; misleading; distorts the facts; distorted; exaggerated; exaggeration; cherry picks
altered; altered photo; altered video; manipulated; disputed; contested; flawed reasoning; spins the facts
größtenteils falsch; teilweise falsch; irreführend; manipuliert; übertrieben
plutôt faux; partiellement faux; en partie faux; inexact; hors contexte; trompeur; c'est trompeur; exagéré; détourné
mayormente falso; parcialmente falso; fuera de contexto; engañoso; manipulado; exagerado; enganoso; distorcido; manipulada; fora de contexto
parzialmente falso; fuorviante; ingannevole; deels onwaar; misleidend; grotendeels onwaar; częściowo fałsz; manipulacja; wprowadza w błąd
частично ложь; вырвано из контекста; манипуляция; вводит в заблуждение; скорее ложь; преувеличение
yanıltıcı; menyesatkan; भ्रामक
誤導; 误导; ミスリード; 誤解を招く; 不正確; 대체로 사실 아님
\u0645\u0636\u0644\u0644`,
	attest.False: `
false; fake; fake news; hoax; incorrect; wrong; untrue; not true; fabricated; bogus; busted; debunked; pants on fire; four pinocchios
this is false; the claim is false; no, that's not true; made up; false news
falsch; fälschung; unwahr; frei erfunden; erfunden; stimmt nicht
faux; c'est faux; infondé et faux; intox
falso; es falso; mentira; bulo; incorrecto; falsa; é falso; #fake; boato; é mentira
bufala; notizia falsa; falso!; onwaar; niet waar; onjuist; fałsz; fałszywe; nieprawda; falskt; falsk; epätosi
ложь; неправда; фейк; это не так; неверно; брехня
yanlış; sahte; salah; hoaks; गलत; झूठ; फर्जी
錯誤; 错误; 虛假; 虚假; 假; 不實; 谣言; 謠言; 誤り; 虚偽; 偽; デマ; 사실 아님; 거짓
\u062e\u0637\u0623; \u0643\u0627\u0630\u0628; \u0632\u0627\u0626\u0641`,
	attest.Unverified: `
unverified; unproven; unsupported; unconfirmed; not proven; no evidence; inconclusive; undetermined; research in progress
unbelegt; unbewiesen; non vérifié; infondé; sin pruebas; sin verificar; não verificado; insustentável; non verificato; onbewezen
nieweryfikowalne; не подтверждено; недоказуемо; kanıtlanmamış; belum terbukti; 未經證實; 未经证实; 根拠不明; 판단 유보`,
}

func separates(r rune) bool { return r == ';' || r == '\n' }

func table() map[string]attest.Verdict {
	m := map[string]attest.Verdict{}
	for verdict, words := range ratingWords {
		for w := range strings.FieldsFuncSeq(words, separates) {
			if w = fold(unescape(w)); w != "" {
				m[w] = verdict
			}
		}
	}
	return m
}

// unescape reads the escapes of words that would turn a line of this file round.
func unescape(s string) string {
	if !strings.Contains(s, `\u`) {
		return s
	}
	u, err := strconv.Unquote(`"` + strings.TrimSpace(s) + `"`)
	if err != nil {
		panic("factcheck: a rating is misspelled")
	}
	return u
}

// fold brings a rating into the form of the table: lower case, single blanks, and
// no marks around it.
func fold(s string) string {
	s = strings.Join(strings.Fields(strings.ToLower(s)), " ")
	s = strings.ReplaceAll(s, "\u2019", "'")
	return strings.Trim(s, " .!\u3002\uff01\"'\u201c\u201d\u201e\u00ab\u00bb")
}

// rate maps a Rating to a verdict and to what the publisher calls it.
//
// Words rule: publishers agree on them more than on scales, and a number is often
// what the form was filled with. Words that are not in the table are UNVERIFIED,
// whatever the number; so is a word that the number flatly contradicts. A number
// without words counts on its scale: the worst is FALSE, below the middle
// DISPUTED, from the middle on QUALIFIED, the best SUPPORTED.
func rate(rating strictjson.Value) (verdict attest.Verdict, words string) {
	words = firstText(rating, "alternateName", "name")
	value := rating.Get("ratingValue")
	x, worst, best, scaled := scale(rating)
	if words == "" && textOf(value) != "" && !numeric(textOf(value)) {
		words = textOf(value) // some write the word there
	}
	if words == "" && !scaled {
		return attest.Unverified, "Not rated."
	}
	if words == "" {
		words = "Rated " + number(x) + " on a scale from " + number(worst) + " to " + number(best) + "."
		return onScale((x - worst) / (best - worst)), words
	}
	verdict, known := ratings()[fold(words)]
	contradicted := scaled && (verdict == attest.False && x == best || verdict == attest.Supported && x == worst)
	if !known || contradicted {
		verdict = attest.Unverified
	}
	return verdict, words
}

func onScale(share float64) attest.Verdict {
	switch {
	case share == 0:
		return attest.False
	case share < 0.5:
		return attest.Disputed
	case share < 1:
		return attest.Qualified
	}
	return attest.Supported
}

// scale reads a rating's number and its scale, which is from 1 to 5 where schema.org
// is not told otherwise. ok is false for a number that is not on its scale.
func scale(rating strictjson.Value) (x, worst, best float64, ok bool) {
	x, given := decimal(rating.Get("ratingValue"))
	worst, best = 1, 5
	for name, to := range map[string]*float64{"worstRating": &worst, "bestRating": &best} {
		if v := rating.Get(name); v.Exists() {
			n, ok := decimal(v)
			if !ok {
				return 0, 0, 0, false
			}
			*to = n
		}
	}
	return x, worst, best, given && worst != best && min(worst, best) <= x && x <= max(worst, best)
}

// decimal reads a plain decimal number, which may stand in a string.
func decimal(v strictjson.Value) (float64, bool) {
	s := textOf(v)
	if v.Kind() == '0' {
		s = string(v.Raw())
	}
	if !numeric(s) {
		return 0, false
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return x, err == nil
}

func numeric(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && len(s) <= 16 && strings.Trim(s, "+-.0123456789") == ""
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
