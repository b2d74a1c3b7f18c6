// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"
	"sync"
)

// lexicon sorts words by what they do in an order given to a model. Of pairs and
// triples of these kinds, whatever stands between, weights are learned too: they
// hold where the words of a new attack are others.
//
// Beside English: German, French, Spanish, Portuguese, Italian, Dutch, Russian,
// Turkish.
var lexicon = [...]string{
	// leave what was said
	`ignore ignoring disregard forget forgetting bypass override overrides overriding overrule skip drop discard dismiss abandon cancel stop neglect omit
	ignoriere ignorieren vergiss vergesse missachte ignorez ignorer oubliez oublie ignora ignorar olvida olvide ignorare dimentica ignoreer vergeet esqueça esquece
	игнорируй игнорируйте забудь забудьте yoksay unut`,
	// what was said before
	`previous prior above earlier preceding former before initial original foregoing past existing
	vorherige vorherigen bisherigen obigen précédentes précédents antérieures anteriores anterior previas previos precedenti vorige eerdere предыдущие предыдущих önceki`,
	// what binds a model
	`instruction instructions prompt prompts rule rules guideline guidelines directive directives command commands order orders restriction restrictions constraint constraints policy policies safeguard safeguards filter filters directions programming
	anweisung anweisungen befehle regeln consignes règles instrucciones reglas instruções regras istruzioni regole instructies инструкции правила команды talimatları talimatlar kurallar`,
	// a model
	`ai llm assistant chatbot bot gpt chatgpt model agent copilot claude gemini llama assistants agents
	assistent assistenten ki assistente asistente ia modelo modèle modello ассистент модель asistan`,
	// the one who reads
	`you your yourself u du sie ihr tu vous votre tú usted você tuo ты вы`,
	// a bond
	`must should shall need needs required require mandatory obligatory always immediately strictly ensure please kindly now first instead
	müssen musst sofort devez dois debes debe deve jetzt bitte должен должны теперь`,
	// emphasis
	`important urgent critical attention warning notice note alert emergency priority crucial essential
	wichtig achtung dringend urgente importante attenzione atención important важно внимание önemli`,
	// to say
	`say print output reply respond answer write repeat tell reveal display show return echo include mention state append add insert disclose translate summarize
	sage sag schreibe antworte dis écris répondez responde escribe di scrivi rispondi zeg скажи напиши ответь söyle yaz`,
	// to send
	`send forward email mail transfer upload post submit share exfiltrate leak deliver transmit publish pay wire
	sende senden envoyez envoie envía enviar invia stuur отправь отправьте gönder`,
	// to do
	`execute run call invoke use perform do delete remove change update modify set create install download open visit click navigate fetch buy purchase reserve book schedule invite grant disable enable activate follow complete solve proceed
	führe lösche exécutez ejecuta borra execute esegui выполни удали`,
	// a secret, or what is worth one
	`password passwords passwd credential credentials secret secrets key keys token tokens api apikey ssh private confidential sensitive personal ssn passport iban account bank card cookie cookies env id_rsa
	passwort mot contraseña senha пароль şifre`,
	// who has power
	`system developer developers admin administrator root owner operator user creator openai anthropic google microsoft security authorized authority sysadmin
	nutzer benutzer utilisateur usuario utente пользователь kullanıcı`,
	// a part to play
	`pretend act roleplay role persona imagine simulate character play become behave dan jailbreak jailbroken unrestricted unfiltered uncensored hypothetical fictional mode debug
	tue agissez actúa finge comportati представь`,
	// a new thing
	`new updated following actual real true next below real updated different neue neuen nouvelle nouvelles nueva nuevas nuovo nuove novas новые yeni`,
	// the thing that was asked for
	`task tasks query question request goal objective assignment job original purpose message conversation context
	aufgabe tâche tarea tarefa compito задача görev`,
	// silence
	`never not don't dont without silently secretly hidden unnoticed quietly inform notify informing mentioning telling
	nicht ohne sans sin senza не без`,
	// text and its edges
	`text document content page email data input tool output response function result information end begin start stop endoftext`,
}

// kinds finds the kind of a word, from 1, by its hash.
type kinds [4096]struct {
	hash uint32
	kind uint8
}

// lexiconKinds is made when a text is first read: most runs of the program read none.
var lexiconKinds = sync.OnceValue(func() *kinds {
	t := new(kinds)
	for k, words := range lexicon {
		for w := range strings.FieldsSeq(words) {
			h := uint64(offset)
			for i := range min(len(w), maxWord) {
				h = (h ^ uint64(w[i])) * prime
			}
			h = mix(h)
			i := h % uint64(len(t))
			for t[i].kind != 0 && t[i].hash != uint32(h>>32) {
				i = (i + 1) % uint64(len(t))
			}
			if t[i].kind == 0 {
				t[i].hash, t[i].kind = uint32(h>>32), uint8(k+1)
			}
		}
	}
	return t
})

// of is the kind of the word with the hash h; 0: it has none.
func (t *kinds) of(h uint64) uint8 {
	i := h % uint64(len(t))
	for t[i].kind != 0 {
		if t[i].hash == uint32(h>>32) {
			return t[i].kind
		}
		i = (i + 1) % uint64(len(t))
	}
	return 0
}
